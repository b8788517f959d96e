// Attacks the built program for some minutes, while a well-behaved principal uses it, and prints a
// verdict for each attack, for that principal's answers, and for what the gateway holds afterwards.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { plexusProgram, root } from "../conformance/fixture.mjs";
import { Client } from "./client.mjs";
import { Home, honest, hostile } from "./gateway.mjs";
import { Watch, holdings, measurable } from "./measure.mjs";
import { behaviours } from "./servers/behaviours.mjs";

const USAGE = `usage: attack/run [MINUTES] [--program PROGRAM] [--only TEXT]

  MINUTES             how long the gateway is attacked; 2 by default. Every attack runs at least
                      once. From 10 minutes on, floods have their full size.
  --program PROGRAM   use this plexus instead of the one in target/debug (so does PLEXUS_PROGRAM)
  --only TEXT         run only the attacks whose name contains TEXT, once each`;

/** How many attacks run at the same time. */
const LANES = 3;

/** How long the well-behaved principal is alone, before the attacks and after them. */
const ALONE = 5_000;
const FULL_SIZE_ALONE = 8_000;

/** How long the gateway may take to start its servers, and how long nothing changes when it has. */
const SETTLE_LIMIT = 60_000;
const STEADY = 4_000;

/** How long one attack may take. */
const ATTACK_LIMIT = 180_000;
const FULL_SIZE_ATTACK_LIMIT = 600_000;

/** The limits of the verdicts on the gateway. */
const MAX_MEMORY_MIB = 256;

/**
 * How many times its p99 alone the p99 of the well-behaved principal may be. A short run is a step of
 * the checks, which may share the machine with other work.
 */
const MAX_SLOWDOWN = 6;
const FULL_SIZE_MAX_SLOWDOWN = 3;

/** When the gateway holds again what it held at the start. */
const RETURN_LIMIT = 60_000;
const MEMORY_SLACK_MIB = 32;
const DESCRIPTOR_SLACK = 4;

const here = join(root, "attack");

/** The settings of the gateway that all attacks share: what is idle ends within the time of a run. */
const SETTINGS = `
[hub]
builtin = ["health", "echo", "context"]

[limits]
session_idle_timeout_seconds = 20
answer_timeout_seconds = 20
replay_timeout_seconds = 20
call_timeout_seconds = 20

[policy]
rules = [
  { tool = "honest__forbidden", action = "deny" },
  { tool = "honest__guarded", action = "ask" },
]
`;

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      program: { type: "string" },
      only: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const minutes = Number(positionals[0] ?? 2);
  if (positionals.length > 1 || !(minutes > 0)) throw new Error(`MINUTES must be a number above 0\n\n${USAGE}`);
  const files = readdirSync(join(here, "attacks")).filter((file) => file.includes(options.only ?? ""));
  if (files.length === 0) throw new Error(`no attack is called "${options.only}"`);

  const program = plexusProgram(options.program);
  const mcpServers = { honest };
  for (const behaviour of behaviours) mcpServers[behaviour] = hostile(behaviour);
  const home = new Home(program, { toml: SETTINGS, mcpServers });
  try {
    const tokens = Object.fromEntries(["calm", "hostile", "other"].map((name) => [name, home.token(name)]));
    const gateway = await home.serve(["--require-token"]);
    const place = { program, url: gateway.url, tokens, fullSize: minutes >= 10 };
    const runFor = options.only ? 0 : minutes * 60_000;
    const verdicts = await soak(gateway, place, files, runFor);
    const width = Math.max(...verdicts.map(({ name }) => name.length));
    console.log("");
    for (const { name, note, fault } of verdicts) {
      console.log(`${fault ? "FAILED" : "holds "}  ${name.padEnd(width)}  ${fault || note || ""}`.trimEnd());
    }
    const failed = verdicts.filter(({ fault }) => fault).length;
    console.log(`\nattack: ${verdicts.length - failed} hold, ${failed} failed`);
    return failed === 0;
  } finally {
    home.remove();
  }
}

/** Attacks the gateway while the well-behaved principal uses it. Returns the verdicts. */
async function soak(gateway, place, files, milliseconds) {
  const calm = new Client(place.url, { token: place.tokens.calm });
  await settled(calm);
  const timeAlone = place.fullSize ? FULL_SIZE_ALONE : ALONE;
  const start = measurable ? await steady(gateway.pid) : undefined;

  const load = fork(join(here, "load.mjs"));
  load.send({ url: place.url, token: place.tokens.calm });
  await sleep(timeAlone);
  // The first phase has the first connections and compilations of both programs.
  await counted(load, { next: true });
  await sleep(timeAlone);
  const alone = [await counted(load, { next: true })];
  const watch = new Watch(gateway.pid);
  const verdicts = await attacks(place, files, milliseconds);
  const attacked = await counted(load, { next: true });
  await sleep(timeAlone);
  alone.push(await counted(load, { end: true }));

  const counts = await calm.counts().catch((error) => ({ error: error.message }));
  verdicts.push(...answersVerdicts(alone, attacked, counts, place.fullSize ? FULL_SIZE_MAX_SLOWDOWN : MAX_SLOWDOWN));
  if (measurable) verdicts.push(...(await holdingsVerdicts(watch, start)));
  watch.stop();
  const faults = await gateway.stop();
  verdicts.push({ name: "the gateway survives", fault: faults.join("; ") });
  return verdicts;
}

/** Waits until the honest server's tools can be called. */
async function settled(client) {
  const end = Date.now() + SETTLE_LIMIT;
  for (;;) {
    const fault = await client.counts().then(() => undefined, (error) => error);
    if (fault === undefined) return;
    if (Date.now() > end) throw fault;
    await sleep(200);
  }
}

/** Waits until all servers have been started once: until nothing changes for some seconds. */
async function steady(pid) {
  const end = Date.now() + SETTLE_LIMIT;
  let last = holdings(pid);
  let since = Date.now();
  while (Date.now() - since < STEADY && Date.now() < end) {
    await sleep(250);
    const now = holdings(pid);
    if (now.processes !== last.processes || now.descriptors !== last.descriptors) since = Date.now();
    last = now;
  }
  return last;
}

/** Runs the attacks for so many milliseconds, each at least once. Returns a verdict for each. */
async function attacks(place, files, milliseconds) {
  const end = Date.now() + milliseconds;
  const verdicts = new Map(files.map((file) => [file, { name: file.replace(".mjs", ""), runs: 0, begun: 0, took: 0 }]));
  let queue = [...files];
  // An attack that would not end in time is not repeated.
  const fits = (file) => {
    const { begun, runs, took } = verdicts.get(file);
    return begun === 0 || (runs === begun && Date.now() + took < end);
  };
  const next = () => {
    if (!queue.some(fits)) queue = [...files];
    const at = queue.findIndex(fits);
    return at < 0 ? undefined : queue.splice(at, 1)[0];
  };
  const lane = async () => {
    for (;;) {
      const file = next();
      if (file === undefined) return;
      const verdict = verdicts.get(file);
      verdict.begun += 1;
      const began = Date.now();
      const { note, fault: found } = await attack(file, place);
      const fault = found && printable(found);
      verdict.runs += 1;
      verdict.fault ??= fault && `in run ${verdict.runs}: ${fault}`;
      verdict.last = note;
      verdict.note = `${verdict.runs} runs${verdict.last ? `; ${verdict.last}` : ""}`;
      verdict.took = Date.now() - began;
      const seconds = (verdict.took / 1000).toFixed(1);
      console.log(`${fault ? "FAILED" : "holds "} ${verdict.name} (${seconds} s)${fault ? `: ${fault}` : ""}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return [...verdicts.values()];
}

/** Runs one attack in a process of its own. */
async function attack(file, place) {
  const child = fork(join(here, "one.mjs"));
  // The attacker must not take the processor away from the gateway that it attacks.
  setPriority(child.pid, 10);
  child.send({ file, place });
  const limit = place.fullSize ? FULL_SIZE_ATTACK_LIMIT : ATTACK_LIMIT;
  const timer = setTimeout(() => child.kill("SIGTERM"), limit);
  const outcome = await Promise.race([
    once(child, "message").then(([message]) => message),
    once(child, "exit").then(([code, signal]) => ({ fault: `the attack ended with ${code ?? signal}` })),
  ]);
  clearTimeout(timer);
  return outcome;
}

/** The text in one line, without characters that change what the terminal shows. */
function printable(text) {
  return text.replace(/\s+/g, " ").replace(/[^\x20-\x7e]/g, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** Tells the load to end a phase; resolves to its counts. */
async function counted(load, message) {
  const answer = once(load, "message");
  load.send(message);
  return (await answer)[0];
}

function answersVerdicts(alone, attacked, counts, maxSlowdown) {
  const phases = [...alone, attacked];
  const sum = (key) => phases.reduce((total, phase) => total + phase[key], 0);
  const faults = phases.flatMap(({ faults }) => faults);
  const lost = sum("lost") + sum("duplicated") + sum("mismatched") + (counts.twice ?? 0);
  const figures = ["sent", "answered", "lost", "duplicated", "mismatched"].map((key) => `${key} ${sum(key)}`);
  const told = `${figures.join(", ")}, executed twice ${counts.twice ?? counts.error}`;
  const slowest = Math.max(...alone.map(({ p99 }) => p99));
  const slowdown = attacked.p99 / slowest;
  const times = `p99 ${attacked.p99.toFixed(1)} ms, alone ${slowest.toFixed(1)} ms, ratio ${slowdown.toFixed(2)}`;
  return [
    { name: "answers of the well-behaved principal", ...(lost === 0 && counts.error === undefined ? { note: told } : { fault: `${told}; ${faults.join("; ")}` }) },
    { name: "its p99", ...(slowdown <= maxSlowdown ? { note: times } : { fault: times }) },
  ];
}

/** Waits until the gateway holds what it held at the start. */
async function holdingsVerdicts(watch, start) {
  const began = Date.now();
  const returned = ({ memory, descriptors, processes }) => ({
    memory: memory <= start.memory + MEMORY_SLACK_MIB,
    descriptors: descriptors <= start.descriptors + DESCRIPTOR_SLACK,
    processes: processes <= start.processes,
  });
  let now = watch.sample();
  while (Object.values(returned(now)).includes(false) && Date.now() - began < RETURN_LIMIT) {
    await sleep(500);
    now = watch.sample();
  }
  const seconds = ((Date.now() - began) / 1000).toFixed(0);
  const verdict = (name, holds, note) => ({ name, ...(holds ? { note } : { fault: note }) });
  const peak = `peak ${watch.peak.memory.toFixed(0)} MiB, limit ${MAX_MEMORY_MIB} MiB`;
  return [
    verdict("memory is bounded", watch.peak.memory < MAX_MEMORY_MIB, peak),
    ...Object.entries(returned(now)).map(([key, holds]) => {
      const figures = [start[key], watch.peak[key], now[key]].map((value) => value.toFixed(0));
      return verdict(`${key} returned`, holds, `start ${figures[0]}, peak ${figures[1]}, ${seconds} s after the end ${figures[2]}`);
    }),
  ];
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`attack/run: ${error.message}`);
  process.exitCode = 2;
}
