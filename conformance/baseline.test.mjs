import assert from "node:assert/strict";
import { test } from "node:test";

import { judge, validateBaseline } from "./baseline.mjs";

const failure = { run: "2025-11-25", scenario: "tools-list", check: "tools-name-format", status: "FAILURE" };

test("a finding without a line in the baseline is unexplained", () => {
  const other = { expect: "tools-list:another-check", reason: "known" };
  assert.deepEqual(judge([failure], [other]), { explained: [], unexplained: [failure], stale: [other] });
});

test("a line explains a whole scenario or one check of it", () => {
  for (const expect of ["tools-list", "tools-list:tools-name-format", "2025-11-25: tools-list"]) {
    const line = { expect, reason: "known" };
    assert.deepEqual(judge([failure], [line]), { explained: [failure], unexplained: [], stale: [] });
  }
});

test("a line for one run explains no other", () => {
  const line = { expect: "0.1.16: tools-list", reason: "known" };
  assert.deepEqual(judge([failure], [line]).unexplained, [failure]);
});

test("a line that explains nothing is stale", () => {
  const line = { expect: "ping", reason: "was broken once" };
  assert.deepEqual(judge([], [line]).stale, [line]);
});

test("the baseline has a list for each side", () => {
  const baseline = { server: [{ expect: "ping", reason: "known" }], client: [] };
  assert.deepEqual(validateBaseline(baseline, ["server", "client"]), baseline);
  for (const wrong of [null, [], { server: [] }, { server: [], client: null }, { ...baseline, peer: [] }]) {
    assert.throws(() => validateBaseline(wrong, ["server", "client"]));
  }
});

test("the baseline refuses lines without a reason, without a name, twice, or with unknown keys", () => {
  const line = { expect: "ping", reason: "known" };
  for (const wrong of [
    ["ping"],
    [{ expect: "ping" }],
    [{ expect: "ping", reason: " " }],
    [{ reason: "known" }],
    [line, line],
    [{ ...line, revision: "2025-11-25" }],
  ]) {
    assert.throws(() => validateBaseline({ server: wrong }, ["server"]));
  }
});
