// One principal fills the table of sessions: another one's session stays, and its requests stay fast.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { root } from "../../conformance/fixture.mjs";

import { Client } from "../client.mjs";
import { withGateway } from "../gateway.mjs";
import { percentile } from "../measure.mjs";

/** The size of the table in a short run, and in one of full size. */
const SESSIONS = 2_000;
const FULL_SIZE_SESSIONS = 65_536;

/** The limit of the p99 of a ping. A short run shares the machine with other attacks. */
const PING_LIMIT = 250;
const FULL_SIZE_PING_LIMIT = 5;

const WORKERS = 32;
const FLOOD = 5_000;

/** Attacks a gateway of its own. */
export function attack({ program, fullSize }) {
  const sessions = fullSize ? FULL_SIZE_SESSIONS : SESSIONS;
  const toml = `[limits]\nmax_sessions = ${sessions}\n`;
  const prepare = (home) => ({ calm: home.token("calm"), hostile: home.token("hostile") });
  return withGateway(program, { toml, args: ["--require-token"], prepare }, async ({ url, calm, hostile }) => {
    const victim = fork(join(root, "attack", "ping.mjs"));
    const heard = async (message) => {
      const answer = once(victim, "message");
      victim.send(message);
      return (await answer)[0];
    };
    await heard({ url, token: calm });
    let left = sessions;
    const fill = async () => {
      while (left > 0) {
        left -= 1;
        await opened(url, hostile);
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, fill));
    const end = Date.now() + FLOOD;
    let extra = 0;
    const flood = async () => {
      while (Date.now() < end) {
        await opened(url, hostile);
        extra += 1;
        await sleep(100);
      }
    };
    const [{ times, refused }] = await Promise.all([heard({ milliseconds: FLOOD }), flood()]);
    assert.equal(refused, undefined, "the session of another principal was evicted");
    const p99 = percentile(times, 0.99);
    const limit = fullSize ? FULL_SIZE_PING_LIMIT : PING_LIMIT;
    const figures = `${sessions} sessions and ${extra} more; ping p99 ${p99.toFixed(1)} ms, limit ${limit} ms`;
    assert.ok(p99 < limit, figures);
    return figures;
  });
}

/** Opens a session, or is refused. */
async function opened(url, token) {
  const client = new Client(url, { token, era: "legacy" });
  const params = { protocolVersion: client.revision, capabilities: {}, clientInfo: { name: "flood", version: "1" } };
  const { status } = await client.send(client.message("initialize", params));
  assert.ok([200, 429, 503].includes(status), `initialize: status ${status}`);
}
