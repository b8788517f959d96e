// One principal parks calls with large arguments: memory is bounded, and another principal can park.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { honest, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";

const CALLS = 1_000;
const ARGUMENT_BYTES = 500_000;
const WORKERS = 8;
const MAX_MEMORY_MIB = 256;
const toml = '[policy]\nrules = [{ tool = "honest__guarded", action = "ask" }]\n';

/** Attacks a gateway of its own. */
export function attack({ program }) {
  const prepare = (home) => ({ calm: home.token("calm"), hostile: home.token("hostile") });
  return withGateway(program, { toml, mcpServers: { honest }, args: ["--require-token"], prepare }, async ({ url, gateway, calm, hostile }) => {
    const client = (token) => new Client(url, { token, capabilities: { elicitation: { form: {} } } });
    await client(calm).counts();
    const watch = new Watch(gateway.pid);
    let left = CALLS;
    let parked = 0;
    const flood = async () => {
      const flooding = client(hostile);
      while (left > 0) {
        left -= 1;
        const { result, status } = await flooding.request("tools/call", { name: "honest__guarded", arguments: { n: left, x: "x".repeat(ARGUMENT_BYTES) } });
        assert.ok(status < 500, `status ${status}`);
        if (result?.resultType === "input_required") parked += 1;
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, flood));
    const { result, body } = await client(calm).request("tools/call", { name: "honest__guarded", arguments: {} });
    assert.equal(result?.resultType, "input_required", `another principal cannot park: ${body}`);
    watch.stop();
    const figures = `${parked} of ${CALLS} parked, peak ${watch.peak.memory.toFixed(0)} MiB`;
    if (measurable) assert.ok(watch.peak.memory < MAX_MEMORY_MIB, figures);
    return figures;
  });
}
