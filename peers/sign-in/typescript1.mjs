// The TypeScript SDK 1.x signs in.
// usage: typescript1.mjs legacy http|sse URL

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { Memory, visit } from "./visit.mjs";

const [, way, url] = process.argv.slice(2);
const Transport = way === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;

await visit({
  url,
  memory: new Memory(),
  connect: (memory) => ({
    client: new Client({ name: "typescript1", version: "1.0.0" }),
    transport: new Transport(new URL(url), { authProvider: memory }),
  }),
  finish: (transport, back) => transport.finishAuth(back.get("code")),
  isRefusal: UnauthorizedError,
  call: (client, name, args) => client.callTool({ name, arguments: args }),
});
