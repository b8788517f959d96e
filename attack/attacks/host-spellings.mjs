// Host names of other machines in every spelling: DNS rebinding.

import assert from "node:assert/strict";

import { exchange, initialize } from "../raw.mjs";

const foreign = [
  "evil.example",
  "127.0.0.1.evil.example",
  "localhost.evil.example",
  "evil.example:80@127.0.0.1",
  "127.0.0.1@evil.example",
  "127.0.0.1/evil.example",
  "127.0.0.1, evil.example",
  "127.0.0.1 evil.example",
  "127.0.0.2.",
  "[::1].evil.example",
  "[::1",
  "0x7f.1",
  "2130706433",
  "0.0.0.0",
  "loc\u00e4lhost",
  "127.0.0.1:port",
  "127.0.0.1:99999",
  "",
];

/** Attacks with foreign hosts. */
export async function attack({ url, tokens }) {
  const token = tokens.hostile;
  const { port } = new URL(url);
  const requests = [
    ...foreign.map((host) => [JSON.stringify(host), { host }]),
    ["no host", { host: null }],
    ["two hosts", { headers: ["Host: evil.example"] }],
    ["a foreign target", { target: "http://evil.example/mcp" }],
    ["a foreign target with a good host", { target: `http://evil.example:${port}/mcp` }],
  ];
  await Promise.all(
    requests.map(async ([name, request]) => {
      const { statuses } = await exchange(url, initialize(url, { token, ...request }));
      assert.ok(statuses.every((status) => status >= 400), `${name}: ${statuses}`);
    }),
  );
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`]) {
    const { statuses } = await exchange(url, initialize(url, { token, host }));
    assert.deepEqual(statuses, [200], `${host} is this machine`);
  }
  return `${requests.length} spellings`;
}
