// Tests the gateway with five real servers and real clients, over stdio and HTTP. Then one of the servers
// hangs and another crashes, which must not delay the other three.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { plexusProgram, startFixture, target } from "../../conformance/fixture.mjs";
import { clear, marking } from "../servers/processes.mjs";
import { servers } from "../servers/servers.mjs";
import { inPlace } from "../servers/environment.mjs";
import { agents, claudeHealth, inspector } from "./agents.mjs";
import { Pipe } from "./pipe.mjs";
import { Report } from "./report.mjs";

const USAGE = `usage: peers/gateway/five [--plexus PROGRAM] [--agents FOLDER]

  --plexus PROGRAM   use this plexus instead of the one in target/debug
  --agents FOLDER    let the agents try it, too, whose programs are in this folder
                     (peers/agents/run installs them)`;

const FIVE = ["everything", "filesystem", "memory", "time", "git"];
const BROKEN = {
  memory: { command: "/bin/sh", args: ["-c", "exec sleep 1000"] },
  git: { command: "/bin/sh", args: ["-c", "echo 'no repository' >&2; exit 3"] },
};
const HEALTHY = FIVE.filter((name) => !BROKEN[name]);

/** The time after the start of the gateway until all working servers must be listed, in milliseconds. */
const SOON = 1000;
/** The time that servers may take longer behind the gateway than by themselves, in milliseconds. */
const OVERHEAD = 1000;
/** How long a list waits for a server without a cached catalogue, in milliseconds. */
const STARTUP_WAIT_MS = 8000;
const CLEAN_LIMIT = 2000;

const report = new Report();

async function main() {
  const { values: options } = parseArgs({
    options: { plexus: { type: "string" }, agents: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const program = plexusProgram(options.plexus);
  const programs = options.agents && resolve(options.agents);
  if (programs && !existsSync(programs)) throw new Error(`${programs} is missing: use peers/agents/run`);

  const mark = randomUUID();
  await inPlace(async (place) => {
    Object.assign(place.env, marking(mark));
    const five = new Gateway(program, place, "five", {});
    const alone = await report.step("the five servers by themselves", () => startedAlone(place, FIVE));
    await report.step("five servers, first start", () => five.start(FIVE, Math.max(SOON, alone + OVERHEAD)));
    await report.step("five servers, next start", () => five.start(FIVE, SOON));
    await withClients(five, place, programs);

    const three = new Gateway(program, place, "three", BROKEN);
    const fewer = await report.step("the three servers by themselves", () => startedAlone(place, HEALTHY));
    // A list waits at most this long for a server without a cached catalogue, and only at the first start.
    const limit = Math.max(fewer, STARTUP_WAIT_MS) + OVERHEAD;
    await report.step("one hangs, one crashes, first start", () => three.start(HEALTHY, limit));
    await report.step("one hangs, one crashes, next start", () => three.start(HEALTHY, SOON));
  });
  await report.step("nothing is left behind", async () => assert.deepEqual(await clear(mark, CLEAN_LIMIT), []));
  return report.print();
}

/** A gateway with a configuration and a data directory of its own, which can be started several times. */
class Gateway {
  constructor(program, place, name, instead) {
    const folder = join(place.folder, name);
    mkdirSync(folder);
    const mcpServers = Object.fromEntries(FIVE.map((name) => [name, instead[name] ?? definition(name, place)]));
    const config = join(folder, "mcp.json");
    writeFileSync(config, JSON.stringify({ mcpServers }));
    this.folder = folder;
    this.env = { ...place.env, PLEXUS_DATA_DIR: join(folder, "data") };
    this.program = program;
    this.args = ["serve", "--mcp-config", config];
  }

  /** The command for clients, with its environment: some clients pass on no other variables. */
  get command() {
    const { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME } = this.env;
    const env = { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME };
    return { command: this.program, args: [...this.args, "--stdio"], env };
  }

  /** Starts the gateway; returns the milliseconds until it listed tools of all servers in `names`. */
  async start(names, limit) {
    const pipe = new Pipe({ ...this.command, env: this.env, cwd: this.folder });
    await pipe.open();
    const time = await pipe.until((tools) =>
      names.every((server) => tools.some((tool) => tool.startsWith(`${server}__`))),
    );
    assert.equal(await pipe.close(), 0);
    assert.ok(time <= limit, `${names.join(", ")} were listed after ${time.toFixed(0)} ms, not ${limit.toFixed(0)}`);
    return time;
  }

  /** Serves it over HTTP. */
  listen() {
    const log = join(target, "peers", "five.log");
    return startFixture(this.program, [...this.args, "--http", "127.0.0.1:0"], log, { env: this.env, cwd: this.folder });
  }
}

async function withClients(five, place, programs) {
  const http = await five.listen();
  const ways = { stdio: five.command, http: { url: http.url } };
  for (const [transport, server] of Object.entries(ways)) {
    for (const era of ["legacy", "modern"]) {
      await report.step(`Inspector, ${era}, ${transport}`, () => inspector(place, era, server, FIVE));
    }
    if (programs) {
      await report.step(`Claude Code's health check, ${transport}`, () => claudeHealth(programs, place, server));
      for (const [name, agent] of Object.entries(agents)) {
        await report.step(`${name}, ${transport}`, () => agent(programs, place, server));
      }
    }
  }
  await report.step("the gateway on HTTP ends", async () => assert.deepEqual(await http.stop(), []));
}

/** Starts the servers without the gateway, concurrently; returns the milliseconds until all have listed. */
async function startedAlone(place, names) {
  const times = names.map(async (name) => {
    const { command, args, env } = definition(name, place);
    const pipe = new Pipe({ command, args, env: { ...place.env, ...env }, cwd: place.folder });
    await pipe.open();
    const time = await pipe.until((tools) => tools.length > 0);
    await pipe.close();
    return time;
  });
  return Math.max(...(await Promise.all(times)));
}

/** The definition of a server in the format of configuration files. */
function definition(name, place) {
  return servers({ ...place, page: "" }).find((server) => server.name === name).stdio;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/gateway/five: ${error.message}`);
  process.exitCode = 2;
}
