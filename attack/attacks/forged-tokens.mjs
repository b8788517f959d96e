// Tokens that Plexus did not make, and tokens in the wrong place.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { Client, health } from "../client.mjs";

/** Attacks with forged tokens. */
export async function attack({ url, tokens }) {
  const good = tokens.hostile;
  const [name, secret] = good.split(".");
  const other = tokens.other.split(".")[1];
  const forged = [
    "x",
    "null",
    "undefined",
    "..",
    name,
    `${name}.`,
    `.${secret}`,
    `${name}.${other}`,
    `${good}x`,
    good.slice(0, -1),
    good.toUpperCase(),
    `${good}.${secret}`,
    `${name}.${"A".repeat(secret.length)}`,
    "A".repeat(20_000),
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJob3N0aWxlIn0.",
    ...Array.from({ length: 50 }, () => `${name}.${randomBytes(32).toString("base64url")}`),
    // Every character of the secret is compared.
    ...Array.from(secret, (character, at) => `${name}.${secret.slice(0, at)}${character === "A" ? "B" : "A"}${secret.slice(at + 1)}`).slice(0, -1),
  ];
  const client = new Client(url);
  await inGroups(forged, 20, async (token) => {
    const { status, body } = await client.request("tools/list", {}, { token });
    assert.equal(status, 401, `${token.slice(0, 60)}: status ${status}`);
    assert.ok(token.length < 20 || !body.includes(token), "the answer repeats the token");
  });
  const headers = (authorization) => ({ headers: { authorization }, token: undefined });
  for (const authorization of [`Basic ${good}`, good, "Bearer", `Bearer${good}`, `Bearer ${good} ${good}`, `Bearer ${tokens.other}, Bearer ${good}`]) {
    const { status } = await client.request("tools/list", {}, headers(authorization));
    assert.ok(status === 401 || status === 400, `${authorization.slice(0, 8)}…: status ${status}`);
  }
  for (const query of [`access_token=${good}`, `token=${good}`]) {
    const { status } = await new Client(`${url}?${query}`).request("tools/list");
    assert.ok(status === 401 || status === 400, `${query.slice(0, 8)}…: status ${status}`);
  }
  assert.equal((await new Client(url, { token: good }).request("ping")).status === 401, false);
  assert.ok((await health(url, 5_000)).answered);
  return `${forged.length + 8} tokens`;
}

async function inGroups(items, size, work) {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(work));
}
