// Bodies that are no messages, or break a limit: each is refused, and the next request is answered.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";

const deep = (open, close, depth) => open.repeat(depth) + close.repeat(depth);
const request = (params) => `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`;

const bodies = {
  empty: "",
  "no JSON": "{",
  NUL: "\u0000",
  "no UTF-8": Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
  "a byte order mark": "\ufeff{}",
  "deep arrays": deep("[", "]", 100_000),
  "deep objects": `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`,
  "deep params": request(deep("[", "]", 5_000)),
  "a number that overflows": request('{"cursor":1e999999}'),
  "a lone surrogate": request('{"cursor":"\\ud800"}'),
  "no object": "[1,2,3]",
  "an empty batch": "[]",
  "a long batch": JSON.stringify(Array.from({ length: 1_000 }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }))),
  "a message above the limit": request(`{"cursor":"${"x".repeat(1_200_000)}"}`),
  "an id that is an object": '{"jsonrpc":"2.0","id":{},"method":"ping"}',
  "an id that is null": '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  "another version": '{"jsonrpc":"1.0","id":1,"method":"ping"}',
  "a cursor that was not given": request('{"cursor":"AAAA"}'),
  "a cursor of another type": request('{"cursor":{"a":1}}'),
  "an answer to nothing": '{"jsonrpc":"2.0","id":77,"result":{}}',
};

/** Attacks the decoders. */
export async function attack({ url, tokens }) {
  const client = await new Client(url, { token: tokens.hostile, era: "legacy" }).open();
  const alive = async (name) => assert.equal((await client.request("ping")).status, 200, `after ${name}`);
  for (const [name, body] of Object.entries(bodies)) {
    const answer = await client.send({}, { body }).catch((error) => ({ status: 0, error }));
    const failed = answer.status >= 400 || answer.status === 0 || answer.messages.every(({ error }) => error);
    const ignored = answer.status === 202 && name === "an answer to nothing";
    assert.ok(failed || ignored, `${name}: status ${answer.status}, ${answer.body}`);
    assert.ok(answer.status < 500, `${name}: status ${answer.status}`);
    await alive(name);
  }
  for (const headers of [{ "content-type": "text/plain" }, { accept: "text/html" }, { "mcp-protocol-version": "9999-99-99" }]) {
    const { status } = await client.request("ping", {}, { headers });
    assert.ok(status >= 400 && status < 500, `${JSON.stringify(headers)}: status ${status}`);
  }
  await alive("headers");
  return `${Object.keys(bodies).length} bodies`;
}
