// A server reports progress of a call that it has answered: no later stream of the client gets it.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "../client.mjs";

/** Has the honest server report progress too late. */
export async function attack({ url, tokens }) {
  const client = await new Client(url, { token: tokens.hostile, era: "legacy" }).open();
  const listening = await client.stream({ signal: AbortSignal.timeout(3_000) });
  let heard = "";
  const listened = (async () => {
    try {
      for await (const chunk of listening.body) heard += Buffer.from(chunk).toString();
    } catch {
      // The limit has passed.
    }
  })();
  const calls = Array.from({ length: 10 }, (_, n) => {
    return client.request("tools/call", { name: "honest__late", arguments: {}, _meta: { progressToken: `late-${n}` } });
  });
  const bodies = (await Promise.all(calls)).map(({ body }) => body);
  await sleep(50);
  const after = await client.request("tools/call", { name: "honest__late", arguments: {}, _meta: { progressToken: "after" } });
  await sleep(300);
  const again = await client.request("tools/call", { name: "honest__stream", arguments: { bytes: 10 }, _meta: { progressToken: "again" } });
  await listened;
  for (const [name, text] of [["the stream", heard], ["a later call", after.body], ["the last call", again.body], ...bodies.map((body) => ["a call", body])]) {
    assert.ok(!/notifications\/progress[^\n]*late-|late-[^\n]*notifications\/progress/.test(text), `${name} got progress of a finished call: ${text}`);
  }
}
