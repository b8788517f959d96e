// Invalid tokens that must be introspected: the issuer is asked about each once, few at a time, and a
// valid token still works.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { Client, health } from "../client.mjs";
import { withGateway } from "../gateway.mjs";
import { startIssuer } from "../issuer.mjs";

const RESOURCE = "https://gateway.example/mcp";
const REPEATED = 300;
const DIFFERENT = 600;
const MAX_CONCURRENT = 16;

/** How long a request with a valid token may take during the flood. */
const VALID_LIMIT = 10_000;

/** Attacks a gateway of its own. */
export async function attack({ program }) {
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
      const began = Date.now();
      assert.equal(await status("good-second"), 200, "a valid token during the flood");
      const waited = Date.now() - began;
      assert.ok(waited < VALID_LIMIT, `a valid token waited ${waited} ms`);
      assert.ok((await health(url, 5_000)).answered);
      const statuses = new Set(await flood);
      assert.ok([...statuses].every((status) => [401, 429, 503].includes(status)), `statuses ${[...statuses]}`);
      assert.ok(issuer.counts.mostConcurrent <= MAX_CONCURRENT, `${issuer.counts.mostConcurrent} introspections at a time`);
      return `asked ${asked} times about one token, a valid one waited ${waited} ms`;
    });
  } finally {
    issuer.close();
  }
}
