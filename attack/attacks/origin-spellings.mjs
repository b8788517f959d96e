// Origins of foreign web pages in every spelling.

import assert from "node:assert/strict";

import { exchange, head, initialize } from "../raw.mjs";

const foreign = [
  "null",
  "https://evil.example",
  "http://127.0.0.1.evil.example",
  "http://localhost.evil.example",
  "http://127.0.0.1@evil.example",
  "http://evil.example/http://127.0.0.1",
  "http://evil.example#@127.0.0.1",
  "http://evil.example, http://127.0.0.1",
  "file://",
  "file://127.0.0.1",
  "chrome-extension://127.0.0.1",
  "https://[::1].evil.example",
  "http://127.0.0.1\\.evil.example",
  "http:127.0.0.1",
  "//127.0.0.1",
  "127.0.0.1",
  "",
];

/** Attacks with foreign origins. */
export async function attack({ url, tokens }) {
  const token = tokens.hostile;
  await Promise.all(
    foreign.map(async (origin) => {
      const { statuses } = await exchange(url, initialize(url, { token, headers: [`Origin: ${origin}`] }));
      assert.ok(statuses.every((status) => status >= 400), `Origin ${JSON.stringify(origin)}: ${statuses}`);
      const { text } = await exchange(url, preflight(url, origin));
      assert.ok(!/access-control-allow-origin/i.test(text), `Origin ${JSON.stringify(origin)} may read answers`);
    }),
  );
  const two = await exchange(url, initialize(url, { token, headers: [`Origin: ${new URL(url).origin}`, "Origin: https://evil.example"] }));
  assert.ok(two.statuses.every((status) => status >= 400), `two origins: ${two.statuses}`);
  const own = await exchange(url, initialize(url, { token, headers: [`Origin: ${new URL(url).origin}`] }));
  assert.deepEqual(own.statuses, [200], "its own origin");
  return `${foreign.length} spellings`;
}

function preflight(url, origin) {
  return head("OPTIONS /mcp HTTP/1.1", [`Host: ${new URL(url).host}`, `Origin: ${origin}`, "Access-Control-Request-Method: POST", "Connection: close"]);
}
