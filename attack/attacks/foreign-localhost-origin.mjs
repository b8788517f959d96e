// Without tokens, a web page of another server on this machine must not use the gateway.

import assert from "node:assert/strict";

import { withGateway } from "../gateway.mjs";
import { exchange, initialize } from "../raw.mjs";

const foreign = (port) => [`http://localhost:${port + 1}`, `http://127.0.0.1:${port - 1}`, "http://localhost", "https://localhost", `http://[::1]:${port + 1}`];

/** Attacks a gateway without tokens from other ports. */
export function attack({ program }) {
  return withGateway(program, {}, async ({ url }) => {
    const port = Number(new URL(url).port);
    for (const origin of foreign(port)) {
      const { statuses } = await exchange(url, initialize(url, { headers: [`Origin: ${origin}`] }));
      assert.deepEqual(statuses, [403], `Origin ${origin}`);
    }
    const own = await exchange(url, initialize(url, { headers: [`Origin: http://127.0.0.1:${port}`] }));
    assert.deepEqual(own.statuses, [200], "its own origin");
    return withGateway(program, { args: ["--allow-origin", "http://localhost:3000"] }, async (allowing) => {
      const { statuses } = await exchange(allowing.url, initialize(allowing.url, { headers: ["Origin: http://localhost:3000"] }));
      assert.deepEqual(statuses, [200], "an origin that is allowed");
    });
  });
}
