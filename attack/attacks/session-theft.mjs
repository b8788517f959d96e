// Sessions and streams of another principal: they must not exist for the attacker.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { Client } from "../client.mjs";

/** Attacks the sessions of another principal. */
export async function attack({ url, tokens }) {
  const victim = await new Client(url, { token: tokens.other, era: "legacy" }).open();
  const streamed = await victim.request("tools/call", { name: "honest__stream", arguments: { bytes: 2_000 }, _meta: { progressToken: "p" } });
  const lastEvent = /^id: ?(\S+)$/m.exec(streamed.body)?.[1];
  assert.ok(lastEvent, "the answer is a stream that can be resumed");

  const thief = new Client(url, { token: tokens.hostile, era: "legacy" });
  thief.session = victim.session;
  const refused = async (what, response) => assert.equal((await response).status, 404, what);
  await refused("a request in a stolen session", thief.request("tools/list"));
  await refused("a call in a stolen session", thief.request("tools/call", { name: "honest__echo", arguments: {} }));
  await refused("a notification in a stolen session", thief.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }));
  await refused("the stream of a stolen session", thief.stream());
  await refused("a stolen stream", thief.stream({ headers: { "last-event-id": lastEvent } }));
  const end = { authorization: `Bearer ${tokens.hostile}`, "mcp-session-id": victim.session, "mcp-protocol-version": victim.revision };
  await refused("the end of a stolen session", fetch(url, { method: "DELETE", headers: end }));

  const own = await new Client(url, { token: tokens.hostile, era: "legacy" }).open();
  const stolen = await own.stream({ headers: { "last-event-id": lastEvent }, signal: AbortSignal.timeout(1_000) });
  const received = stolen.status === 200 ? await untilAborted(stolen) : "";
  assert.ok(!received.includes("xxxx"), "a stream of another session was resumed");
  for (let n = 0; n < 50; n += 1) {
    thief.session = randomBytes(32).toString("hex");
    await refused("a guessed session", thief.request("tools/list"));
  }
  assert.equal((await victim.request("ping")).status, 200, "the session still belongs to its principal");
}

async function untilAborted(response) {
  let text = "";
  try {
    for await (const chunk of response.body) text += Buffer.from(chunk).toString();
  } catch {
    // The limit has passed.
  }
  return text;
}
