// An echo server made with the TypeScript SDK.
// usage: typescript.mjs stdio | http PORT json|stream

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function echo() {
  const server = new McpServer({ name: "typescript-echo", version: "0.0.0" });
  server.registerTool(
    "echo",
    { description: "Says it again", inputSchema: z.object({ message: z.string() }) },
    ({ message }) => ({ content: [{ type: "text", text: message }] }),
  );
  return server;
}

const [transport, port, mode] = process.argv.slice(2);
if (transport === "http") {
  const isStream = mode === "stream";
  const responseMode = isStream ? "sse" : "json";
  const modern = toNodeHandler(createMcpHandler(echo, { legacy: "reject", responseMode }));
  const sessions = new Map();
  const legacy = async (request, response) => {
    const session = sessions.get(request.headers["mcp-session-id"]);
    if (session) {
      return session.handleRequest(request, response);
    }
    const opened = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: !isStream,
      onsessioninitialized: (id) => sessions.set(id, opened),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await echo().connect(opened);
    return opened.handleRequest(request, response);
  };
  const server = createServer((request, response) => {
    const isModern = request.headers["mcp-protocol-version"] === "2026-07-28";
    return isModern ? modern(request, response) : legacy(request, response);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(Number(port), "127.0.0.1");
} else {
  serveStdio(echo);
}
