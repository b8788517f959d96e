// Forged tokens of an authorization server: other keys, other algorithms, other claims. Unknown keys do
// not make the gateway fetch the keys each time.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";

import { Client } from "../client.mjs";
import { withGateway } from "../gateway.mjs";
import { keyPair, signed, startIssuer, unsigned } from "../issuer.mjs";

const RESOURCE = "https://gateway.example/mcp";
const UNKNOWN_KEYS = 200;

/** At most one fetch of the keys for the first token, and one every 10 s for unknown keys. */
const MAX_FETCHES = 5;

/** Attacks a gateway of its own. */
export async function attack({ program }) {
  const issuer = await startIssuer();
  try {
    const args = ["--issuer", issuer.url, "--resource", RESOURCE, "--require-token"];
    return await withGateway(program, { args }, async ({ url }) => {
      const client = new Client(url);
      const status = async (token) => (await client.request("tools/list", {}, { token })).status;
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: issuer.url, aud: RESOURCE, sub: "user", exp: now + 300, iat: now, client_id: "c" };
      const good = signed(issuer.key, claims);
      assert.equal(await status(good), 200, "a good token");
      for (const [name, token] of Object.entries(forged(issuer, claims, good))) {
        const got = await status(token);
        assert.equal(got, 401, `${name}: status ${got}`);
      }
      const unknown = Array.from({ length: UNKNOWN_KEYS }, (_, n) => signed({ ...issuer.key, kid: `unknown-${n}` }, claims));
      const statuses = new Set(await Promise.all(unknown.map(status)));
      statuses.delete(503);
      assert.deepEqual([...statuses], [401], "tokens of unknown keys");
      assert.ok(issuer.counts.keys <= MAX_FETCHES, `${issuer.counts.keys} fetches of the keys`);
      assert.equal(await status(good), 200, "the good token afterwards");
      return `${issuer.counts.keys} fetches of the keys`;
    });
  } finally {
    issuer.close();
  }
}

/** Tokens that are forged in one way each. */
function forged({ key, url }, claims, good) {
  const other = keyPair(key.kid);
  const publicPem = key.publicKey.export({ type: "spki", format: "pem" });
  const confused = unsigned(claims, { alg: "HS256", typ: "at+jwt", kid: key.kid });
  const [header, body, signature] = good.split(".");
  const without = (name) => Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name));
  return {
    "no algorithm": unsigned(claims, { alg: "none", kid: key.kid }),
    "no algorithm, in capitals": unsigned(claims, { alg: "NONE", kid: key.kid }, signature),
    "another key": signed(other, claims),
    "its own key in the header": signed(other, claims, { jwk: other.jwk }),
    "a key at an address": signed(other, claims, { jku: `${url}/keys` }),
    "a certificate in the header": signed(other, claims, { x5c: ["AAAA"] }),
    "the public key as a secret": confused + createHmac("sha256", publicPem).update(confused.slice(0, -1)).digest("base64url"),
    "an unknown critical header": signed(key, claims, { crit: ["x"], x: 1 }),
    "another type": signed(key, claims, { typ: "dpop+jwt" }),
    "another issuer": signed(key, { ...claims, iss: "https://evil.example" }),
    "an issuer with a slash": signed(key, { ...claims, iss: `${url}/` }),
    "no issuer": signed(key, without("iss")),
    "another audience": signed(key, { ...claims, aud: "https://other.example/mcp" }),
    "an audience that is longer": signed(key, { ...claims, aud: `${RESOURCE}/x` }),
    "an audience with a slash": signed(key, { ...claims, aud: `${RESOURCE}/` }),
    "other audiences": signed(key, { ...claims, aud: ["https://other.example/mcp", ""] }),
    "no audience": signed(key, without("aud")),
    "no subject": signed(key, without("sub")),
    "an empty subject": signed(key, { ...claims, sub: "" }),
    "no expiry": signed(key, without("exp")),
    expired: signed(key, { ...claims, exp: claims.exp - 3_600 }),
    "an expiry that is text": signed(key, { ...claims, exp: "never" }),
    "not valid yet": signed(key, { ...claims, nbf: claims.iat + 3_600 }),
    "a changed body": `${header}.${Buffer.from(JSON.stringify({ ...claims, sub: "admin" })).toString("base64url")}.${signature}`,
    "no signature": `${header}.${body}.`,
    "a short signature": `${header}.${body}.${signature.slice(0, 40)}`,
    "an empty signature in zeros": `${header}.${body}.${Buffer.alloc(64).toString("base64url")}`,
    "four parts": `${good}.${signature}`,
    "bound to a key, without a proof": signed(key, { ...claims, cnf: { jkt: "A".repeat(43) } }),
  };
}
