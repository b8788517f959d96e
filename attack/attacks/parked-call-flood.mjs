// One principal parks calls with large arguments: memory is bounded, and another principal can park.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";
import { honest, withGateway } from "../gateway.mjs";
import { Watch, measurable } from "../measure.mjs";

const CALLS = 300;
const FULL_SIZE_CALLS = 1_000;
const ARGUMENT_BYTES = 500_000;
const WORKERS = 8;

/** How much more than at the start may be held: less than the arguments of all calls. */
const MAX_GROWTH_MIB = 140;
const toml = '[policy]\nrules = [{ tool = "honest__guarded", action = "ask" }]\n';

/** Attacks a gateway of its own. */
export function attack({ program, fullSize }) {
  const prepare = (home) => ({ calm: home.token("calm"), hostile: home.token("hostile") });
  return withGateway(program, { toml, mcpServers: { honest }, args: ["--require-token"], prepare }, async ({ url, gateway, calm, hostile }) => {
    const client = (token) => new Client(url, { token, capabilities: { elicitation: { form: {} } } });
    await client(calm).counts();
    const watch = new Watch(gateway.pid);
    const start = measurable ? watch.sample().memory : 0;
    const calls = fullSize ? FULL_SIZE_CALLS : CALLS;
    let left = calls;
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
    const figures = `${parked} of ${calls} parked, start ${start.toFixed(0)} MiB, peak ${watch.peak.memory.toFixed(0)} MiB`;
    if (measurable) assert.ok(watch.peak.memory < start + MAX_GROWTH_MIB, figures);
    return figures;
  });
}
