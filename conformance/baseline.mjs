// Validates baseline.yml, the list of known failures with their reasons, and applies it to findings.

/**
 * Validates the parsed baseline file. It has a list of `{ expect, reason }` for each side. `expect` is
 * `scenario` or `scenario:check`; the prefix `run: ` limits it to one run.
 */
export function validateBaseline(baseline, sides) {
  if (Object.keys(baseline ?? {}).toSorted().join() !== sides.toSorted().join()) {
    throw new Error(`the baseline must have the lists ${sides.join(" and ")}, and no others`);
  }
  sides.forEach((side) => validateLines(baseline[side]));
  return baseline;
}

/**
 * Divides findings into those that a baseline line matches (`explained`) and the rest (`unexplained`).
 * `stale` are the baseline lines that match no finding.
 */
export function judge(findings, baseline) {
  const used = new Set();
  const explained = [];
  const unexplained = [];
  for (const finding of findings) {
    const own = [finding.scenario, `${finding.scenario}:${finding.check}`];
    const names = [...own, ...own.map((name) => `${finding.run}: ${name}`)];
    const lines = baseline.filter((line) => names.includes(line.expect));
    lines.forEach((line) => used.add(line));
    (lines.length > 0 ? explained : unexplained).push(finding);
  }
  return { explained, unexplained, stale: baseline.filter((line) => !used.has(line)) };
}

function validateLines(entries) {
  if (!Array.isArray(entries)) {
    throw new Error("the baseline must have a list for each side");
  }
  const seen = new Set();
  for (const entry of entries) {
    const { expect, reason, ...rest } = entry ?? {};
    if (typeof expect !== "string" || expect === "") {
      throw new Error(`a baseline line needs "expect": ${JSON.stringify(entry)}`);
    }
    if (typeof reason !== "string" || reason.trim() === "") {
      throw new Error(`the baseline line for ${expect} needs a reason`);
    }
    if (Object.keys(rest).length > 0) {
      throw new Error(`the baseline line for ${expect} has unknown keys: ${Object.keys(rest).join(", ")}`);
    }
    if (seen.has(expect)) {
      throw new Error(`the baseline lists ${expect} twice`);
    }
    seen.add(expect);
  }
}
