// Hostile servers over HTTP: each call of one ends in time with an error, and no redirect is followed.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { HOSTILE_CALL_LIMIT, honest, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";
import { httpBehaviours, startHostileHttp } from "../servers/hostile-http.mjs";

const LIMIT = HOSTILE_CALL_LIMIT + 20_000;
const MAX_MEMORY_MIB = 256;

/** Attacks a gateway of its own. */
export async function attack({ program }) {
  const hostile = await startHostileHttp();
  const mcpServers = { honest };
  for (const name of httpBehaviours) mcpServers[name] = { type: "http", url: hostile.url(name), timeout_ms: HOSTILE_CALL_LIMIT };
  try {
    return await withGateway(program, { mcpServers }, async ({ url, gateway }) => {
      const watch = new Watch(gateway.pid);
      const client = new Client(url, { patience: LIMIT });
      await client.text("honest__echo", { nonce: "start" });
      const calls = httpBehaviours.map(async (name) => {
        const { result, error, body } = await client.request("tools/call", { name: `${name}__work`, arguments: {} });
        assert.ok(error || result?.isError, `${name}: ${body.slice(0, 200)}`);
        assert.ok(!/unknown tool/i.test(body), `${name} was not called: ${body}`);
      });
      for (const call of await Promise.allSettled(calls)) {
        if (call.status === "rejected") throw call.reason;
      }
      assert.equal(hostile.visits(), 0, "visits of the address of a redirect");
      assert.equal(await client.text("honest__echo", { nonce: "end" }), "end");
      watch.stop();
      if (measurable) assert.ok(watch.peak.memory < MAX_MEMORY_MIB, `peak ${watch.peak.memory.toFixed(0)} MiB`);
      return `${httpBehaviours.length} behaviours, peak ${watch.peak.memory.toFixed(0)} MiB`;
    });
  } finally {
    hostile.close();
  }
}
