// An echo server made with the TypeScript SDK 1.x.
// usage: typescript1.mjs stdio | http PORT

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

import { addEcho } from "./tool.mjs";

const echo = () => addEcho(new McpServer({ name: "typescript1", version: "1.0.0" }));

/** Serves HTTP. A request without a session id opens a session. */
function serveHttp(port) {
  const sessions = new Map();
  const server = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (id === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
      });
      await echo().connect(transport);
    }
    if (transport === undefined) {
      response.writeHead(404).end();
      return;
    }
    await transport.handleRequest(request, response);
  });
  server.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
}

const [transport, port] = process.argv.slice(2);
if (transport === "http") {
  serveHttp(Number(port));
} else {
  await echo().connect(new StdioServerTransport());
}
