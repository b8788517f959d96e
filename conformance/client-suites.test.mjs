import assert from "node:assert/strict";
import { test } from "node:test";

import { checksOfEnding, runs, scenariosToRun, singleRun } from "./client-suites.mjs";

const good = { exit: 0, stdout: "finished: 1 tool calls\n", checks: [{ id: "called", status: "SUCCESS" }] };

test("both packages and every revision with scenarios for clients are run", () => {
  assert.deepEqual(
    runs.map((run) => run.name),
    ["0.1.16", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "extensions"],
  );
});

const listed = `Client scenarios (test against a client):
  - tools_call [2025-11-25]
  - auth/dpop [extension]
  - sep-2640-client-no-prefetch [extension]
`;

test("scenarios of skills are listed, but not run yet", () => {
  assert.deepEqual(scenariosToRun(listed), ["tools_call", "auth/dpop"]);
});

test("extensions are run by themselves", () => {
  assert.deepEqual(scenariosToRun(listed, "extension"), ["auth/dpop"]);
});

test("a client that got to its end needs no further check", () => {
  assert.deepEqual(checksOfEnding(good), []);
});

test("a client that crashed fails, although the suite is content", () => {
  assert.equal(checksOfEnding({ ...good, stdout: "" })[0].id, "client-finished");
});

test("a suite that fails for another reason than its checks is a failure", () => {
  assert.equal(checksOfEnding({ ...good, exit: 1 })[0].id, "suite-ended");
});

test("a failure that the suite counts itself is not counted twice", () => {
  const checks = [{ id: "called", status: "WARNING" }, ...good.checks];
  assert.deepEqual(checksOfEnding({ ...good, exit: 1, checks }), []);
});

test("a scenario in which nothing succeeded is a failure", () => {
  assert.equal(checksOfEnding({ ...good, checks: [{ id: "later", status: "SKIPPED" }] })[0].id, "something-checked");
});

test("a single scenario needs the name of a run", () => {
  assert.equal(singleRun("sse-retry", "0.1.16").scenario, "sse-retry");
  assert.throws(() => singleRun("sse-retry", "2024-11-05"));
});
