// Serves five real servers as one, to real clients on a pipe and over HTTP, and again with one of
// the five hanging and another crashing, which must cost the other three nothing.

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

/** How soon after our start all that can answer must have answered, in milliseconds. */
const SOON = 1000;
/** What servers may take longer when we start them than when another client does. */
const OVERHEAD = 1000;
/** How long a list waits for a server of which nothing is known. */
const STARTUP_WAIT = 8000;
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
    // A list waits for a server of which nothing is known yet, but only so long, and only once.
    const limit = Math.max(fewer, STARTUP_WAIT) + OVERHEAD;
    await report.step("one hangs, one crashes, first start", () => three.start(HEALTHY, limit));
    await report.step("one hangs, one crashes, next start", () => three.start(HEALTHY, SOON));
  });
  await report.step("nothing is left behind", async () => assert.deepEqual(await clear(mark, CLEAN_LIMIT), []));
  return report.print();
}

/** A configuration, and the ways to serve it. */
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

  /** What a client must start. Some clients pass on only the environment that they are told to. */
  get command() {
    const { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME } = this.env;
    const env = { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME };
    return { command: this.program, args: [...this.args, "--stdio"], env };
  }

  /** Starts it, and gives the milliseconds until it has listed the tools of all the servers named. */
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

/** Starts the servers named, all at once and without us; gives the milliseconds until all have listed. */
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

/** A server as configuration files have it. */
function definition(name, place) {
  return servers({ ...place, page: "" }).find((server) => server.name === name).stdio;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/gateway/five: ${error.message}`);
  process.exitCode = 2;
}
