// The token of an open stream is removed: the stream ends within 5 s.

import assert from "node:assert/strict";

import { within } from "../../conformance/children.mjs";
import { Client } from "../client.mjs";
import { withGateway } from "../gateway.mjs";

const LIMIT = 5_000;

/** Attacks a gateway of its own with a token that is revoked. */
export function attack({ program }) {
  const prepare = (home) => ({ token: home.token("leaver"), kept: home.token("stayer") });
  return withGateway(program, { args: ["--require-token"], prepare }, async ({ home, url, token, kept }) => {
    const clients = await Promise.all([token, kept].map((token) => new Client(url, { token, era: "legacy" }).open()));
    const [leaving, staying] = await Promise.all(clients.map((client) => client.stream()));
    const listening = await listen(new Client(url, { token }));
    assert.deepEqual([leaving.status, staying.status, listening.status], [200, 200, 200]);
    let stays = true;
    ended(staying).then(() => (stays = false));
    const ends = Promise.all([ended(leaving), ended(listening)]);
    const began = Date.now();
    home.run("token", "remove", "leaver");
    assert.ok(await within(LIMIT, ends), `a stream of a removed token is open after ${LIMIT / 1000} s`);
    assert.ok(stays, "the stream of another token was ended");
    return `ended after ${((Date.now() - began) / 1000).toFixed(1)} s`;
  });
}

/** Opens a `subscriptions/listen` stream. */
function listen(client) {
  const message = client.message("subscriptions/listen", { notifications: { toolsListChanged: true } });
  return fetch(client.url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${client.token}`,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": message.method,
    },
    body: JSON.stringify(message),
  });
}

/** Resolves to true when the body of the response ends. */
async function ended(response) {
  try {
    for await (const _ of response.body);
  } catch {
    // An end without the last chunk is one too.
  }
  return true;
}
