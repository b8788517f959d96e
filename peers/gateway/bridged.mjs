// Puts one server behind the bridge, and runs a client of each era against it.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

import { ended, start, within } from "../../conformance/children.mjs";
import { clear, marking } from "../servers/processes.mjs";
import { servers } from "../servers/servers.mjs";
import { inPlace, serve } from "../servers/environment.mjs";

const START_LIMIT = 60_000;
const VISIT_LIMIT = 60_000;
const END_LIMIT = 15_000;
const CLEAN_LIMIT = 500;

/** The clients by their only revision: the path of their endpoint, and their capabilities. */
export const clients = {
  "2026-07-28": { path: "/mcp", capabilities: { sampling: {}, elicitation: { form: {} } } },
  "2024-11-05": { path: "/sse", capabilities: { sampling: {} } },
};

/** Puts the server `entry.name` behind the bridge, runs the clients, and stores the results in `entry`. */
export async function bridge(programs, entry, page) {
  await inPlace(async (place) => {
    const server = servers({ ...place, page }).find(({ name }) => name === entry.name);
    if (server.stdio) return visitThrough(programs, server, place, entry);

    const listening = await serve(server, place);
    try {
      await visitThrough(programs, server, place, entry);
      if (listening.exitCode !== null) entry.faults.push("the server did not survive the visits");
    } finally {
      listening.kill("SIGKILL");
      await ended(listening);
    }
  });
}

async function visitThrough(programs, server, place, entry) {
  const mark = randomUUID();
  const plexus = await startBridge(programs.plexus, server, place, mark);
  for (const [revision, client] of Object.entries(clients)) {
    const url = new URL(client.path, plexus.url).href;
    entry.visits[revision] = await visit(programs.visitor, { url, revision, ...client }, server);
  }
  entry.faults.push(...(await plexus.end()), ...(await clear(mark, CLEAN_LIMIT)));
}

/** Starts the bridge, and waits until it listens. */
async function startBridge(program, { stdio, http, sse, era }, { folder, port, env }, mark) {
  const upstream = stdio
    ? ["--", stdio.command, ...(stdio.args ?? [])]
    : [`http://127.0.0.1:${port}${(http ?? sse).path}`];
  const args = ["bridge", "--http", "127.0.0.1:0", "--sse", ...(era ? ["--server-era", era] : []), ...upstream];
  const child = start(program, args, {
    cwd: stdio?.cwd ?? folder,
    env: { ...env, ...stdio?.env, ...marking(mark) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const listening = new Promise((found) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      log += `${line}\n`;
      const address = /listening on (http:\S+)/.exec(line);
      if (address) found(address[1]);
    });
  });
  const url = await within(START_LIMIT, Promise.race([listening, ended(child)]));
  if (!String(url).startsWith("http:")) {
    child.kill("SIGKILL");
    throw new Error(`the bridge did not start listening: ${log}`);
  }

  /** Stops the bridge. Returns its faults: a wrong exit status, or a panic. */
  async function end() {
    const faults = [];
    child.kill("SIGTERM");
    const exit = await within(END_LIMIT, ended(child));
    if (exit === undefined) child.kill("SIGKILL");
    if (exit !== 0) faults.push(`the bridge ended with ${exit ?? "nothing"}: ${log}`);
    if (log.includes("panicked at")) faults.push(`the bridge panicked: ${log}`);
    return faults;
  }

  return { url, end };
}

/** Runs one client. Returns its findings, and its faults: differences from the expected findings. */
async function visit(visitor, { url, revision, capabilities }, { call, finds, answer }) {
  const began = performance.now();
  const plan = { url, revision, capabilities, call: call && { name: call[0], arguments: call[1] } };
  const child = start(visitor, [JSON.stringify(plan)], { stdio: ["ignore", "pipe", "pipe"] });
  const output = Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  const [said, log, exit] = (await within(VISIT_LIMIT, output)) ?? ["", "it takes too long"];
  const seconds = (performance.now() - began) / 1000;
  if (exit !== 0) {
    child.kill("SIGKILL");
    return { seconds, faults: [`the client gave up: ${log.trim()}`] };
  }
  const found = JSON.parse(said);
  return { seconds, found, faults: differences(found, { revision, finds, answer }) };
}

function differences(found, { revision, finds, answer }) {
  const faults = [];
  const expect = (holds, fault) => holds || faults.push(fault);
  expect([found.revision].flat().includes(revision), `${JSON.stringify(found.revision)} is spoken, not ${revision}`);
  // The bridge declares all client capabilities, for which a server may offer more tools than usual.
  expect(found.tools >= (finds.tools ?? 0), `${found.tools} tools, not ${finds.tools}`);
  // The gateway passes on the error of a list that the server cannot make.
  const errors = found.list_errors.filter((error) => !(finds.listProblems ?? []).some((problem) => problem.includes(error)));
  expect(errors.length === 0, `list errors: ${errors.join(", ")}`);
  const missing = (finds.listProblems ?? []).length - found.list_errors.length;
  expect(missing === 0, `${missing} list errors less than without the gateway`);
  for (const list of ["resources", "templates", "prompts"]) {
    expect(found[list] === (finds[list] ?? 0), `${found[list]} ${list}, not ${finds[list] ?? 0}`);
  }
  for (const [kind, wanted] of Object.entries(answer ?? {})) {
    const got = JSON.stringify(found.called);
    expect(wanted.test(found.called?.[kind]), `the call gave ${got}, not ${kind} like ${wanted}`);
  }
  return faults;
}
