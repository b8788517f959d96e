// Calls that are never answered, whose clients go away: each is cancelled at its server.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "../client.mjs";
import { honest, withGateway } from "../gateway.mjs";

const CALLS = 500;
const LIMIT = 20_000;

/** Attacks a gateway of its own. */
export function attack({ program }) {
  return withGateway(program, { mcpServers: { honest } }, async ({ url }) => {
    const client = new Client(url);
    await client.counts();
    const leave = new AbortController();
    const calls = Array.from({ length: CALLS }, () => {
      return client.request("tools/call", { name: "honest__hang", arguments: {} }, { signal: leave.signal }).catch(() => {});
    });
    await until(async () => (await client.counts()).hanging === CALLS, "not all calls reached the server");
    leave.abort();
    await Promise.all(calls);
    await until(async () => (await client.counts()).cancelled === CALLS, "not all calls were cancelled");
    return `${CALLS} calls`;
  });
}

async function until(holds, fault) {
  const end = Date.now() + LIMIT;
  while (!(await holds())) {
    assert.ok(Date.now() < end, fault);
    await sleep(100);
  }
}
