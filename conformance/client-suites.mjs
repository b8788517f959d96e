// The suites for clients: every scenario is a start of its own, since a suite that runs many takes
// a client that crashes or hangs for one that passes.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { alpha, emptyFolder, failure, isBad, runNamed, runSuite, stable } from "./suites.mjs";

/** Scenarios that are not run yet: they belong to the extension for skills, which the client does not have. */
const NOT_YET = /^sep-2640-/;

/** Scenarios that measure time, and so have the machine for themselves. */
const ALONE = new Set(["sse-retry"]);

const AT_ONCE = 2;
const LIST_LIMIT = 30_000;
/** A suite ends its client after 30 s. */
const SCENARIO_LIMIT = 45_000;

/** Every run, in the order of the table. The older package does not let its wire be chosen. */
export const runs = [
  { name: stable.version, suite: stable, selection: [] },
  ...["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"].map((revision) => ({
    name: revision,
    suite: alpha,
    selection: ["--spec-version", revision],
  })),
  { name: "extensions", suite: alpha, selection: [], of: "extension" },
];

/** The run of one scenario, for debugging. */
export function singleRun(scenario, revision) {
  return { ...runNamed(revision, runs), scenario };
}

/**
 * Runs the scenarios of one run with `program` as the client, leaving everything in `folder`.
 * Gives the checks of each scenario.
 */
export async function execute(run, program, folder) {
  emptyFolder(folder);
  const names = run.scenario ? [run.scenario] : await list(run, folder);
  const test = async (scenario) => ({
    scenario,
    scored: true,
    checks: await runScenario(run, scenario, program, join(folder, scenario)),
  });
  const together = await inParallel(
    AT_ONCE,
    names.filter((name) => !ALONE.has(name)),
    test,
  );
  const alone = await inParallel(
    1,
    names.filter((name) => ALONE.has(name)),
    test,
  );
  return { scenarios: [...together, ...alone], faults: [] };
}

/**
 * The names in what a suite's `list` printed, without those that are not run yet; where `of` is given,
 * only those that are marked with it.
 */
export function scenariosToRun(listed, of) {
  const lines = [...listed.matchAll(/^\s+- (\S+)(?: \[(.*)\])?/gm)];
  const wanted = lines.filter(([, name, marks]) => !NOT_YET.test(name) && (!of || marks === of));
  return wanted.map(([, name]) => name);
}

/**
 * What the suite itself does not count as a check: how it ended, that the client got to its end,
 * and that anything was checked at all.
 */
export function checksOfEnding({ exit, checks, stdout }) {
  if (!/^finished: /m.test(stdout)) {
    return [failure("client-finished", "the client did not get to its end: see its stderr.txt")];
  }
  if (exit !== 0 && !checks.some(isBad)) {
    return [failure("suite-ended", `the suite ended with ${exit} and no failure: see its output.txt`)];
  }
  if (!checks.some(({ status }) => status === "SUCCESS")) {
    return [failure("something-checked", "the suite checked nothing")];
  }
  return [];
}

async function list(run, folder) {
  const { exit, output } = await runSuite(run.suite, ["list", "--client", ...run.selection], {
    limit: LIST_LIMIT,
    transcript: join(folder, "list.txt"),
  });
  if (exit !== 0) {
    throw new Error(`${run.suite.version} cannot list its scenarios (${exit}): ${output}`);
  }
  return scenariosToRun(output, run.of);
}

async function runScenario(run, scenario, program, folder) {
  // The suite hands its command to a shell: a bare name needs no quotes, and with "exec" it is the
  // client itself that the suite ends when its time is over.
  const command = `exec ./${basename(program)}`;
  const selection = ["--scenario", scenario, ...run.selection];
  const { exit } = await runSuite(run.suite, ["client", "--command", command, ...selection, "-o", folder], {
    limit: SCENARIO_LIMIT,
    transcript: join(folder, "output.txt"),
    cwd: dirname(program),
  });
  const { checks, stdout } = readResult(folder);
  return [...checks, ...checksOfEnding({ exit, checks, stdout })];
}

/** A suite that did not get as far as writing a result leaves nothing to read. */
function readResult(folder) {
  const found = readdirSync(folder, { recursive: true }).find((path) => basename(path) === "checks.json");
  if (!found) return { checks: [], stdout: "" };
  const result = join(folder, dirname(found));
  return {
    checks: JSON.parse(readFileSync(join(result, "checks.json"), "utf8")),
    stdout: readFileSync(join(result, "stdout.txt"), "utf8"),
  };
}

/** Does `work` with every item, with at most `limit` at a time; the results are in order. */
async function inParallel(limit, items, work) {
  const results = [];
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) {
      results[index] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return results;
}
