// A batch whose answers are large together: their total is limited, with an error.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { honest, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";

const BATCH = 16;
const BYTES = 512 * 1024;
const FULL_SIZE_BYTES = 5 * 1024 * 1024;
const MAX_MEMORY_MIB = 256;

/** The limit of the program is 10 MiB for one answer, and for a batch: a tenth of it in a short run. */
const SHORT_LIMIT = "[limits]\nmax_answer_bytes = 1048576\n";
const MAX_TOTAL_BYTES = 1.6 * 1024 * 1024;
const FULL_SIZE_MAX_TOTAL_BYTES = 16 * 1024 * 1024;

/** Attacks a gateway of its own. */
export function attack({ program, fullSize }) {
  const bytes = fullSize ? FULL_SIZE_BYTES : BYTES;
  const maxTotal = fullSize ? FULL_SIZE_MAX_TOTAL_BYTES : MAX_TOTAL_BYTES;
  return withGateway(program, { mcpServers: { honest }, toml: fullSize ? "" : SHORT_LIMIT }, async ({ url, gateway }) => {
    const client = await new Client(url, { era: "legacy", revision: "2025-03-26" }).open();
    await client.counts();
    const watch = new Watch(gateway.pid, 50);
    const call = (bytes) => client.message("tools/call", { name: "honest__stream", arguments: { bytes } });
    const { body, messages, status } = await client.send({}, { body: JSON.stringify(Array.from({ length: BATCH }, () => call(bytes))) });
    watch.stop();
    assert.ok(body.length <= maxTotal, `${body.length} bytes of answers`);
    const told = status >= 400 || messages.some(({ error }) => error);
    assert.ok(told, "what is missing is told with an error");
    if (measurable) assert.ok(watch.peak.memory < MAX_MEMORY_MIB, `peak ${watch.peak.memory.toFixed(0)} MiB`);
    const small = await client.send({}, { body: JSON.stringify([call(10), call(10)]) });
    assert.equal(small.messages.filter(({ result }) => result).length, 2, "a small batch is answered");
    return `peak ${watch.peak.memory.toFixed(0)} MiB`;
  });
}
