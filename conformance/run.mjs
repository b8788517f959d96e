// Runs the official MCP conformance suites and prints one table.
// Succeeds only if each failure and warning matches a line of baseline.yml, and each line has a match.

import { join } from "node:path";
import { parseArgs } from "node:util";

import { judge, validateBaseline } from "./baseline.mjs";
import * as clientSuites from "./client-suites.mjs";
import { compare } from "./compare.mjs";
import { clientProgram, fixtureProgram, plexusProgram, root, startFixture, target } from "./fixture.mjs";
import { startGateway } from "./gateway.mjs";
import * as serverSuites from "./server-suites.mjs";
import { count, findings, readYaml } from "./suites.mjs";
import { table } from "./table.mjs";

const USAGE = `usage: conformance/run [SIDE] [OPTION...]
       conformance/run compare (--url URL | -- COMMAND...)

The sides are server and client, and
  bridge-ERA-TRANSPORT  the fixture server behind plexus bridge, where it speaks one era (legacy or modern)
                        over one transport (stdio or http); bridge means all four
  serve-ERA             the fixture server behind plexus serve, beside two other servers; serve means both
Without a side, everything is tested.

compare scores any server by itself, behind plexus bridge, and behind plexus serve beside two other servers,
and fails if it does worse there. Scenarios that look for a tool's bare name in a list cannot pass behind
serve, which lists it as NAME__TOOL: they are named separately, and do not count.
The command must listen on the port that the environment variable PORT names, at /mcp.

  --server PROGRAM   start this fixture server instead of the one in target/debug
                     (so does PLEXUS_FIXTURE_SERVER)
  --url URL          test the server that is listening there, and no client
  --client PROGRAM   test this client instead of the one in target/debug
                     (so does PLEXUS_CONFORMANCE_CLIENT)
  --plexus PROGRAM   bridge and serve with this plexus instead of the one in target/debug
                     (so does PLEXUS_PROGRAM)
  --server-era ERA   with compare: have plexus speak this era to the server, legacy or modern
  --scenario NAME    run one scenario, of the server unless a side is given, and print all it checked
  --revision NAME    with --scenario: 0.1.16, or a revision such as 2025-11-25 of the newer suite`;

const HEAD = ["suite", "scenarios", "success", "failure", "warning", "skipped", "unscored"];

const results = join(target, "conformance");

/** The sides that can be tested: the suites of each, how to find its programs, and how to start them. */
const sides = {
  server: {
    suites: serverSuites,
    locate: ({ url, server }) => (url ? { url } : { program: fixtureProgram(server) }),
    open: openServer,
  },
  client: {
    suites: clientSuites,
    locate: ({ client }) => ({ program: clientProgram(client) }),
    open: openClient,
  },
  ...Object.fromEntries(
    ["legacy", "modern"].flatMap((era) =>
      ["stdio", "http"].map((transport) => [
        `bridge-${era}-${transport}`,
        {
          suites: { ...serverSuites, runs: serverSuites.bridgedRuns },
          locate: ({ plexus, server }) => ({
            program: plexusProgram(plexus),
            fixture: fixtureProgram(server),
            era,
            transport,
          }),
          open: openBridge,
        },
      ]),
    ),
  ),
  ...Object.fromEntries(
    ["legacy", "modern"].map((era) => [
      `serve-${era}`,
      {
        suites: { ...serverSuites, runs: serverSuites.bridgedRuns },
        locate: ({ plexus, server }) => ({ program: plexusProgram(plexus), fixture: fixtureProgram(server), era }),
        open: openGateway,
      },
    ]),
  ),
};

/** Names for several sides at once. */
const groups = Object.fromEntries(
  ["bridge", "serve"].map((name) => [name, Object.keys(sides).filter((side) => side.startsWith(`${name}-`))]),
);

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      server: { type: "string" },
      url: { type: "string" },
      client: { type: "string" },
      plexus: { type: "string" },
      "server-era": { type: "string" },
      scenario: { type: "string" },
      revision: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const [side, ...command] = positionals;
  if (side === "compare") {
    return runComparison(command, options);
  }
  const isKnown = side === undefined || Object.hasOwn(groups, side) || Object.hasOwn(sides, side);
  if (positionals.length > 1 || !isKnown) {
    const known = [...Object.keys(sides), ...Object.keys(groups)];
    throw new Error(`cannot test ${positionals.join(" ")}: there are ${known.join(", ")}`);
  }
  if (options.scenario || options.revision) {
    return debug(located(side ?? "server"), options);
  }
  const alone = side ? [side] : options.url ? ["server"] : Object.keys(sides);
  const tested = groups[side] ?? alone;
  return runAll(tested.map(located));

  function located(side) {
    return { side, ...sides[side], subject: sides[side].locate(options) };
  }
}

async function runComparison(command, { url, plexus, "server-era": era }) {
  if ((command.length === 0) === !url) {
    throw new Error("compare needs either --url or, after --, the command that starts the server");
  }
  const folder = join(results, "compare");
  const baseline = readBaseline();
  const outcome = await compare({ url, command, era, plexus: plexusProgram(plexus), baseline, results: folder });
  console.log(table(HEAD, outcome.rows.map(([name, counted]) => row(name, counted))));
  for (const { way, gained, warned, renamed, explained, lost } of outcome.behind) {
    report(`failing directly, but not behind ${way}`, gained);
    report(`warned of behind ${way} only`, warned.map(describe));
    report(`failing behind ${way}, because lists have another name there`, renamed.map(describe));
    report(`failing behind ${way}, explained by the baseline`, explained.map(describe));
    report(`FAILING BEHIND ${way.toUpperCase()} ONLY`, lost.map(describe));
  }
  report("BROKEN", outcome.broken);
  console.log(`\nresults: ${folder}`);
  return outcome.broken.length === 0 && outcome.behind.every(({ lost }) => lost.length === 0);
}

function readBaseline() {
  return validateBaseline(readYaml(join(root, "conformance", "baseline.yml")), Object.keys(sides));
}

async function runAll(tested) {
  const baseline = readBaseline();
  const rows = [];
  const found = [];
  const verdicts = [];
  const broken = [];
  for (const { side, suites, open, subject } of tested) {
    const foundHere = [];
    const faults = await opened(open, subject, async (execute) => {
      for (const run of suites.runs) {
        const { scenarios, faults } = await execute(run, join(results, side, run.name.replace(" ", "-")));
        const name = label(side, run);
        rows.push(row(name, count(scenarios)));
        foundHere.push(...findings(name, scenarios));
        broken.push(...faults.map((fault) => `${name}: ${fault}`));
        if (scenarios.length === 0) broken.push(`${name}: no scenario ran`);
      }
    });
    broken.push(...faults);
    found.push(...foundHere);
    verdicts.push(
      judge(
        foundHere.filter((finding) => finding.scored),
        baseline[side],
      ),
    );
  }

  console.log(table(HEAD, rows));
  const failed = [
    ...verdicts.flatMap(({ unexplained }) => unexplained.map(describe)),
    ...verdicts.flatMap(({ stale }) => stale.map((line) => `baseline.yml: nothing needs ${line.expect} any more`)),
    ...broken,
  ];
  report("failing, but not scored by the suite", unscoredNames(found));
  report(
    "explained by the baseline",
    verdicts.flatMap(({ explained }) => explained.map(describe)),
  );
  report("FAILED", failed);
  console.log(`\nresults: ${results}`);
  return failed.length === 0;
}

async function debug({ suites, open, subject }, { scenario, revision }) {
  const run = suites.singleRun(scenario, revision);
  const folder = join(results, "single");
  let passed = false;
  const faults = await opened(open, subject, async (execute) => {
    const { scenarios, faults } = await execute(run, folder);
    for (const { checks } of scenarios) {
      console.log(JSON.stringify(checks, null, 2));
    }
    const { SUCCESS, FAILURE, WARNING } = count(scenarios);
    console.log(`${run.scenario} ${run.name}: ${SUCCESS} succeeded, ${FAILURE} failed, ${WARNING} warned`);
    faults.forEach((fault) => console.log(fault));
    passed = FAILURE + WARNING + faults.length === 0;
  });
  faults.forEach((fault) => console.log(fault));
  console.log(`results: ${folder}`);
  return passed && faults.length === 0;
}

/** Starts a subject, lets `use` execute runs on it, and stops it. Returns the subject's faults. */
async function opened(open, subject, use) {
  const { execute, close } = await open(subject);
  let faults = [];
  try {
    await use(execute);
  } finally {
    faults = await close();
  }
  return faults;
}

async function openServer({ url, program }) {
  const at = (address) => (run, folder) => serverSuites.execute(run, address, folder);
  if (url) {
    return { execute: at(url), close: async () => [] };
  }
  const fixture = await startFixture(program, ["--http", "127.0.0.1:0"], join(results, "server.log"));
  return { execute: at(fixture.url), close: fixture.stop };
}

async function openClient({ program }) {
  return { execute: (run, folder) => clientSuites.execute(run, program, folder), close: async () => [] };
}

/** The fixture server behind `plexus bridge`, which either starts the server or gets its URL. */
async function openBridge({ program, fixture, era, transport }) {
  const log = (name) => join(results, `bridge-${era}-${transport}-${name}.log`);
  const upstream =
    transport === "http"
      ? await startFixture(fixture, ["--http", "127.0.0.1:0", "--era", era], log("server"))
      : undefined;
  const server = upstream ? [upstream.url] : ["--", fixture, "--stdio", "--era", era];
  const bridge = await startFixture(program, ["bridge", "--http", "127.0.0.1:0", ...server], log("bridge"));
  return {
    execute: (run, folder) => serverSuites.execute(run, bridge.url, folder),
    close: async () => [...(await bridge.stop()), ...((await upstream?.stop()) ?? [])],
  };
}

/** The fixture server behind `plexus serve`, together with two other servers. */
async function openGateway({ program, fixture, era }) {
  const definition = { command: fixture, args: ["--stdio", "--era", era] };
  const gateway = await startGateway(program, "fixture", definition, join(results, `serve-${era}.log`));
  return { execute: (run, folder) => serverSuites.execute(run, gateway.url, folder), close: gateway.stop };
}

function label(side, { name, suite }) {
  return [side, suite.version, ...(name === suite.version ? [] : [name])].join(" ");
}

function row(name, counted) {
  return [
    name,
    `${counted.scored.passed}/${counted.scored.total}`,
    counted.SUCCESS,
    counted.FAILURE,
    counted.WARNING,
    counted.SKIPPED,
    counted.unscored.total === 0 ? "" : `${counted.unscored.passed}/${counted.unscored.total}`,
  ];
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
