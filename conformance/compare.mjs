// Any server's score by itself and behind the bridge: what it passes alone it must pass there, too.

import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { judge } from "./baseline.mjs";
import { ended, start, within } from "./children.mjs";
import { startFixture } from "./fixture.mjs";
import { bridgedRuns, execute } from "./server-suites.mjs";
import { count, findings } from "./suites.mjs";

const START_LIMIT = 30_000;
const STOP_LIMIT = 10_000;
const PATH = "/mcp";

/** The side whose baseline holds where the bridge speaks a certain era to the server. */
const sides = { legacy: "bridge-legacy-http", modern: "bridge-modern-http" };

/**
 * Scores the server at `url`, or the one that `command` starts on the port that the environment variable
 * PORT names, directly and behind `plexus`, which speaks `era` to it if one is given.
 * Gives a row for each run, what was lost, what only warns, what was gained, and what broke.
 */
export async function compare({ url, command, era, plexus, baseline, results }) {
  const server = url ? { url, stop: async () => [] } : await startServer(command);
  const broken = [];
  try {
    const args = ["bridge", "--http", "127.0.0.1:0", ...(era ? ["--server-era", era] : []), server.url];
    const bridge = await startFixture(plexus, args, join(results, "bridge.log"));
    try {
      const direct = await score("direct", server.url, results);
      const behind = await score("behind", bridge.url, results);
      const { lost, gained } = differences(direct.found, behind.found);
      const { explained, unexplained } = judge(lost, baseline[sides[era ?? "modern"]]);
      broken.push(...direct.broken, ...behind.broken);
      return {
        rows: [...direct.rows, ...behind.rows],
        lost: unexplained.filter(({ status }) => status === "FAILURE"),
        warned: unexplained.filter(({ status }) => status !== "FAILURE"),
        explained,
        gained,
        broken,
      };
    } finally {
      broken.push(...(await bridge.stop()));
    }
  } finally {
    broken.push(...(await server.stop()));
  }
}

/**
 * How findings behind the bridge differ from direct ones: what fails or warns there in scenarios that pass
 * directly and do not warn of the same, and the scenarios that fail directly only.
 */
export function differences(direct, behind) {
  const scenario = ({ revision, scenario }) => `${revision} ${scenario}`;
  const check = (finding) => `${scenario(finding)} ${finding.check}`;
  const failing = (found) => new Set(found.filter(({ status }) => status === "FAILURE").map(scenario));
  const [failingDirectly, failingBehind] = [failing(direct), failing(behind)];
  const known = new Set(direct.map(check));
  return {
    lost: behind.filter((finding) => !failingDirectly.has(scenario(finding)) && !known.has(check(finding))),
    gained: [...failingDirectly].filter((name) => !failingBehind.has(name)),
  };
}

async function score(way, url, results) {
  const scored = { rows: [], found: [], broken: [] };
  for (const run of bridgedRuns) {
    const name = `${way} ${run.name}`;
    const { scenarios, faults } = await execute(run, url, join(results, name.replace(" ", "-")));
    scored.rows.push([name, count(scenarios)]);
    scored.found.push(...findings(name, scenarios).map((finding) => ({ ...finding, revision: run.name })));
    scored.broken.push(...faults.map((fault) => `${name}: ${fault}`));
  }
  return scored;
}

/** Starts a server, and waits until something listens on its port. */
async function startServer([program, ...args]) {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port) };
  const child = start(program, args, { env, stdio: ["ignore", "ignore", "ignore"] });
  const url = `http://127.0.0.1:${port}${PATH}`;
  let exit;
  ended(child).then(
    (code) => (exit = `it ended with ${code}`),
    (error) => (exit = error.message),
  );
  const end = Date.now() + START_LIMIT;
  while (!(await answers(url))) {
    if (exit === undefined && Date.now() < end) {
      await sleep(100);
      continue;
    }
    child.kill("SIGKILL");
    throw new Error(`${program} does not listen on the port that PORT names: ${exit ?? "it takes too long"}`);
  }

  async function stop() {
    if (exit !== undefined) return [`the server did not survive: ${exit}`];
    child.kill("SIGTERM");
    if ((await within(STOP_LIMIT, ended(child))) === undefined) child.kill("SIGKILL");
    return [];
  }

  return { url, stop };
}

/** Whether anything answers at `url`, be it with a refusal. */
async function answers(url) {
  try {
    const response = await fetch(url, { method: "DELETE" });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
