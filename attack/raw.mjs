// Connections on which exactly the given bytes are sent.

import { connect } from "node:net";

/** Opens a connection to the server at `url`. */
export function dial(url) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  // The gateway may close a connection at any time; what matters then is what it sent before.
  socket.on("error", () => {});
  return socket;
}

/** Sends the bytes; resolves to everything that arrives until the connection closes or `limit` ms pass. */
export function exchange(url, bytes, limit = 1_500) {
  return new Promise((resolve) => {
    const socket = dial(url);
    let text = "";
    const end = (closed) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, closed, statuses: statuses(text) });
    };
    const timer = setTimeout(() => end(false), limit);
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("close", () => end(true));
    socket.write(bytes, "latin1");
  });
}

/** The status of each response in the text. */
export function statuses(text) {
  return [...text.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status]) => Number(status));
}

/** A request head: the request line, and these header lines. */
export function head(line, headers) {
  return `${line}\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n`;
}

/** An `initialize` request to the endpoint at `url`, as text; `headers` are added to the usual ones. A `host` of null leaves it out. */
export function initialize(url, { token, host = new URL(url).host, headers = [], target = "/mcp", close = true } = {}) {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  return head(`POST ${target} HTTP/1.1`, [
    ...(host === null ? [] : [`Host: ${host}`]),
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `Content-Length: ${body.length}`,
    ...(token ? [`Authorization: Bearer ${token}`] : []),
    ...(close ? ["Connection: close"] : []),
    ...headers,
  ]) + body;
}
