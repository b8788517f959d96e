// Connections that ask and never read, with few descriptors: `/health` answers throughout, and the
// connections are closed.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, health } from "../client.mjs";
import { withGateway, honest } from "../gateway.mjs";
import { holdings, measurable } from "../measure.mjs";
import { dial, head } from "../raw.mjs";

const CONNECTIONS = 1_000;
const PIPELINED = 256;

/** One connection of so many calls a tool with a large answer; the others pipeline requests. */
const ONE_IN_CALLS = 50;
const FULL_SIZE_ONE_IN_CALLS = 10;

/** How long `/health` may take. A short run shares the machine with other attacks. */
const HEALTH_LIMIT = 5_000;
const FULL_SIZE_HEALTH_LIMIT = 1_000;

/** A client that makes no progress is closed after this time: by default 30 s. */
const SHORT_TIMEOUT_SECONDS = 10;

/** When all connections are closed: some answers begin late, and wait for their own time. */
const CLOSED_LIMIT = 60_000;
const MAX_MEMORY_MIB = 256;

/** Attacks a gateway of its own that may open 256 descriptors. */
export function attack({ program, fullSize }) {
  const short = `[limits]\nwrite_timeout_seconds = ${SHORT_TIMEOUT_SECONDS}\nrequest_head_timeout_seconds = ${SHORT_TIMEOUT_SECONDS}\n`;
  const options = { mcpServers: { honest }, shell: "ulimit -n 256", toml: fullSize ? "" : short };
  const healthLimit = fullSize ? FULL_SIZE_HEALTH_LIMIT : HEALTH_LIMIT;
  return withGateway(program, options, async ({ url, gateway }) => {
    const request = head("GET /health HTTP/1.1", [`Host: ${new URL(url).host}`]).repeat(PIPELINED);
    const began = Date.now();
    const oneInCalls = fullSize ? FULL_SIZE_ONE_IN_CALLS : ONE_IN_CALLS;
    const sockets = Array.from({ length: CONNECTIONS }, (_, n) => {
      const socket = dial(url);
      socket.pause();
      socket.write(n % oneInCalls === 0 ? bigAnswers(url) : request);
      return socket;
    });
    let slowest = 0;
    let peak = 0;
    const watch = async () => {
      const { answered, milliseconds } = await health(url, 10_000);
      slowest = Math.max(slowest, milliseconds);
      assert.ok(answered && milliseconds < healthLimit, `/health took ${milliseconds.toFixed(0)} ms after ${Date.now() - began} ms`);
      if (measurable) peak = Math.max(peak, holdings(gateway.pid).memory);
      await sleep(100);
    };
    // A paused socket learns of its end only when it writes or reads, so the gateway's side is counted.
    const few = measurable ? () => holdings(gateway.pid).descriptors < 64 : () => Date.now() - began > CLOSED_LIMIT / 2;
    do await watch();
    while (!few() && Date.now() - began < CLOSED_LIMIT);
    const seconds = (Date.now() - began) / 1000;
    sockets.forEach((socket) => socket.destroy());
    assert.ok(seconds < CLOSED_LIMIT / 1000, "connections that do not read are kept");
    assert.ok(peak < MAX_MEMORY_MIB, `${peak.toFixed(0)} MiB of memory`);
    assert.equal(await new Client(url).text("honest__echo", { nonce: "n" }), "n");
    return `/health within ${slowest.toFixed(0)} ms, closed after ${seconds.toFixed(0)} s, peak ${peak.toFixed(0)} MiB`;
  });
}

/** Calls with answers that fill the buffers of a connection. */
function bigAnswers(url) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "attack", version: "1" },
  };
  const params = { name: "honest__stream", arguments: { bytes: 9 * 1024 * 1024 }, _meta: meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const lines = ["Content-Type: application/json", "Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: honest__stream"];
  return head("POST /mcp HTTP/1.1", [`Host: ${new URL(url).host}`, ...lines, `Content-Length: ${body.length}`]) + body;
}
