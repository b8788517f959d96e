// The sealed state of a parked call: changed, used by another principal, for other arguments, and twice.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";

const CALL = { name: "honest__guarded", arguments: { n: 1 } };
const capabilities = { elicitation: { form: {} } };

/** Attacks parked calls. */
export async function attack({ url, tokens }) {
  const client = new Client(url, { token: tokens.hostile, capabilities });
  const before = (await client.counts()).guarded;
  const asked = async () => {
    const { result, body } = await client.request("tools/call", CALL);
    assert.equal(result?.resultType, "input_required", body);
    return result;
  };
  const { requestState, inputRequests } = await asked();
  const [key, question] = Object.entries(inputRequests)[0];
  const retry = { ...CALL, inputResponses: { [key]: agreed(question) } };
  const refused = async (what, by, params) => {
    const { error, result } = await by.request("tools/call", params);
    const executed = result !== undefined && result.resultType !== "input_required" && !result.isError;
    assert.ok(!executed, `${what} was accepted`);
    assert.ok(error === undefined || !JSON.stringify(error).includes(requestState), `${what}: the error repeats the state`);
  };

  // One bit of every seventh character, and of the first and last ones.
  const bytes = Buffer.from(requestState);
  for (let at = 0; at < bytes.length; at += at > 8 && at < bytes.length - 9 ? 7 : 1) {
    const tampered = Buffer.from(bytes);
    tampered[at] ^= 1;
    // The last character of base64 may have unused bits.
    if (at === bytes.length - 1) continue;
    await refused(`a state with character ${at} changed`, client, { ...retry, requestState: tampered.toString("latin1") });
  }
  for (const state of ["", "x", requestState.slice(0, -2), `${requestState}AA`, requestState + requestState, "A".repeat(200_000)]) {
    await refused(`a state of ${state.length} characters`, client, { ...retry, requestState: state });
  }
  const thief = new Client(url, { token: tokens.other, capabilities });
  await refused("a state of another principal", thief, { ...retry, requestState });
  await refused("a state for other arguments", client, { ...retry, arguments: { n: 2 }, requestState });
  await refused("a state for another tool", client, { ...retry, name: "honest__forbidden", requestState });
  assert.equal((await client.counts()).guarded, before, "nothing was executed until now");

  const accepted = await client.request("tools/call", { ...retry, requestState });
  assert.equal(accepted.result?.resultType, "complete", accepted.body);
  await refused("a state for the second time", client, { ...retry, requestState });
  const raced = await asked();
  const racers = Array.from({ length: 20 }, () => client.request("tools/call", { ...retry, requestState: raced.requestState }));
  const won = (await Promise.all(racers)).filter(({ result }) => result?.resultType === "complete" && !result.isError);
  assert.equal(won.length, 1, "of 20 retries with one state");
  assert.equal((await client.counts()).guarded - before, 2, "executed");
}

/** An answer that agrees once: the first choice of each field. */
function agreed({ params }) {
  const fields = Object.entries(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map(([name, schema]) => [name, choice(schema)])) };
}

function choice(schema) {
  return schema.enum?.[0] ?? schema.oneOf?.[0].const ?? (schema.type === "boolean" ? true : "once");
}
