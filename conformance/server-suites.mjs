// The suites for servers. One process of the suite runs all scenarios of a revision.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { alpha, emptyFolder, failure, readYaml, runNamed, runSuite, stable } from "./suites.mjs";

const RUN_LIMIT = 10 * 60_000;

/** Every run, in the order of the table. The file `requirements` lists the scenarios that do not score. */
export const runs = [
  { name: stable.version, suite: stable, selection: ["--suite", "all"] },
  ...["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"].map((revision) => ({
    name: revision,
    suite: alpha,
    selection: ["--suite", "all", "--spec-version", revision],
  })),
  ...["2025-11-25", "2026-07-28"].map((revision) => ({
    name: `${revision} required`,
    suite: alpha,
    selection: ["--requirements", revision],
    requirements: join(alpha.folder, "requirements", `${revision}.yaml`),
  })),
];

/** The runs for servers behind plexus: the newest revision of each era. */
export const bridgedRuns = runs.filter(({ name }) => ["2025-11-25", "2026-07-28"].includes(name));

const wholeSuites = runs.filter((run) => !run.requirements);

/** A run of one scenario only, for debugging. `revision` is the name of a run of a whole suite. */
export function singleRun(scenario, revision) {
  const run = runNamed(revision, wholeSuites);
  const version = run.suite === alpha ? ["--spec-version", revision] : [];
  return { ...run, scenario, selection: ["--scenario", scenario, ...version] };
}

/**
 * Runs one suite against `url`. Returns the checks of each scenario, and the faults of the run itself.
 * All output stays in `folder`.
 */
export async function execute(run, url, folder) {
  emptyFolder(folder);
  const { exit, output } = await runSuite(run.suite, ["server", "--url", url, ...run.selection, "-o", folder], {
    limit: RUN_LIMIT,
    transcript: join(folder, "output.txt"),
  });
  const started = run.scenario
    ? [run.scenario]
    : [...output.matchAll(/^=== Running scenario: (\S+) ===$/gm)].map((match) => match[1]);
  const scenarios = collect(started, readResults(folder), unscored(run));
  const hasFailure = scenarios.some(({ checks }) => checks.some(({ status }) => status === "FAILURE"));
  const faults = exit !== 0 && !hasFailure ? [`the suite ended with ${exit} and no failure`] : [];
  return { scenarios, faults };
}

/**
 * Joins the started scenarios with their results. A scenario without a result crashed in the suite, which
 * does not count that, so it gets a failed check here.
 */
export function collect(started, results, unscored) {
  return started.map((scenario) => ({
    scenario,
    scored: !unscored.has(scenario),
    checks: results.get(scenario) ?? [failure("no-result", "the suite wrote no result: see its output.txt")],
  }));
}

function unscored(run) {
  if (!run.requirements) return new Set();
  const entries = readYaml(run.requirements).not_scored ?? [];
  return new Set(entries.filter(({ leg }) => leg === "server").map(({ scenario }) => scenario));
}

function readResults(folder) {
  const results = new Map();
  for (const entry of readdirSync(folder)) {
    const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(entry)?.[1];
    const checks = join(folder, entry, "checks.json");
    if (scenario && existsSync(checks)) {
      results.set(scenario, JSON.parse(readFileSync(checks, "utf8")));
    }
  }
  return results;
}
