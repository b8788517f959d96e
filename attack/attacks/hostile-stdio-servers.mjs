// Hostile servers on stdio: each call of one ends in time, and the well-behaved server is not affected.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { HOSTILE_CALL_LIMIT } from "../gateway.mjs";
import { callBehaviours } from "../servers/behaviours.mjs";

const LIMIT = HOSTILE_CALL_LIMIT + 20_000;

/** Calls every hostile server of the shared gateway. */
export async function attack({ url, tokens }) {
  const client = new Client(url, { token: tokens.hostile, capabilities: { elicitation: { form: {} } }, patience: LIMIT });
  const faults = [];
  for (const behaviour of callBehaviours) {
    const began = Date.now();
    const answer = await client.request("tools/call", { name: `${behaviour}__work`, arguments: {} }).catch((error) => ({ error, timedOut: true }));
    if (answer.timedOut) faults.push(`${behaviour}: no answer after ${Date.now() - began} ms`);
    const text = answer.result?.content?.[0]?.text ?? "";
    if (text.length > 100_000) faults.push(`${behaviour}: an answer of ${text.length} characters`);
    assert.equal(await client.text("honest__echo", { nonce: `after ${behaviour} ${began}` }), `after ${behaviour} ${began}`);
  }
  assert.deepEqual(faults, []);
  return `${callBehaviours.length} behaviours`;
}
