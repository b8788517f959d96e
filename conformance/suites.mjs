// The official suites: which runs there are, how each is started, and how its results are read.

import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { finished } from "node:stream/promises";

import { ended, start, within } from "./children.mjs";
import { root } from "./fixture.mjs";

const RUN_LIMIT = 10 * 60_000;

const installed = join(root, ".tools", "conformance");
const require = createRequire(join(installed, "package.json"));
const { parse: parseYaml } = require("yaml");

const stable = { version: "0.1.16", folder: join(installed, "node_modules", "conformance-0.1") };
const alpha = {
  version: "0.2.0-alpha.12",
  folder: join(installed, "node_modules", "@modelcontextprotocol", "conformance"),
};

/** Every run, in the order of the table. A run with a requirement set knows what it does not score. */
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

/** The run of one scenario, for debugging. `revision` is the name of a run of a whole suite. */
export function singleRun(scenario, revision) {
  const run = runs.find((candidate) => candidate.name === revision && !candidate.requirements);
  if (!run) {
    const names = runs.filter((candidate) => !candidate.requirements).map((candidate) => candidate.name);
    throw new Error(`--scenario needs --revision, one of: ${names.join(", ")}`);
  }
  const version = run.suite === alpha ? ["--spec-version", revision] : [];
  return { ...run, scenario, selection: ["--scenario", scenario, ...version] };
}

/** Reads a YAML file. */
export function readYaml(path) {
  return parseYaml(readFileSync(path, "utf8"));
}

/**
 * Runs one suite against `url`, leaving everything it wrote in `folder`.
 * Gives the checks of each scenario, and how the suite ended.
 */
export async function execute(run, url, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const transcript = join(folder, "output.txt");
  const written = createWriteStream(transcript);
  const program = join(run.suite.folder, "dist", "index.js");
  const child = start(process.execPath, [program, "server", "--url", url, ...run.selection, "-o", folder]);
  child.stdout.pipe(written, { end: false });
  child.stderr.pipe(written, { end: false });

  let exit = await within(RUN_LIMIT, ended(child));
  if (exit === undefined) {
    child.kill("SIGKILL");
    exit = `killed after ${RUN_LIMIT / 60_000} minutes`;
  }
  written.end();
  await finished(written);

  const output = readFileSync(transcript, "utf8");
  const started = run.scenario
    ? [run.scenario]
    : [...output.matchAll(/^=== Running scenario: (\S+) ===$/gm)].map((match) => match[1]);
  return { exit, scenarios: collect(started, readResults(folder), unscored(run)) };
}

/**
 * Joins the scenarios that were started with the results that were written.
 * A scenario without a result crashed in the suite, which only prints that: it counts as a failure.
 */
export function collect(started, results, unscored) {
  return started.map((scenario) => ({
    scenario,
    scored: !unscored.has(scenario),
    checks: results.get(scenario) ?? [
      { id: "no-result", status: "FAILURE", errorMessage: "the suite wrote no result: see its output.txt" },
    ],
  }));
}

/** Counts a run's checks by status, and the scenarios without a failure, scored and not. */
export function count(scenarios) {
  const passes = (list) => {
    const passed = list.filter(({ checks }) => !checks.some(({ status }) => status === "FAILURE"));
    return { passed: passed.length, total: list.length };
  };
  const scored = scenarios.filter((scenario) => scenario.scored);
  const statuses = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0 };
  for (const { status } of scored.flatMap(({ checks }) => checks)) {
    if (status in statuses) statuses[status] += 1;
  }
  return {
    scored: passes(scored),
    unscored: passes(scenarios.filter((scenario) => !scenario.scored)),
    ...statuses,
  };
}

/** Every check that failed or warned, as flat records. */
export function findings(run, scenarios) {
  return scenarios.flatMap(({ scenario, scored, checks }) =>
    checks
      .filter(({ status }) => status === "FAILURE" || status === "WARNING")
      .map(({ id, status, errorMessage, description }) => ({
        run: run.name,
        scenario,
        scored,
        check: id,
        status,
        message: errorMessage ?? description ?? "",
      })),
  );
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
