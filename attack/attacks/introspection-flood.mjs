// Invalid tokens that must be introspected: the issuer is asked about each once, few at a time, and a
// valid token still works. If there are too many for a slow issuer, those are refused that it has never
// called valid.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { Client, health } from "../client.mjs";
import { withGateway } from "../gateway.mjs";
import { startIssuer } from "../issuer.mjs";

const RESOURCE = "https://gateway.example/mcp";
const REPEATED = 300;
const DIFFERENT = 600;

/**
 * How many requests the issuer may be asked at a time. On a busy machine it is also still at work for
 * requests that the gateway has given up.
 */
const MAX_CONCURRENT = 48;
const FULL_SIZE_MAX_CONCURRENT = 16;

/** More tokens than may wait for a slow issuer, which answers in so many milliseconds. */
const TOO_MANY = 2_000;
const SLOW_ISSUER = 300;

/**
 * How long a request with a valid token may take during the flood. A short run shares the machine with
 * other attacks, and the issuer is a part of this one.
 */
const VALID_LIMIT = 45_000;
const FULL_SIZE_VALID_LIMIT = 10_000;

/** Attacks a gateway of its own. */
export async function attack({ program, fullSize }) {
  const maxConcurrent = fullSize ? FULL_SIZE_MAX_CONCURRENT : MAX_CONCURRENT;
  const now = Math.floor(Date.now() / 1000);
  const active = new Map();
  const issuer = await startIssuer({ active, delay: 20 });
  for (const n of ["first", "second"]) active.set(`good-${n}`, { iss: issuer.url, aud: RESOURCE, sub: "user", exp: now + 300 });
  const toml = `
[access]
required = true
resource = "${RESOURCE}"
[[access.issuers]]
issuer = "${issuer.url}"
introspection = { client_id = "gateway", client_secret = { env = "ATTACK_CLIENT_SECRET" } }
`;
  try {
    return await withGateway(program, { toml, env: { ATTACK_CLIENT_SECRET: "s" } }, async ({ url }) => {
      const client = new Client(url);
      const status = async (token) => (await client.request("tools/list", {}, { token })).status;
      assert.equal(await status("good-first"), 200);
      const before = issuer.counts.introspections;
      for (let n = 0; n < REPEATED / 50; n += 1) {
        const statuses = await Promise.all(Array.from({ length: 50 }, () => status("bad")));
        assert.deepEqual([...new Set(statuses)], [401]);
      }
      const asked = issuer.counts.introspections - before;
      assert.ok(asked <= 50, `the issuer was asked ${asked} times about one invalid token in ${REPEATED} requests`);

      const flood = Promise.all(Array.from({ length: DIFFERENT }, () => status(randomBytes(16).toString("hex"))));
      // If the attack fails before its end, the gateway is stopped.
      flood.catch(() => {});
      const began = Date.now();
      assert.equal(await status("good-second"), 200, "a valid token during the flood");
      const waited = Date.now() - began;
      assert.ok(waited < (fullSize ? FULL_SIZE_VALID_LIMIT : VALID_LIMIT), `a valid token waited ${waited} ms`);
      assert.ok((await health(url, 5_000)).answered);
      const statuses = new Set(await flood);
      assert.ok([...statuses].every((status) => [401, 429, 503].includes(status)), `statuses ${[...statuses]}`);
      assert.ok(issuer.counts.mostConcurrent <= maxConcurrent, `${issuer.counts.mostConcurrent} introspections at a time`);

      // Within the clock skew, but so old that the answer about it is not cached.
      active.set("good-uncached", { iss: issuer.url, aud: RESOURCE, sub: "user", exp: Math.floor(Date.now() / 1000) });
      assert.equal(await status("good-uncached"), 200);
      issuer.pace.delay = SLOW_ISSUER;
      const asking = issuer.counts.introspections;
      const tooMany = Array.from({ length: TOO_MANY }, () => status(randomBytes(16).toString("hex")));
      // Until a token is refused, because the queue is full.
      assert.equal(await Promise.any(tooMany.map(refused)), 503);
      assert.equal(await status("good-uncached"), 200, "a token that was valid before, while the queue is full");
      const answered = issuer.counts.introspections - asking;
      assert.ok(answered < TOO_MANY / 2, `the queue was full only after ${answered} answers`);
      assert.ok((await health(url, 5_000)).answered);
      assert.ok(issuer.counts.mostConcurrent <= maxConcurrent, `${issuer.counts.mostConcurrent} introspections at a time`);
      return `asked ${asked} times about one token, a valid one waited ${waited} ms`;
    });
  } finally {
    issuer.close();
  }
}

/** Resolves to the status if it is 503. */
async function refused(status) {
  assert.equal(await status, 503);
  return 503;
}
