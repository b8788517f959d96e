// Hostile MCP servers over HTTP, one at each path. After the handshake each misbehaves in one way.

import { once } from "node:events";
import { createServer } from "node:http";

const json = { "content-type": "application/json" };
const sse = { "content-type": "text/event-stream" };

/** Writes `piece` for two seconds, as fast as the gateway reads. */
function flood(response, piece, end = Date.now() + 2_000) {
  while (Date.now() < end && !response.destroyed) {
    if (response.write(piece)) continue;
    response.once("drain", () => flood(response, piece, end));
    return;
  }
  response.end();
}

/** Writes one byte every 100 ms, until the gateway closes the connection. */
function drip(response, byte) {
  const timer = setInterval(() => response.write(byte), 100);
  response.on("close", () => clearInterval(timer));
}

/** What each server does with a call, instead of answering it. `canary` is a URL that must not be visited. */
const behaviours = {
  "redirects-307": (response, id, canary) => response.writeHead(307, { location: canary }).end(),
  "redirects-302": (response, id, canary) => response.writeHead(302, { location: canary }).end(),
  "endless-json": (response) => flood(response.writeHead(200, json), " ".repeat(65_536)),
  "endless-event": (response) => flood(response.writeHead(200, sse), `data: ${"x".repeat(65_536)}\n`),
  "endless-comment": (response) => flood(response.writeHead(200, sse), `:${"x".repeat(65_536)}`),
  "endless-ids": (response) => flood(response.writeHead(200, sse), `id: ${"i".repeat(10_000)}\nretry: 0\ndata:\n\n`),
  "endless-notifications": (response) =>
    flood(response.writeHead(200, sse), 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'.repeat(500)),
  "drips-json": (response) => drip(response.writeHead(200, json), " "),
  "drips-event": (response) => drip(response.writeHead(200, sse), "d"),
  silent: () => {},
  "long-header": (response) => response.writeHead(200, { ...json, "x-long": "x".repeat(500_000) }).end("{}"),
  "many-headers": (response) => {
    for (let n = 0; n < 1_000; n += 1) response.setHeader(`x-${n}`, "x");
    response.writeHead(200, json).end("{}");
  },
  "ends-early": (response) => {
    response.writeHead(200, { ...json, "content-length": "1000" }).write("{");
    setTimeout(() => response.destroy(), 50);
  },
  html: (response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>sign in</h1>"),
  gzip: (response) => response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(Buffer.alloc(1_000)),
  "another-id": (response, id) => response.writeHead(200, json).end(`{"jsonrpc":"2.0","id":"${id}-other","result":{}}`),
  "status-999": (response) => response.writeHead(999).end("x"),
  unauthorized: (response, id, canary) =>
    response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${canary}", scope="${"s ".repeat(20_000)}"` }).end(),
};

/** The names of the servers. */
export const httpBehaviours = Object.keys(behaviours);

/** Starts all servers on one port. Resolves to `url(NAME)`, the number of visits of the canary, and `close`. */
export async function startHostileHttp() {
  let visits = 0;
  const server = createServer(async (request, response) => {
    const name = request.url.slice(1);
    if (name === "canary") {
      visits += 1;
      response.writeHead(200, json).end("{}");
      return;
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    answer(behaviours[name], request, response, body, `http://127.0.0.1:${server.address().port}/canary`);
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: (name) => `http://127.0.0.1:${server.address().port}/${name}`,
    visits: () => visits,
    close: () => server.close().closeAllConnections(),
  };
}

function answer(behaviour, request, response, body, canary) {
  response.on("error", () => {});
  if (behaviour === undefined || request.method !== "POST") {
    response.writeHead(behaviour ? 405 : 404).end();
    return;
  }
  const { id, method, params } = JSON.parse(body);
  const result = (value) => response.writeHead(200, json).end(JSON.stringify({ jsonrpc: "2.0", id, result: value }));
  switch (method) {
    case "initialize":
      return result({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } });
    case "tools/list":
      return result({ tools: [{ name: "work", inputSchema: { type: "object" } }] });
    case "tools/call":
      return behaviour(response, id, canary);
    default:
      if (id === undefined) return response.writeHead(202).end();
      return response.writeHead(404, json).end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown method" } }));
  }
}
