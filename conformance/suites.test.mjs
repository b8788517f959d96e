import assert from "node:assert/strict";
import { test } from "node:test";

import { collect, count, findings, runs, singleRun } from "./suites.mjs";

const check = (id, status) => ({ id, status, errorMessage: `${id} says ${status}` });

test("both packages and every revision they know are run", () => {
  assert.deepEqual(
    runs.map((run) => run.name),
    [
      "0.1.16",
      "2025-03-26",
      "2025-06-18",
      "2025-11-25",
      "2026-07-28",
      "2025-11-25 required",
      "2026-07-28 required",
    ],
  );
});

test("a scenario that left no result counts as a failure", () => {
  const scenarios = collect(["ping"], new Map(), new Set());
  assert.equal(count(scenarios).FAILURE, 1);
  assert.deepEqual(count(scenarios).scored, { passed: 0, total: 1 });
});

test("checks are counted by status, and unscored scenarios apart", () => {
  const results = new Map([
    ["ping", [check("ping", "SUCCESS"), check("trace", "INFO")]],
    ["tools-list", [check("format", "WARNING"), check("later", "SKIPPED")]],
    ["tasks-lifecycle", [check("create", "FAILURE")]],
  ]);
  const scenarios = collect([...results.keys()], results, new Set(["tasks-lifecycle"]));
  assert.deepEqual(count(scenarios), {
    scored: { passed: 2, total: 2 },
    unscored: { passed: 0, total: 1 },
    SUCCESS: 1,
    FAILURE: 0,
    WARNING: 1,
    SKIPPED: 1,
  });
  assert.deepEqual(
    findings({ name: "2026-07-28" }, scenarios).map(({ scenario, check, status, scored }) => [
      `${scenario}:${check}`,
      status,
      scored,
    ]),
    [
      ["tools-list:format", "WARNING", true],
      ["tasks-lifecycle:create", "FAILURE", false],
    ],
  );
});

test("a single scenario needs the name of a run of a whole suite", () => {
  assert.deepEqual(singleRun("ping", "2025-11-25").selection, [
    "--scenario",
    "ping",
    "--spec-version",
    "2025-11-25",
  ]);
  assert.deepEqual(singleRun("ping", "0.1.16").selection, ["--scenario", "ping"]);
  assert.throws(() => singleRun("ping", "2026-07-28 required"));
  assert.throws(() => singleRun("ping", undefined));
});
