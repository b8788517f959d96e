// The suites for clients. Each scenario runs in its own process of the suite: a suite that runs several
// scenarios counts a client that crashes or hangs as passed.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { alpha, emptyFolder, failure, isBad, runNamed, runSuite, stable } from "./suites.mjs";

/** Scenarios that are not run yet: they belong to the extension for skills, which the client does not have. */
const NOT_YET = /^sep-2640-/;

/** Scenarios that measure time. They run alone, so that others do not slow them down. */
const ALONE = new Set(["sse-retry"]);

const AT_ONCE = 2;
const LIST_LIMIT = 30_000;
/** A suite ends its client after 30 s. */
const SCENARIO_LIMIT = 45_000;

/** Every run, in the order of the table. The stable package has no option for the revision. */
export const runs = [
  { name: stable.version, suite: stable, selection: [] },
  ...["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"].map((revision) => ({
    name: revision,
    suite: alpha,
    selection: ["--spec-version", revision],
  })),
  { name: "extensions", suite: alpha, selection: [], of: "extension" },
];

/** A run of one scenario only, for debugging. */
export function singleRun(scenario, revision) {
  return { ...runNamed(revision, runs), scenario };
}

/**
 * Runs the scenarios of one run with `program` as the client. Returns the checks of each scenario.
 * All output stays in `folder`.
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
 * The scenario names in `listed`, the output of a suite's `list` command, without those of `NOT_YET`.
 * With `of`, only the scenarios with this mark.
 */
export function scenariosToRun(listed, of) {
  const lines = [...listed.matchAll(/^\s+- (\S+)(?: \[(.*)\])?/gm)];
  const wanted = lines.filter(([, name, marks]) => !NOT_YET.test(name) && (!of || marks === of));
  return wanted.map(([, name]) => name);
}

/**
 * Our own checks of a scenario, in addition to those of the suite: the client ran to its end, a failed
 * suite reported a failed check, and at least one check succeeded.
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
  // The suite runs the command in a shell. A bare name needs no quotes. "exec" replaces the shell by the
  // client, so that the suite kills the client, and not only the shell, after its timeout.
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

/** The checks and the client's output that the suite wrote; both are empty if it wrote no result. */
function readResult(folder) {
  const found = readdirSync(folder, { recursive: true }).find((path) => basename(path) === "checks.json");
  if (!found) return { checks: [], stdout: "" };
  const result = join(folder, dirname(found));
  return {
    checks: JSON.parse(readFileSync(join(result, "checks.json"), "utf8")),
    stdout: readFileSync(join(result, "stdout.txt"), "utf8"),
  };
}

/** Calls `work` for every item, at most `limit` at a time. The results have the order of the items. */
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
