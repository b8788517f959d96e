// A server whose list never ends, with cursors that grow: the pages are bounded in bytes.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "../client.mjs";
import { honest, hostile, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";

const MAX_MEMORY_MIB = 256;
const TIME = 10_000;

/** Attacks a gateway of its own. */
export function attack({ program }) {
  return withGateway(program, { mcpServers: { honest, endless: hostile("endless-pages") } }, async ({ url, gateway }) => {
    const watch = new Watch(gateway.pid);
    const client = new Client(url);
    const end = Date.now() + TIME;
    while (Date.now() < end) {
      assert.equal(await client.text("honest__echo", { nonce: String(end) }), String(end));
      await sleep(200);
    }
    const { status } = await client.request("tools/list");
    assert.equal(status, 200);
    watch.stop();
    if (!measurable) return "memory is only measured on Linux";
    assert.ok(watch.peak.memory < MAX_MEMORY_MIB, `peak ${watch.peak.memory.toFixed(0)} MiB`);
    return `peak ${watch.peak.memory.toFixed(0)} MiB`;
  });
}
