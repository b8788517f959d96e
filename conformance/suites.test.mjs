import assert from "node:assert/strict";
import { test } from "node:test";

import { count, findings } from "./suites.mjs";

const check = (id, status) => ({ id, status, errorMessage: `${id} says ${status}` });

test("checks are counted by status, and unscored scenarios apart", () => {
  const scenarios = [
    { scenario: "ping", scored: true, checks: [check("ping", "SUCCESS"), check("trace", "INFO")] },
    { scenario: "tools-list", scored: true, checks: [check("format", "WARNING"), check("later", "SKIPPED")] },
    { scenario: "tasks-lifecycle", scored: false, checks: [check("create", "FAILURE")] },
  ];
  assert.deepEqual(count(scenarios), {
    scored: { passed: 2, total: 2 },
    unscored: { passed: 0, total: 1 },
    SUCCESS: 1,
    FAILURE: 0,
    WARNING: 1,
    SKIPPED: 1,
  });
  assert.deepEqual(
    findings("server 2026-07-28", scenarios).map(({ scenario, check, status, scored }) => [
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
