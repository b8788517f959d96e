// Tests agents that start the gateway themselves, in front of four real servers with more than 50 tools.
// All tools must reach the model: without a catalogue cache (first run), with one (next run), and with a
// fifth server that never answers.
//
// Agents list tools once, right after the handshake, and some read only the first page.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { plexusProgram } from "../../conformance/fixture.mjs";
import { agents } from "../gateway/agents.mjs";
import { Pipe } from "../gateway/pipe.mjs";
import { Report } from "../gateway/report.mjs";
import { clear, marking } from "../servers/processes.mjs";
import { servers } from "../servers/servers.mjs";
import { inPlace } from "../servers/environment.mjs";

const USAGE = `usage: peers/agents/run cold [--plexus PROGRAM] [--only AGENT]

  --plexus PROGRAM   use this plexus instead of the one in target/debug
  --only AGENT       have only this one try it: ${Object.keys(agents).join(", ")}`;

/** The four servers: their names in the configuration, and their names in peers/servers/servers.mjs. */
const FOUR = { everything: "everything, asking", filesystem: "filesystem", git: "git", memory: "memory" };
const MORE_THAN = 50;
const SILENT = { command: "/bin/sh", args: ["-c", "exec sleep 3600"] };
const CLEAN_LIMIT = 3000;

/** The plan of the model. It calls tools of the server that is listed last. */
const PLAN = [
  {
    tool: /memory__create_entities$/,
    args: { entities: [{ name: "Gateway", entityType: "program", observations: ["found behind it"] }] },
  },
  { tool: /memory__open_nodes$/, args: { names: ["Gateway"] } },
];
const ANSWER = /found behind it/;

async function main() {
  const { values: options } = parseArgs({
    options: {
      plexus: { type: "string" },
      agents: { type: "string" },
      only: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  if (options.only && !agents[options.only]) throw new Error(`there is no agent ${options.only}`);
  const plexus = plexusProgram(options.plexus);
  const programs = resolve(options.agents);
  const tried = Object.entries(agents).filter(([name]) => !options.only || name === options.only);

  const report = new Report();
  const mark = randomUUID();
  await inPlace(async (place) => {
    Object.assign(place.env, marking(mark));
    const four = Object.entries(FOUR).map(([name, visited]) => {
      return { ...servers({ ...place, page: "" }).find((server) => server.name === visited), name };
    });
    let tools = [];
    await report.step("the four servers by themselves", async () => {
      tools = (await Promise.all(four.map((server) => toolsOf(server, place)))).flat();
      assert.ok(tools.length > MORE_THAN, `they have ${tools.length} tools only`);
    });
    const setups = {
      "four servers": {},
      "four servers and a silent one": { silent: SILENT },
    };
    for (const [setup, more] of Object.entries(setups)) {
      const mcpServers = { ...more, ...Object.fromEntries(four.map(({ name, stdio }) => [name, stdio])) };
      for (const [name, agent] of tried) {
        const { server, home } = prepare(plexus, place, `${setup}, ${name}`, mcpServers);
        for (const run of ["first", "next"]) {
          const options = { home, task: { plan: PLAN, answer: ANSWER, tools }, patient: run === "first" };
          await report.step(`${setup}, ${name}, ${run} run`, () => agent(programs, place, server, options));
        }
      }
    }
  });
  await report.step("nothing is left behind", async () => assert.deepEqual(await clear(mark, CLEAN_LIMIT), []));
  return report.print();
}

/** The tools of a server that is started without the gateway, with the names that the gateway gives them. */
async function toolsOf({ name, stdio, capabilities, finds }, place) {
  const { command, args, env } = stdio;
  const pipe = new Pipe({ command, args, env: { ...place.env, ...env }, cwd: place.folder });
  await pipe.open(capabilities);
  let tools = [];
  await pipe.until((listed) => (tools = listed).length === finds.tools);
  // The exit is not awaited, because one of the servers needs 15 s for it.
  void pipe.close();
  return tools.map((tool) => `${name}__${tool}`);
}

/** The command for a gateway without a catalogue cache, and a new home directory for the agent. */
function prepare(plexus, place, name, mcpServers) {
  const folder = join(place.folder, name.replaceAll(/\W+/g, "-"));
  const [home, gatewayHome] = [join(folder, "agent"), join(folder, "gateway")];
  [folder, home, gatewayHome].forEach((each) => mkdirSync(each));
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const { PLEXUS_VISIT, PATH } = place.env;
  const env = { PLEXUS_DATA_DIR: join(gatewayHome, "data"), PLEXUS_VISIT, PATH, HOME: gatewayHome };
  return { home, server: { command: plexus, args: ["serve", "--stdio", "--mcp-config", config], env } };
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/agents/cold: ${error.message}`);
  process.exitCode = 2;
}
