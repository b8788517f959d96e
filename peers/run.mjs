// Runs every official client against the fixture server, in every era and over every transport
// that the client knows, and prints one table.

import { join } from "node:path";
import { parseArgs } from "node:util";

import { ended, start, within } from "../conformance/children.mjs";
import { fixtureProgram, root, startFixture, target } from "../conformance/fixture.mjs";
import { table } from "../conformance/table.mjs";

const USAGE = `usage: peers/run [--server PROGRAM] [--only TEXT]

  --server PROGRAM   use this fixture server instead of the one in target/debug
                     (so does PLEXUS_FIXTURE_SERVER)
  --only TEXT        run only the peers whose name contains TEXT, such as "python modern"`;

const WALK_LIMIT = 2 * 60_000;

const here = join(root, "peers");
const node = process.execPath;
const python = join(root, ".tools", "python", "bin", "python");

const peers = [
  { name: "typescript-1.32", program: [node, join(here, "typescript1.mjs")], eras: ["legacy"] },
  { name: "typescript-2.4", program: [node, join(here, "typescript2.mjs")], eras: ["legacy", "auto", "modern"] },
  { name: "python-2.3", program: [python, join(here, "python_sdk.py")], eras: ["legacy", "auto", "modern"] },
  { name: "inspector-2.12", program: [node, join(here, "inspector.mjs")], eras: ["legacy", "modern"] },
];

// HTTP+SSE belongs to the handshake era.
const transports = { legacy: ["stdio", "http", "sse"], auto: ["stdio", "http"], modern: ["stdio", "http"] };

async function main() {
  const { values: options } = parseArgs({
    options: {
      server: { type: "string" },
      only: { type: "string", default: "" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const walks = peers
    .flatMap((peer) => peer.eras.flatMap((era) => transports[era].map((transport) => ({ peer, era, transport }))))
    .map((walk) => ({ ...walk, name: `${walk.peer.name} ${walk.era} ${walk.transport}` }))
    .filter(({ name }) => name.includes(options.only));
  if (walks.length === 0) {
    throw new Error(`no peer is called "${options.only}"`);
  }

  const program = fixtureProgram(options.server);
  const log = (transport) => join(target, "peers", `${transport}.log`);
  const servers = {
    http: await startFixture(program, ["--http", "127.0.0.1:0"], log("http")),
    sse: await startFixture(program, ["--sse", "127.0.0.1:0"], log("sse")),
  };
  const rows = [];
  let passed = true;
  for (const { peer, era, transport, name } of walks) {
    console.log(`\n${name}`);
    const outcome = await run(peer.program, [era, transport, servers[transport]?.url ?? program]);
    rows.push([name, outcome.steps, `${outcome.seconds.toFixed(1)} s`, outcome.passed ? "passed" : "FAILED"]);
    passed &&= outcome.passed;
  }
  const faults = [...(await servers.http.stop()), ...(await servers.sse.stop())];

  console.log(`\n${table(["peer", "steps", "time", "result"], rows)}`);
  faults.forEach((fault) => console.log(fault));
  return passed && faults.length === 0;
}

/** Runs one walk, and prints its output. A walk prints a line with "ok" for each step that passes. */
async function run([program, ...args], walk) {
  const began = performance.now();
  const child = start(program, [...args, ...walk], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    process.stdout.write(chunk);
  });
  const exit = await within(WALK_LIMIT, ended(child));
  if (exit === undefined) child.kill("SIGKILL");
  return {
    passed: exit === 0,
    steps: output.match(/^ok /gm)?.length ?? 0,
    seconds: (performance.now() - began) / 1000,
  };
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/run: ${error.message}`);
  process.exitCode = 2;
}
