// Tests the start of many servers.
//
// together  every server of servers.mjs at once, in one gateway on two cores, without a cache: each that works
//           alone must be connected in time, and stay so
// slow      many starts of a server that answers `server/discover` about when a gateway loses patience and
//           sends `initialize`, which that server refuses: each start must connect

import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";

import { ended, start, within } from "../../conformance/children.mjs";
import { plexusProgram, root, startFixture, target } from "../../conformance/fixture.mjs";
import { table } from "../../conformance/table.mjs";
import { Post } from "../gateway/post.mjs";
import { eachOf, freePort, inPlace, serve } from "./environment.mjs";
import { clear, marking } from "./processes.mjs";
import { servers } from "./servers.mjs";

const USAGE = `usage: peers/servers/many [together | slow] [--plexus PROGRAM] [--seed NUMBER] [--starts NUMBER]

  --plexus PROGRAM   use this plexus instead of the one in target/debug
  --seed NUMBER      with slow: the seed of all chances; by default 1
  --starts NUMBER    with slow: how many starts; by default 200`;

/** The cores of the gateway and of the servers that it starts. */
const CORES = "0,1";
const CONNECT_LIMIT = 90_000;
/** How long the gateway is watched after all servers are connected: none may be lost, in milliseconds. */
const WATCH_AFTERWARDS = 10_000;
const POLL_EVERY = 500;
const STATUS_LIMIT = 30_000;
const PROBE_LIMIT = 90_000;
const CLEAN_LIMIT = 3000;

const SLOW_AT_ONCE = 20;
const slowServer = join(root, "peers", "servers", "echo", "slow_dual.mjs");

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      plexus: { type: "string" },
      seed: { type: "string", default: "1" },
      starts: { type: "string", default: "200" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const parts = { together, slow };
  const [asked, ...more] = positionals;
  if (more.length > 0 || (asked && !parts[asked])) throw new Error(`there is no ${positionals.join(" ")}\n${USAGE}`);
  const plexus = plexusProgram(options.plexus);
  const [seed, starts] = [Number(options.seed), Number(options.starts)];
  if (!Number.isSafeInteger(seed) || !(starts > 0)) throw new Error("--seed and --starts need numbers");

  let passed = true;
  for (const part of asked ? [parts[asked]] : Object.values(parts)) {
    const mark = randomUUID();
    const faults = await inPlace((place) => {
      return part({ plexus, place, env: { ...place.env, ...marking(mark) }, seed, starts });
    });
    faults.push(...(await clear(mark, CLEAN_LIMIT)));
    faults.forEach((fault) => console.log(fault));
    passed &&= faults.length === 0;
  }
  return passed;
}

/** Starts all servers with one gateway. Prints a table; returns the faults. */
async function together({ plexus, place, env }) {
  const listening = [];
  try {
    const entries = await prepared(place, listening);
    await eachOf(entries, async (entry) => {
      const asked = entry.era ? ["--era", entry.era] : [];
      const { command, args = [] } = entry.definition;
      const server = command ? ["--", command, ...args] : [entry.definition.url];
      const { env: own, cwd } = entry.definition;
      entry.alone = await probe(plexus, [...asked, ...server], { cwd: cwd ?? place.folder, env: { ...env, ...own } });
    });
    return await inOneGateway(plexus, place, env, entries);
  } finally {
    listening.forEach((child) => child.kill("SIGKILL"));
    await Promise.all(listening.map(ended));
  }
}

/**
 * Every server with the name and the definition that it has in the configuration. Those that listen are
 * started, and added to `listening`.
 */
async function prepared(place, listening) {
  const names = servers({ ...place, page: "" }).map(({ name }) => name);
  const entries = names.map((title) => ({ title, name: title.replaceAll(/[^a-z0-9]+/g, "-") }));
  await eachOf(entries, async (entry) => {
    const own = { ...place, port: await freePort() };
    const server = servers({ ...own, page: "" }).find(({ name }) => name === entry.title);
    const { stdio, http, sse, era } = server;
    entry.era = era;
    entry.way = stdio ? "stdio" : http ? "http" : "sse";
    if (!stdio) listening.push(await serve(server, own));
    const reached = stdio ?? { type: entry.way, url: `http://127.0.0.1:${own.port}${(http ?? sse).path}` };
    entry.definition = { ...reached, ...(era && { era }) };
  });
  return entries;
}

/** Starts one gateway with all `entries`, and watches them. Prints a table; returns the faults. */
async function inOneGateway(plexus, place, env, entries) {
  const folder = join(place.folder, "together");
  mkdirSync(folder);
  const config = join(folder, "mcp.json");
  const mcpServers = Object.fromEntries(entries.map(({ name, definition }) => [name, definition]));
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const own = { cwd: folder, env: { ...env, PLEXUS_DATA_DIR: join(folder, "data") } };
  const serving = [plexus, "serve", "--http", "127.0.0.1:0", "--mcp-config", config];
  const began = performance.now();
  const gateway = await startFixture("taskset", ["-c", CORES, ...serving], join(target, "peers", "many.log"), own);
  const faults = [];
  let tools = [];
  try {
    const latest = await watch(plexus, own, entries, began);
    const client = new Post(gateway.url, "modern");
    tools = (await client.request("tools/list")).tools.map(({ name }) => name);
    const working = entries.filter(({ alone }) => alone.connected);
    const connected = working.filter(({ time }) => time !== undefined).length;
    const cores = Math.min(2, cpus().length);
    console.log(`${working.length} of ${entries.length} servers work alone`);
    console.log(`${connected} of them were connected on ${cores} cores, the last after ${seconds(latest)}`);
  } finally {
    faults.push(...(await gateway.stop()));
  }
  for (const entry of entries) {
    entry.listed = tools.filter((tool) => tool.startsWith(`${entry.name}__`)).length;
    faults.push(...faultsOf(entry));
  }
  const rows = entries.map(({ title, way, alone, state, time, lost, listed }) => {
    const byItself = alone.connected ? seconds(alone.latency_ms.connect) : "fails";
    const after = time === undefined ? "" : seconds(time);
    return [title, way, byItself, lost ? `${state}, was lost` : state, after, listed];
  });
  console.log(table(["server", "over", "alone", "together", "connected after", "tools"], rows));
  return faults;
}

/**
 * Watches the servers until all that work alone are connected, and WATCH_AFTERWARDS longer; or, if that takes
 * too long, for CONNECT_LIMIT. Sets the state of each, and the time from the start of the gateway until it was
 * connected. Returns the greatest of these times.
 */
async function watch(plexus, options, entries, began) {
  let end = began + CONNECT_LIMIT;
  let isComplete = false;
  do {
    const now = performance.now() - began;
    const states = await status(plexus, options);
    for (const entry of entries) {
      const { state, reason, last_error } = states.find(({ name }) => name === entry.name) ?? { state: "missing" };
      if (state === "connected" && now <= CONNECT_LIMIT) entry.time ??= performance.now() - began;
      if (state !== "connected" && entry.time !== undefined) entry.lost = true;
      Object.assign(entry, { state, reason: reason ?? last_error?.message });
    }
    if (!isComplete && entries.every(({ alone, time }) => !alone.connected || time !== undefined)) {
      isComplete = true;
      end = performance.now() + WATCH_AFTERWARDS;
    }
    await pause(POLL_EVERY);
  } while (performance.now() < end);
  return Math.max(...entries.map(({ time }) => time ?? 0));
}

function faultsOf({ title, alone, state, reason, time, lost, listed }) {
  if (!alone.connected) return [];
  const late = `it works alone, but was not connected within ${seconds(CONNECT_LIMIT)}`;
  if (time === undefined) return [`${title}: ${late}; it is ${state}: ${reason}`];
  if (lost) return [`${title}: it was connected, and then lost: ${reason}`];
  if (alone.counts.tools > 0 && listed === 0) return [`${title}: none of its tools is listed`];
  return [];
}

/** Starts the slow server many times. Prints a summary; returns the faults. */
async function slow({ plexus, place, env, seed, starts }) {
  const options = { cwd: place.folder, env };
  const runs = Array.from({ length: starts }, (_, index) => ({ seed: seed * 10_000 + index }));
  await eachOf(
    runs,
    async (run) => {
      run.found = await probe(plexus, ["--", process.execPath, slowServer, String(run.seed)], options);
    },
    SLOW_AT_ONCE,
  );
  const connected = runs.filter(({ found }) => found.connected);
  const times = connected.map(({ found }) => found.latency_ms.connect).toSorted((one, other) => one - other);
  const at = (share) => seconds(times[Math.floor(share * (times.length - 1))] ?? 0);
  console.log(`${connected.length} of ${starts} starts of a slow server connected (seed ${seed})`);
  console.log(`the fastest after ${at(0)}, half of them after ${at(0.5)}, the slowest after ${at(1)}`);
  const faulty = runs.filter(({ found }) => !found.connected || found.era !== "modern" || found.counts.tools !== 1);
  return faulty.map((run) => `slow server ${run.seed}: ${JSON.stringify(run.found)}`);
}

/** Examines one server without a gateway. */
function probe(plexus, args, options) {
  return asJson(plexus, ["probe", "--json", ...args], options, PROBE_LIMIT);
}

/** The servers of the running gateway, as it reports them. */
async function status(plexus, options) {
  const { gateways } = await asJson(plexus, ["status", "--json"], options, STATUS_LIMIT);
  return gateways[0]?.servers ?? [];
}

/** Runs a command of plexus that prints one JSON object, whatever its exit code. */
async function asJson(plexus, args, options, limit) {
  const child = start(plexus, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const output = await within(limit, Promise.all([text(child.stdout), text(child.stderr), ended(child)]));
  if (!output) {
    child.kill("SIGKILL");
    throw new Error(`plexus ${args.join(" ")} takes more than ${seconds(limit)}`);
  }
  const [said, log, exit] = output;
  try {
    return JSON.parse(said);
  } catch {
    throw new Error(`plexus ${args.join(" ")} ended with ${exit}: ${log}${said}`);
  }
}

function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/servers/many: ${error.message}`);
  process.exitCode = 2;
}
