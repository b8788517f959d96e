// Requests whose length two parsers may read differently: a second request in the body is never answered.

import assert from "node:assert/strict";

import { exchange, head } from "../raw.mjs";

const SMUGGLED = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/** The header lines of each request, before its body, which is a chunked end and then another request. */
const lengths = {
  "length and chunked": ["Content-Length: 5", "Transfer-Encoding: chunked"],
  "chunked and length": ["Transfer-Encoding: chunked", "Content-Length: 5"],
  "two lengths": ["Content-Length: 5", "Content-Length: 60"],
  "a list of lengths": ["Content-Length: 5, 60"],
  "a signed length": ["Content-Length: +5"],
  "a negative length": ["Content-Length: -5"],
  "a hexadecimal length": ["Content-Length: 0x5"],
  "a length that overflows": ["Content-Length: 18446744073709551621"],
  "a space before the colon": ["Transfer-Encoding : chunked", "Content-Length: 5"],
  "a vertical tab": ["Transfer-Encoding: \u000bchunked", "Content-Length: 5"],
  "a NUL": ["Transfer-Encoding: chunked\u0000", "Content-Length: 5"],
  "chunked is not last": ["Transfer-Encoding: chunked, identity"],
  "an unknown coding": ["Transfer-Encoding: xchunked"],
  "a folded line": ["Transfer-Encoding:", " chunked", "Content-Length: 5"],
  "a line feed in a value": ["X: y\nTransfer-Encoding: chunked", "Content-Length: 5"],
};

const bodies = {
  "a chunk size with a sign": "+5\r\nhello\r\n0\r\n\r\n",
  "a chunk size with a prefix": "0x5\r\nhello\r\n0\r\n\r\n",
  "a chunk size that overflows": "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
  "a chunk without its end": "5\r\nhelloXX0\r\n\r\n",
  "an endless chunk extension": `5;${"x".repeat(40_000)}\r\nhello\r\n0\r\n\r\n`,
};

/** Attacks with requests of two readings. */
export async function attack({ url, tokens }) {
  const common = [`Host: ${new URL(url).host}`, "Content-Type: application/json", "Accept: application/json, text/event-stream", `Authorization: Bearer ${tokens.hostile}`];
  const requests = [
    ...Object.entries(lengths).map(([name, lines]) => [name, head("POST /mcp HTTP/1.1", [...common, ...lines]) + "0\r\n\r\n"]),
    ...Object.entries(bodies).map(([name, body]) => [name, head("POST /mcp HTTP/1.1", [...common, "Transfer-Encoding: chunked"]) + body]),
  ];
  await Promise.all(
    requests.map(async ([name, request]) => {
      const { statuses } = await exchange(url, request + SMUGGLED);
      // What is not one request in every reading is refused, or its connection is closed after it.
      assert.ok(!statuses.includes(200), `${name}: the smuggled request was answered (${statuses})`);
      assert.ok(statuses.length <= 1, `${name}: ${statuses.length} answers (${statuses})`);
    }),
  );
  // The same request is answered where it is one of its own.
  const { statuses } = await exchange(url, SMUGGLED.replace("127.0.0.1", new URL(url).host), 500);
  assert.deepEqual(statuses, [200]);
  return `${requests.length} requests`;
}
