import assert from "node:assert/strict";
import { test } from "node:test";

import { collect, runs, singleRun } from "./server-suites.mjs";
import { count } from "./suites.mjs";

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
