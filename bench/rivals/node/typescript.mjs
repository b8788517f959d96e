// A server made with the TypeScript SDK.
// usage: typescript.mjs stdio | http PORT json|stream

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function repeating() {
  const server = new McpServer({ name: "typescript-repeat", version: "0.0.0" });
  server.registerTool(
    "repeat",
    {
      description: "Repeats a text",
      inputSchema: z.object({
        text: z.string().describe("The text to repeat."),
        times: z.int().min(0).describe("How often to repeat it."),
      }),
    },
    async ({ text, times }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        const params = { progressToken, progress: 1, total: 2 };
        await mcpReq.notify({ method: "notifications/progress", params });
      }
      return { content: [{ type: "text", text: text.repeat(times) }] };
    },
  );
  return server;
}

const [transport, port, mode] = process.argv.slice(2);
if (transport === "http") {
  const isStream = mode === "stream";
  const responseMode = isStream ? "sse" : "json";
  const modern = toNodeHandler(createMcpHandler(repeating, { legacy: "reject", responseMode }));
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
    await repeating().connect(opened);
    return opened.handleRequest(request, response);
  };
  const server = createServer((request, response) => {
    const isModern = request.headers["mcp-protocol-version"] === "2026-07-28";
    return isModern ? modern(request, response) : legacy(request, response);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(Number(port), "127.0.0.1");
} else {
  serveStdio(repeating);
}
