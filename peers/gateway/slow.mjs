// Tests the gateway with a server that needs 5 s to start, and clients that list once and call once: over
// both transports, in both eras, and for each way in which the gateway can be ended. Every client gets all
// tools and its answer, in the first run, without a cache, and in later runs.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { fixtureProgram, plexusProgram } from "../../conformance/fixture.mjs";
import { table } from "../../conformance/table.mjs";
import { eachOf, inPlace } from "../servers/environment.mjs";
import { clear, marking } from "../servers/processes.mjs";
import { Pipe } from "./pipe.mjs";
import { Post } from "./post.mjs";

const USAGE = `usage: peers/gateway/slow [--plexus PROGRAM] [--server PROGRAM]

  --plexus PROGRAM   use this plexus instead of the one in target/debug
  --server PROGRAM   use this fixture server instead of the one in target/debug`;

const NAME = "slow";
const SERVER_START_SECONDS = 5;
const TOOL = "test_simple_text";
const ANSWER = /simple text response/;

/** The time in which `initialize` and `server/discover` must be answered, in milliseconds. */
const OPEN_LIMIT = 2000;
/** The time in which the gateway and its processes must end, in milliseconds. */
const END_LIMIT = 2000;

/** The ways to end the gateway, each with its signal. */
const ends = { "end of input": undefined, SIGTERM: "SIGTERM", SIGINT: "SIGINT" };
const RUNS = ["first", "later"];

async function main() {
  const { values: options } = parseArgs({
    options: { plexus: { type: "string" }, server: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const plexus = plexusProgram(options.plexus);
  const server = fixtureProgram(options.server);
  const cases = ["stdio", "http"].flatMap((transport) =>
    ["legacy", "modern"].flatMap((era) => Object.keys(ends).map((end) => ({ transport, era, end }))),
  );
  const faults = [];
  await inPlace(async (place) => {
    const tools = await toolsAlone(server, place);
    await eachOf(cases, async (tried) => {
      const name = `${tried.transport}, ${tried.era}, ${tried.end}`;
      const gateway = new Gateway({ plexus, server, place, name, ...tried });
      tried.rows = [];
      for (const run of RUNS) {
        const row = { run };
        tried.rows.push(row);
        try {
          await gateway.run(run, tools, row);
        } catch (error) {
          row.failed = true;
          faults.push(`${name}, ${run} run: ${error.message}`);
        }
      }
    });
  });
  report(cases, faults);
  return faults.length === 0;
}

/** A gateway with the slow server, and a configuration and a data directory of its own. */
class Gateway {
  #plexus;
  #args;
  #folder;
  #env;
  #transport;
  #era;
  #signal;

  constructor({ plexus, server, place, name, transport, era, end }) {
    this.#folder = join(place.folder, name.replaceAll(/\W+/g, "-"));
    mkdirSync(this.#folder);
    const script = `sleep ${SERVER_START_SECONDS}; exec "$0" --stdio`;
    const config = join(this.#folder, "mcp.json");
    const mcpServers = { [NAME]: { command: "/bin/sh", args: ["-c", script, server] } };
    writeFileSync(config, JSON.stringify({ mcpServers }));
    // A gateway on HTTP ends with its input only if it serves stdio, too.
    const stdio = transport === "stdio" || !ends[end];
    const ways = [...(stdio ? ["--stdio"] : []), ...(transport === "http" ? ["--http", "127.0.0.1:0"] : [])];
    this.#plexus = plexus;
    this.#args = ["serve", ...ways, "--mcp-config", config];
    this.#env = { ...place.env, PLEXUS_DATA_DIR: join(this.#folder, "data") };
    this.#transport = transport;
    this.#era = era;
    this.#signal = ends[end];
  }

  /** Starts it, lists once, calls once, and ends it. Writes the milliseconds of each to `row`. */
  async run(run, tools, row) {
    const mark = randomUUID();
    const env = { ...this.#env, ...marking(mark) };
    const pipe = new Pipe({ command: this.#plexus, args: this.#args, env, cwd: this.#folder, era: this.#era });
    let exit;
    let ending;
    try {
      await this.#use(pipe, run, tools, row);
    } finally {
      ending = pipe.age();
      exit = await pipe.close(this.#signal);
      row.ended = pipe.age() - ending;
    }
    const left = await clear(mark, END_LIMIT - row.ended);
    row.ended = pipe.age() - ending;
    assert.equal(exit, 0, "its exit code");
    assert.deepEqual(left, []);
    assert.ok(row.ended <= END_LIMIT, `it ended after ${row.ended.toFixed(0)} ms`);
  }

  async #use(pipe, run, tools, row) {
    const client = this.#transport === "http" ? new Post(await pipe.url(), this.#era) : pipe;
    await client.open();
    row.opened = pipe.age();
    const listed = await client.request("tools/list");
    row.listed = pipe.age();
    const called = await client.request("tools/call", { name: `${NAME}__${TOOL}`, arguments: {} });
    row.answered = pipe.age();
    const names = listed.tools.map(({ name }) => name);
    const missing = tools.filter((tool) => !names.includes(`${NAME}__${tool}`));
    assert.ok(missing.length === 0, `${missing.length} of ${tools.length} tools are not listed, first ${missing[0]}`);
    assert.match(called.content[0].text, ANSWER);
    assert.ok(row.opened <= OPEN_LIMIT, `it opened after ${row.opened.toFixed(0)} ms`);
    const cached = run !== RUNS[0];
    const slow = `a list that is cached waited for the server: ${row.listed.toFixed(0)} ms`;
    assert.ok(!cached || row.listed < SERVER_START_SECONDS * 1000, slow);
  }
}

/** The tools of the server, started without the gateway and without delay. */
async function toolsAlone(server, place) {
  const pipe = new Pipe({ command: server, args: ["--stdio"], env: place.env, cwd: place.folder });
  await pipe.open();
  const tools = await pipe.tools();
  await pipe.close();
  return tools;
}

/** Prints the seconds since the start of the gateway until each step, and how long its end took. */
function report(cases, faults) {
  const seconds = (milliseconds) => (milliseconds === undefined ? "" : `${(milliseconds / 1000).toFixed(2)} s`);
  const rows = cases.flatMap(({ transport, era, end, rows }) =>
    rows.map(({ run, opened, listed, answered, ended, failed }) => {
      const times = [opened, listed, answered, ended].map(seconds);
      return [transport, era, end, run, ...times, failed ? "FAILED" : "passed"];
    }),
  );
  console.log(table(["transport", "era", "end", "run", "opened", "listed", "answered", "ended in", "result"], rows));
  faults.forEach((fault) => console.log(fault));
  const passed = rows.filter((row) => row.at(-1) === "passed").length;
  console.log(`${passed} of ${rows.length} runs passed`);
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/gateway/slow: ${error.message}`);
  process.exitCode = 2;
}
