// Tests the sign-in of every official SDK to `plexus serve --http`, with the SDK's own OAuth client and an
// authorization server where no client is registered. Prints one table.

import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ended, start, within } from "../../conformance/children.mjs";
import { plexusProgram, root, startFixture, target } from "../../conformance/fixture.mjs";
import { table } from "../../conformance/table.mjs";

const USAGE = `usage: peers/sign-in/run [--profile PROFILE] [--only TEXT]

  --profile PROFILE   use what this profile built, instead of debug
  --only TEXT         run only the peers whose name contains TEXT, such as "python"`;

const VISIT_LIMIT = 60_000;

const here = join(root, "peers", "sign-in");
const node = process.execPath;
const python = (sdk) => join(root, ".tools", sdk, "bin", "python");

const peers = [
  { name: "typescript-1.32", program: [node, join(here, "typescript1.mjs")], visits: ["legacy http", "legacy sse"] },
  {
    name: "typescript-2.4",
    program: [node, join(here, "typescript2.mjs")],
    visits: ["legacy http", "legacy sse", "modern http", "modern dpop"],
  },
  { name: "python-1", program: [python("python-sdk1"), join(here, "python1.py")], visits: ["legacy http"] },
  { name: "python-2.3", program: [python("python"), join(here, "python2.py")], visits: ["legacy http", "modern http"] },
];

async function main() {
  const { values: options } = parseArgs({
    options: {
      profile: { type: "string", default: "debug" },
      only: { type: "string", default: "" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const built = (name) => join(target, options.profile, name);
  const plexus = plexusProgram(process.env.PLEXUS_PROGRAM ?? built("plexus"));
  const home = mkdtempSync(join(tmpdir(), "plexus-sign-in-"));
  const log = (name) => join(target, "peers", `${name}.log`);
  const issuer = await startFixture(built("authorization-server"), [], log("authorization-server"));
  // Some of the SDKs warn of every format of every schema that they do not know.
  const warnings = openSync(log("sign-in"), "w");
  const gateways = {};
  const rows = [];
  let passed = true;
  try {
    const demands = { http: [], sse: ["--sse"], dpop: [] };
    for (const [way, more] of Object.entries(demands)) {
      gateways[way] = await startGateway(plexus, home, way, issuer.url, more, log(`gateway-${way}`));
    }
    for (const { name, program, visits } of peers) {
      for (const visit of visits.filter((visit) => `${name} ${visit}`.includes(options.only))) {
        const [era, way] = visit.split(" ");
        console.log(`\n${name} ${visit}`);
        const url = way === "sse" ? new URL("/sse", gateways.sse.url).href : gateways[way].url;
        const outcome = await run(program, [era, way, url], warnings);
        rows.push([`${name} ${visit}`, outcome.steps, outcome.passed ? "passed" : "FAILED"]);
        if (!outcome.passed) console.log(`what it said is in ${log("sign-in")}`);
        passed &&= outcome.passed;
      }
    }
  } finally {
    const servers = [...Object.values(gateways), issuer];
    for (const server of servers) {
      const faults = await server.stop();
      // The authorization server has no work to finish, so any kind of exit is fine.
      const own = server === issuer ? [] : faults;
      own.forEach((fault) => console.log(fault));
      passed &&= own.length === 0;
    }
    rmSync(home, { recursive: true, force: true });
  }
  if (rows.length === 0) {
    throw new Error(`no peer is called "${options.only}"`);
  }
  console.log(`\n${table(["peer", "steps", "result"], rows)}`);
  return passed;
}

/** Starts a gateway that accepts tokens of the issuer. It has its own home directory, with a settings file. */
async function startGateway(program, home, way, issuer, more, log) {
  const own = join(home, way);
  mkdirSync(join(own, "plexus"), { recursive: true });
  const settings = way === "dpop" ? "[access]\ndpop = true\n" : "";
  writeFileSync(join(own, "plexus", "plexus.toml"), settings);
  const args = ["serve", "--http", "127.0.0.1:0", "--issuer", issuer, "--require-scope", "mcp", ...more];
  const env = { ...process.env, HOME: own, XDG_CONFIG_HOME: own, PLEXUS_DATA_DIR: join(own, "data") };
  return startFixture(program, args, log, { cwd: own, env });
}

/** Runs one visit, and prints its output. A visit prints a line with "ok" for each step that passes. */
async function run([program, ...args], visit, warnings) {
  const child = start(program, [...args, ...visit], { stdio: ["ignore", "pipe", warnings] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    process.stdout.write(chunk);
  });
  const exit = await within(VISIT_LIMIT, ended(child));
  if (exit === undefined) child.kill("SIGKILL");
  return { passed: exit === 0, steps: output.match(/^ok /gm)?.length ?? 0 };
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/sign-in/run: ${error.message}`);
  process.exitCode = 2;
}
