// Runs the suites against any server three times: directly, behind the bridge, and behind the gateway
// together with other servers. A scenario that passes directly must also pass behind plexus.

import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { judge } from "./baseline.mjs";
import { ended, start, within } from "./children.mjs";
import { startFixture } from "./fixture.mjs";
import { startGateway } from "./gateway.mjs";
import { bridgedRuns, execute } from "./server-suites.mjs";
import { count, findings } from "./suites.mjs";

const START_LIMIT = 30_000;
const STOP_LIMIT = 10_000;
const PATH = "/mcp";

/** The name of the compared server in the gateway's configuration. */
const NAME = "compared";

/** Ways to put plexus in front of a server: how to start plexus, and the side of the baseline for an era. */
const ways = {
  bridge: {
    open: ({ plexus, url, era, log }) => {
      const args = ["bridge", "--http", "127.0.0.1:0", ...(era ? ["--server-era", era] : []), url];
      return startFixture(plexus, args, log);
    },
    side: (era) => `bridge-${era}-http`,
  },
  serve: {
    open: ({ plexus, url, era, log }) => startGateway(plexus, NAME, { type: "http", url, era }, log),
    side: (era) => `serve-${era}`,
  },
};

/** Checks that look for a tool's own name in a list. They fail behind the gateway, which adds a prefix. */
const RENAMED = ["json-schema-2020-12:json-schema-2020-12-tool-found"];

/**
 * Runs the suites against the server at `url` directly and behind `plexus`. Without `url`, `command` starts
 * the server, which listens on the port in the environment variable PORT. With `era`, plexus uses this era.
 * Returns a table row for each run, the differences of each way from the direct run, and other faults.
 */
export async function compare({ url, command, era, plexus, baseline, results }) {
  const server = url ? { url, stop: async () => [] } : await startServer(command);
  const broken = [];
  try {
    const direct = await score("direct", server.url, results);
    const outcome = { rows: direct.rows, behind: [], broken };
    broken.push(...direct.broken);
    for (const [way, { open, side }] of Object.entries(ways)) {
      const front = await open({ plexus, url: server.url, era, log: join(results, `${way}.log`) });
      try {
        const scored = await score(way, front.url, results);
        outcome.rows.push(...scored.rows);
        outcome.behind.push({ way, ...sorted(direct.found, scored.found, baseline[side(era ?? "modern")]) });
        broken.push(...scored.broken);
      } finally {
        broken.push(...(await front.stop()));
      }
    }
    return outcome;
  } finally {
    broken.push(...(await server.stop()));
  }
}

/** The differences, grouped: renamed tools, explained by the baseline, only warnings, and failures (`lost`). */
export function sorted(direct, behind, baseline) {
  const { lost, gained } = differences(direct, behind);
  const isRenamed = ({ scenario, check }) => RENAMED.includes(`${scenario}:${check}`);
  const { explained, unexplained } = judge(
    lost.filter((finding) => !isRenamed(finding)),
    baseline,
  );
  return {
    gained,
    renamed: lost.filter(isRenamed),
    explained,
    lost: unexplained.filter(({ status }) => status === "FAILURE"),
    warned: unexplained.filter(({ status }) => status !== "FAILURE"),
  };
}

/**
 * Compares findings behind plexus with direct ones. `lost` are findings behind plexus in scenarios that
 * pass directly, except those of a check that has the same status directly: a warning that becomes a
 * failure is lost. `gained` are scenarios that fail only directly.
 */
export function differences(direct, behind) {
  const scenario = ({ revision, scenario }) => `${revision} ${scenario}`;
  const outcome = (finding) => `${scenario(finding)} ${finding.check} ${finding.status}`;
  const failing = (found) => new Set(found.filter(({ status }) => status === "FAILURE").map(scenario));
  const [failingDirectly, failingBehind] = [failing(direct), failing(behind)];
  const known = new Set(direct.map(outcome));
  return {
    lost: behind.filter((finding) => !failingDirectly.has(scenario(finding)) && !known.has(outcome(finding))),
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

/** Starts a server, and waits until it answers on its port. */
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

/** Whether `url` answers a request, with any HTTP status. */
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
