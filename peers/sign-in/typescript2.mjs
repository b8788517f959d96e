// The TypeScript client 2.x signs in.
// usage: typescript2.mjs legacy|modern http|sse|dpop URL

import {
  Client,
  DpopSession,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

import { Memory, visit } from "./visit.mjs";

const [era, way, url] = process.argv.slice(2);
const Transport = way === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;
const mode = era === "modern" ? { pin: "2026-07-28" } : era;

const memory = new Memory();
if (way === "dpop") {
  // The key to which the token is bound (DPoP).
  const session = DpopSession.create();
  memory.dpop = () => session;
}

await visit({
  url,
  memory,
  connect: (memory) => ({
    client: new Client({ name: "typescript2", version: "1.0.0" }, { versionNegotiation: { mode } }),
    transport: new Transport(new URL(url), { authProvider: memory }),
  }),
  finish: (transport, back) => transport.finishAuth(back),
  isRefusal: UnauthorizedError,
  call: (client, name, args) => client.callTool({ name, arguments: args }),
});
