// Clients that send a head or a body a byte at a time, or stop in the middle of it.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { health } from "../client.mjs";
import { withGateway } from "../gateway.mjs";
import { dial, head } from "../raw.mjs";

const CLIENTS = 200;
const toml = `
[limits]
request_head_timeout_seconds = 2
request_body_idle_timeout_seconds = 2
request_body_timeout_seconds = 4
`;

/** How long a slow connection may live: the longest limit, and some time for a busy machine. */
const LIMIT = 15_000;

/** What a client sends at first, and whether it goes on with a byte every 200 ms. */
const behaviours = [
  { first: "", drips: false },
  { first: "GET /health HTT", drips: false },
  { first: "GET /health HTTP/1.1\r\nX: ", drips: true },
  { first: head("POST /mcp HTTP/1.1", ["Host: 127.0.0.1", "Content-Type: application/json", "Accept: application/json, text/event-stream", "Content-Length: 1000"]), drips: false },
  { first: head("POST /mcp HTTP/1.1", ["Host: 127.0.0.1", "Content-Type: application/json", "Accept: application/json, text/event-stream", "Content-Length: 1000"]) + "{", drips: true },
];

/** Attacks a gateway of its own, whose limits are short. */
export function attack({ program }) {
  return withGateway(program, { toml }, async ({ url }) => {
    const began = Date.now();
    const sockets = Array.from({ length: CLIENTS }, (_, n) => slow(url, behaviours[n % behaviours.length]));
    const closed = Promise.all(sockets);
    let open = true;
    closed.then(() => (open = false));
    while (open && Date.now() - began < LIMIT) {
      const { answered, milliseconds } = await health(url, 5_000);
      assert.ok(answered, `/health did not answer within ${milliseconds.toFixed(0)} ms`);
      await sleep(100);
    }
    assert.ok(!open, `some slow connections are open after ${LIMIT / 1000} s`);
    return `${CLIENTS} connections closed after ${((Date.now() - began) / 1000).toFixed(1)} s`;
  });
}

/** Resolves when the gateway closes the connection. */
function slow(url, { first, drips }) {
  return new Promise((resolve) => {
    const socket = dial(url);
    const timer = drips ? setInterval(() => socket.write(" "), 200) : undefined;
    socket.resume();
    socket.on("close", () => {
      clearInterval(timer);
      resolve();
    });
    socket.write(first);
  });
}
