// Runs the official MCP conformance suites and prints one table.
// Succeeds only if every failure and warning has a line in baseline.yml, and every line is needed.

import { join } from "node:path";
import { parseArgs } from "node:util";

import { judge, validateBaseline } from "./baseline.mjs";
import { fixtureProgram, root, startFixture, target } from "./fixture.mjs";
import { count, execute, findings, readYaml, runs, singleRun } from "./suites.mjs";
import { table } from "./table.mjs";

const USAGE = `usage: conformance/run [--server PROGRAM | --url URL] [--scenario NAME --revision REVISION]

  --server PROGRAM   start this fixture server instead of the one in target/quick
                     (so does PLEXUS_FIXTURE_SERVER)
  --url URL          test the server that is listening there
  --scenario NAME    run one scenario and print all it checked
  --revision NAME    with --scenario: ${runs.filter((run) => !run.requirements).map((run) => run.name).join(", ")}`;

const results = join(target, "conformance");

async function main() {
  const { values: options } = parseArgs({
    options: {
      server: { type: "string" },
      url: { type: "string" },
      scenario: { type: "string" },
      revision: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const single = options.scenario || options.revision ? singleRun(options.scenario, options.revision) : undefined;
  if (options.url) {
    return single ? debug(single, options.url) : runAll(options.url);
  }

  const fixture = await startFixture(
    fixtureProgram(options.server),
    ["--http", "127.0.0.1:0"],
    join(results, "server.log"),
  );
  let passed = false;
  try {
    passed = single ? await debug(single, fixture.url) : await runAll(fixture.url);
  } finally {
    const faults = await fixture.stop();
    faults.forEach((fault) => console.log(fault));
    passed &&= faults.length === 0;
  }
  return passed;
}

async function runAll(url) {
  const baseline = validateBaseline(readYaml(join(root, "conformance", "baseline.yml")));
  const rows = [];
  const found = [];
  const broken = [];
  for (const run of runs) {
    const { exit, scenarios } = await execute(run, url, join(results, run.name.replace(" ", "-")));
    const counted = count(scenarios);
    rows.push([
      run.suite.version === run.name ? run.name : `${run.suite.version} ${run.name}`,
      `${counted.scored.passed}/${counted.scored.total}`,
      counted.SUCCESS,
      counted.FAILURE,
      counted.WARNING,
      counted.SKIPPED,
      counted.unscored.total === 0 ? "" : `${counted.unscored.passed}/${counted.unscored.total}`,
    ]);
    found.push(...findings(run, scenarios));
    if (scenarios.length === 0) {
      broken.push(`${run.name}: no scenario ran`);
    } else if (exit !== 0 && counted.FAILURE === 0) {
      broken.push(`${run.name}: the suite ended with ${exit} and no failure`);
    }
  }

  const { explained, unexplained, stale } = judge(
    found.filter((finding) => finding.scored),
    baseline,
  );
  console.log(table(["suite", "scenarios", "success", "failure", "warning", "skipped", "unscored"], rows));
  report("failing, but not scored by the suite", unscoredNames(found));
  report("explained by the baseline", explained.map(describe));
  report("FAILED", [
    ...unexplained.map(describe),
    ...stale.map((line) => `baseline.yml: nothing needs ${line.expect} any more`),
    ...broken,
  ]);
  console.log(`\nresults: ${results}`);
  return unexplained.length + stale.length + broken.length === 0;
}

async function debug(run, url) {
  const { exit, scenarios } = await execute(run, url, join(results, "single"));
  for (const { checks } of scenarios) {
    console.log(JSON.stringify(checks, null, 2));
  }
  const { SUCCESS, FAILURE, WARNING } = count(scenarios);
  console.log(`${run.scenario} ${run.name}: ${SUCCESS} succeeded, ${FAILURE} failed, ${WARNING} warned`);
  console.log(`results: ${join(results, "single")}`);
  return exit === 0 && FAILURE + WARNING === 0;
}

function report(title, lines) {
  if (lines.length > 0) {
    console.log(`\n${title}:`);
    lines.forEach((line) => console.log(`  ${line}`));
  }
}

function describe({ run, scenario, check, status, message }) {
  const [firstLine] = message.split("\n");
  return `${run}: ${scenario}:${check} ${status} ${firstLine.slice(0, 300)}`.trimEnd();
}

function unscoredNames(found) {
  const failing = found.filter((finding) => !finding.scored && finding.status === "FAILURE");
  return [...new Set(failing.map((finding) => `${finding.run}: ${finding.scenario}`))];
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`conformance/run: ${error.message}`);
  process.exitCode = 2;
}
