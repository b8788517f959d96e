// Any server's score by itself, behind the bridge, and behind the gateway beside other servers: what it
// passes alone it must pass there, too.

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

/** The name of the server where it is one of several. */
const NAME = "compared";

/** Ways to put plexus in front of a server: how it is started, and the baseline that holds for an era. */
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

/** What looks for a bare name in a list, where the gateway lists it with the server's name before it. */
const RENAMED = ["json-schema-2020-12:json-schema-2020-12-tool-found"];

/**
 * Scores the server at `url`, or the one that `command` starts on the port that the environment variable
 * PORT names, directly and behind `plexus`, which speaks `era` to it if one is given.
 * Gives a row for each run, how each way differs from the direct one, and what broke.
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

/** The differences, by what they mean: what was renamed, what is explained, what only warns, and what is lost. */
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
 * How findings behind plexus differ from direct ones: what fails or warns there in scenarios that pass
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
