// A server that ends at once, and calls of it: it is not started for every call.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Client } from "../client.mjs";
import { Home, honest, hostile } from "../gateway.mjs";
import { descendants, measurable } from "../measure.mjs";

const CALLS = 100;
const MAX_STARTS = 20;

/** Attacks a gateway of its own with a server that crashes. */
export async function attack({ program }) {
  const home = new Home(program);
  const journal = join(home.folder, "starts");
  home.define({ honest, crashing: hostile("crash-loop", journal) });
  const gateway = await home.serve();
  let result;
  try {
    const client = new Client(gateway.url);
    const starts = () => (existsSync(journal) ? readFileSync(journal, "utf8").split("\n").length - 1 : 0);
    for (let n = 0; n < CALLS; n += 1) {
      const { result, error, body } = await client.request("tools/call", { name: "crashing__work", arguments: { n } });
      assert.ok(error || result?.isError, body);
      assert.equal(await client.text("honest__echo", { nonce: `n${n}` }), `n${n}`);
    }
    assert.ok(starts() > 0, "the server was never started");
    assert.ok(starts() <= MAX_STARTS, `${starts()} starts for ${CALLS} calls`);
    if (measurable) assert.ok(descendants(gateway.pid).length <= 4, "processes of the server are left");
    result = `${starts()} starts for ${CALLS} calls`;
  } finally {
    const faults = await gateway.stop();
    home.remove();
    assert.deepEqual(faults, []);
  }
  return result;
}
