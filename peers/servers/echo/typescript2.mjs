// An echo server made with the TypeScript SDK 2.x.
// usage: typescript2.mjs stdio | http PORT

import { createServer } from "node:http";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { addEcho } from "./tool.mjs";

const echo = () => addEcho(new McpServer({ name: "typescript2", version: "1.0.0" }));

const [transport, port] = process.argv.slice(2);
if (transport === "http") {
  const server = createServer(toNodeHandler(createMcpHandler(echo)));
  server.listen(Number(port), "127.0.0.1", () => console.log(`listening on port ${port}`));
} else {
  serveStdio(echo);
}
