// The packages of the official suites: how they are started, and how their results are counted.

import { createWriteStream, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { finished } from "node:stream/promises";

import { ended, start, within } from "./children.mjs";
import { root } from "./fixture.mjs";

const installed = join(root, ".tools", "conformance");
const require = createRequire(join(installed, "package.json"));
const { parse: parseYaml } = require("yaml");

/** The last stable package, which knows revisions up to 2025-11-25. */
export const stable = { version: "0.1.16", folder: join(installed, "node_modules", "conformance-0.1") };

/** The package that knows 2026-07-28. */
export const alpha = {
  version: "0.2.0-alpha.12",
  folder: join(installed, "node_modules", "@modelcontextprotocol", "conformance"),
};

/** Reads a YAML file. */
export function readYaml(path) {
  return parseYaml(readFileSync(path, "utf8"));
}

/** The run called `name`. Throws if there is none, which means a wrong `--revision`. */
export function runNamed(name, runs) {
  const run = runs.find((candidate) => candidate.name === name);
  if (!run) {
    throw new Error(`--scenario needs --revision, one of: ${runs.map((candidate) => candidate.name).join(", ")}`);
  }
  return run;
}

/** Creates `folder`, after deleting its former contents. */
export function emptyFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

/**
 * Runs a suite's program, for at most `limit` milliseconds. Returns its exit status and its output.
 * The output is also written to the file `transcript`.
 */
export async function runSuite(suite, args, { limit, transcript, ...options }) {
  mkdirSync(dirname(transcript), { recursive: true });
  const written = createWriteStream(transcript);
  const child = start(process.execPath, [join(suite.folder, "dist", "index.js"), ...args], options);
  child.stdout.pipe(written, { end: false });
  child.stderr.pipe(written, { end: false });

  let exit = await within(limit, ended(child));
  if (exit === undefined) {
    child.kill("SIGKILL");
    exit = `killed after ${limit / 1000} s`;
  }
  written.end();
  await finished(written);
  return { exit, output: readFileSync(transcript, "utf8") };
}

/** A failed check of our own, in the format of the suite's checks. */
export function failure(id, errorMessage) {
  return { id, status: "FAILURE", errorMessage };
}

/** Counts the scored checks by status, and the passed scenarios, separately for scored and unscored ones. */
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
    checks.filter(isBad).map(({ id, status, errorMessage, description }) => ({
      run,
      scenario,
      scored,
      check: id,
      status,
      message: errorMessage ?? description ?? "",
    })),
  );
}

/** Whether a check found something wrong. */
export function isBad({ status }) {
  return status === "FAILURE" || status === "WARNING";
}
