import assert from "node:assert/strict";
import { test } from "node:test";

import { differences, sorted } from "./compare.mjs";

const failure = (revision, scenario, check) => ({ revision, scenario, check, status: "FAILURE" });
const warning = (revision, scenario, check) => ({ revision, scenario, check, status: "WARNING" });
const ping = failure("2025-11-25", "ping", "ping-response");
const list = failure("2025-11-25", "tools-list", "tools-name-format");

test("what fails both ways is no difference", () => {
  assert.deepEqual(differences([ping, list], [list, ping]), { lost: [], gained: [] });
});

test("what fails only behind plexus is lost", () => {
  assert.deepEqual(differences([ping], [ping, list]), { lost: [list], gained: [] });
});

test("what fails only directly is gained", () => {
  assert.deepEqual(differences([ping, list], [list]), { lost: [], gained: ["2025-11-25 ping"] });
});

test("a scenario that fails directly may fail for another reason behind plexus", () => {
  const other = failure("2025-11-25", "ping", "wire-schema-valid");
  assert.deepEqual(differences([ping], [other]), { lost: [], gained: [] });
});

test("a warning is lost, too, unless it comes both ways", () => {
  const [one, other] = [warning("2025-11-25", "ping", "a"), warning("2025-11-25", "ping", "b")];
  assert.deepEqual(differences([one], [one, other]), { lost: [other], gained: [] });
});

test("a warning that becomes a failure of the same check is lost", () => {
  const [warned, failed] = [warning("2025-11-25", "ping", "a"), failure("2025-11-25", "ping", "a")];
  assert.deepEqual(differences([warned], [failed]), { lost: [failed], gained: [] });
});

test("revisions are compared each with itself", () => {
  const newer = failure("2026-07-28", "ping", "ping-response");
  assert.deepEqual(differences([ping], [newer]), { lost: [newer], gained: ["2025-11-25 ping"] });
});

test("a check that looks for a bare name in a list is told apart from what is lost", () => {
  const renamed = failure("2025-11-25", "json-schema-2020-12", "json-schema-2020-12-tool-found");
  const kept = failure("2025-11-25", "json-schema-2020-12", "json-schema-2020-12-$defs");
  const found = sorted([], [renamed, kept, ping], [{ expect: "ping", reason: "known" }]);
  assert.deepEqual(found, { gained: [], renamed: [renamed], explained: [ping], lost: [kept], warned: [] });
});

test("what is lost only warns unless it fails", () => {
  const warned = warning("2025-11-25", "ping", "a");
  const found = sorted([], [warned, list], []);
  assert.deepEqual(found, { gained: [], renamed: [], explained: [], lost: [list], warned: [warned] });
});
