// One visit: the visitor is started, reports its findings, and exits or is stopped in one of three ways.
// After that, no process that it started may be left.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

import { ended, start, within } from "../../conformance/children.mjs";
import { clear, marked, marking, visible } from "./processes.mjs";
import { servers } from "./servers.mjs";
import { inPlace, serve } from "./environment.mjs";

const VISIT_LIMIT = 60_000;
const END_LIMIT = 15_000;
// A visitor that exits by itself leaves no process. If it is killed, its processes end a little later.
const CLEAN_LIMIT = 500;
const KILLED_LIMIT = 5_000;

/** The visitor, the guard of the server's processes, and the server. */
const PROCESSES = 3;

/** The ways in which a visit can end: the signal, the expected exit status, and the time for cleaning up. */
export const endings = {
  "by itself": { exit: 0, limit: CLEAN_LIMIT },
  "Ctrl-C": { signal: "SIGINT", exit: 130, limit: CLEAN_LIMIT },
  killed: { signal: "SIGKILL", exit: "SIGKILL", limit: KILLED_LIMIT },
};

/** Visits the server `name`. Returns the findings, and a list of faults. */
export async function visit(visitor, name, ending, page) {
  return inPlace(async (place) => {
    const server = servers({ ...place, page }).find((server) => server.name === name);
    return new Visit(server, endings[ending], { visitor, ...place }).run();
  });
}

class Visit {
  #server;
  #ending;
  #place;
  #mark = randomUUID();
  #faults = [];

  constructor(server, ending, place) {
    this.#server = server;
    this.#ending = ending;
    this.#place = place;
  }

  async run() {
    const { stdio, http, sse } = this.#server;
    if (stdio) return this.#visit({ stdio });

    const child = await serve(this.#server, this.#place);
    const address = { url: `http://127.0.0.1:${this.#place.port}${(http ?? sse).path}` };
    const outcome = await this.#visit(http ? { http: address } : { sse: address });
    if (child.exitCode !== null) this.#faults.push("the server did not survive the visit");
    child.kill("SIGKILL");
    await ended(child);
    return outcome;
  }

  async #visit(target) {
    const { era, capabilities, call } = this.#server;
    const { signal, exit, limit } = this.#ending;
    const plan = {
      target,
      era,
      capabilities,
      call: call && { name: call[0], arguments: call[1] },
      stay: signal !== undefined,
    };
    const visitor = start(this.#place.visitor, [JSON.stringify(plan)], {
      cwd: this.#place.folder,
      env: { ...this.#place.env, ...marking(this.#mark) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = ended(visitor);
    const output = createInterface({ input: visitor.stdout });
    const line = new Promise((resolve) => output.once("line", resolve).once("close", resolve));
    const said = await within(VISIT_LIMIT, line);
    const found = said ? JSON.parse(said) : { error: "the visitor says nothing" };
    if (found.error) {
      this.#faults.push(found.error);
      await within(END_LIMIT, exited);
      await this.#cleanUp(KILLED_LIMIT);
      return { found, faults: this.#faults };
    }
    this.#compare(found);

    if (signal) {
      this.#expect(!visible || marked(this.#mark).length >= PROCESSES, "the server's processes cannot be seen");
      visitor.kill(signal);
    }
    const end = await within(END_LIMIT, exited);
    this.#expect(end === exit, `the visitor ended with ${end ?? "nothing"} instead of ${exit}`);
    if (end === undefined) visitor.kill("SIGKILL");
    await this.#cleanUp(limit);
    return { found, faults: this.#faults };
  }

  #compare(found) {
    const { finds, answer } = this.#server;
    // On a busy machine, any server may start too slowly to answer `server/discover` in time.
    const quirks = found.quirks.filter((quirk) => quirk !== "SilentToDiscover");
    const expected = {
      state: "connected",
      reason: null,
      tools: 0,
      resources: 0,
      templates: 0,
      prompts: 0,
      quirks: [],
      quarantined: [],
      listProblems: [],
      violations: null,
      ...finds,
    };
    for (const [member, wanted] of Object.entries(expected)) {
      const value = { ...found, quirks }[member];
      const got = JSON.stringify(value);
      const matches = wanted instanceof RegExp ? wanted.test(value) : got === JSON.stringify(wanted);
      this.#expect(matches, `${member} is ${got}, not ${wanted instanceof RegExp ? wanted : JSON.stringify(wanted)}`);
    }
    for (const [kind, wanted] of Object.entries(answer ?? {})) {
      const got = JSON.stringify(found.called);
      this.#expect(wanted.test(found.called?.[kind]), `the call gave ${got}, not ${kind} like ${wanted}`);
    }
  }

  async #cleanUp(limit) {
    this.#faults.push(...(await clear(this.#mark, limit)));
  }

  #expect(holds, fault) {
    if (!holds) this.#faults.push(fault);
  }
}
