// Sessions of 2025-11-25 with streamed answers: what is kept for resumption is bounded for the process,
// and a stream within the budget can be resumed.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "../client.mjs";
import { honest, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";

const SESSIONS = 32;
const MIB = 1024 * 1024;
const PEAK_LIMIT_MIB = 160;

/** How much more than at the start may be held afterwards: from 14 MiB to 40 MiB as it is released. */
const RETURNED_SLACK_MIB = 26;
const RETURN_LIMIT = 60_000;

/** Attacks a gateway of its own without tokens. */
export function attack({ program, fullSize }) {
  const toml = "[limits]\nreplay_timeout_seconds = 10\n";
  return withGateway(program, { toml, mcpServers: { honest } }, async ({ url, gateway }) => {
    await new Client(url).counts();
    const watch = new Watch(gateway.pid);
    const start = measurable ? watch.sample().memory : 0;
    const began = Date.now();
    const seconds = fullSize ? 60 : 10;
    await Promise.all(Array.from({ length: SESSIONS }, () => stream(url, MIB, began + seconds * 1_000)));
    const small = await Promise.all(Array.from({ length: 256 }, () => stream(url, 10 * 1024, Date.now() + 1)));
    const { client, id } = small.at(-1);
    const resumed = await client.stream({ headers: { "last-event-id": id }, signal: AbortSignal.timeout(10_000) });
    // A stream that was read to its end may be gone, which is said.
    assert.ok(resumed.status === 200 || resumed.status >= 400, `resumption: status ${resumed.status}`);
    await resumed.body?.cancel();
    if (!measurable) return "memory is only measured on Linux";
    watch.stop();
    assert.ok(watch.peak.memory < PEAK_LIMIT_MIB, `peak ${watch.peak.memory.toFixed(0)} MiB`);
    const ended = Date.now();
    let now = watch.sample();
    while (now.memory > start + RETURNED_SLACK_MIB && Date.now() - ended < RETURN_LIMIT) {
      await sleep(500);
      now = watch.sample();
    }
    const figures = `start ${start.toFixed(0)} MiB, peak ${watch.peak.memory.toFixed(0)} MiB, later ${now.memory.toFixed(0)} MiB`;
    assert.ok(now.memory <= start + RETURNED_SLACK_MIB, figures);
    return figures;
  });
}

/** Streams answers of so many bytes in a session until `end`. */
async function stream(url, bytes, end) {
  const client = await new Client(url, { era: "legacy" }).open();
  let id;
  do {
    const { body, status } = await client.request("tools/call", { name: "honest__stream", arguments: { bytes }, _meta: { progressToken: "p" } });
    assert.equal(status, 200, body.slice(0, 200));
    id = /^id: ?(\S+)$/m.exec(body)?.[1];
  } while (Date.now() < end);
  assert.ok(id, "the answer is a stream that can be resumed");
  return { client, id };
}
