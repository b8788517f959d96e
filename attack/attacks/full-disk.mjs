// The disk is full: a write fails with an error, what was acknowledged stays, and calls still work.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { Home, honest } from "../gateway.mjs";

const TEXT_BYTES = 20_000;
const TEXTS = 2_000;

/**
 * No file may grow beyond 8192 blocks, which are 512 or 1024 bytes. The signal is ignored, so that writes
 * fail as on a full disk.
 */
const FULL = "trap '' XFSZ; ulimit -f 8192";

/** Attacks a gateway of its own. */
export async function attack({ program }) {
  const home = new Home(program, { mcpServers: { honest }, toml: '[hub]\nbuiltin = ["context"]\n' });
  try {
    const kept = await served(home, FULL, fill);
    await served(home, undefined, async (client) => {
      for (const n of [0, Math.floor(kept / 2), kept - 1]) {
        const { result, body } = await client.request("tools/call", { name: "context_get", arguments: { key: `k${n}`, namespace: "attack" } });
        assert.ok(result && !result.isError && body.includes(`text ${n} `), `k${n} was acknowledged, and is lost: ${body.slice(0, 200)}`);
      }
    });
    return `${kept} texts before the disk was full`;
  } finally {
    home.remove();
  }
}

/** Stores texts until one is refused; returns how many were acknowledged. */
async function fill(client) {
  for (let n = 0; n < TEXTS; n += 1) {
    const text = { content: `text ${n} ${randomWords()}`, key: `k${n}`, namespace: "attack" };
    const { result, error, status } = await client.request("tools/call", { name: "context_store", arguments: text });
    assert.equal(status, 200);
    if (result && !result.isError) continue;
    assert.ok(n > 0, `nothing was stored: ${JSON.stringify(result ?? error)}`);
    assert.equal(await client.text("honest__echo", { nonce: "full" }), "full");
    return n;
  }
  throw new Error(`${TEXTS} texts of ${TEXT_BYTES} bytes did not fill the disk`);
}

async function served(home, shell, work) {
  const gateway = await home.serve([], { shell });
  try {
    return await work(new Client(gateway.url));
  } finally {
    assert.deepEqual(await gateway.stop(), []);
  }
}

function randomWords() {
  const word = () => Math.random().toString(36).slice(2);
  let text = "";
  while (text.length < TEXT_BYTES) text += `${word()} `;
  return text;
}
