// A minimal client of a server on a pipe. It measures time.

import { createInterface } from "node:readline";

import { ended, start, within } from "../../conformance/children.mjs";

const POLL_EVERY = 10;
const PATIENCE = 30_000;
const END_LIMIT = 15_000;

export class Pipe {
  #began = performance.now();
  #child;
  #waiting = new Map();
  #lastId = 0;

  /** Starts a server as `{ command, args, env, cwd }` says. */
  constructor({ command, args = [], env, cwd }) {
    this.#child = start(command, args, { env, cwd, stdio: ["pipe", "pipe", "ignore"] });
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#receive(JSON.parse(line)));
  }

  /** Opens a session. Whatever the capabilities say, requests of the server are refused. */
  async open(capabilities = {}) {
    const clientInfo = { name: "pipe", version: "1.0.0" };
    await this.request("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo });
    this.#send({ method: "notifications/initialized" });
  }

  /** Sends a request, and waits for the result. */
  async request(method, params = {}) {
    const id = ++this.#lastId;
    const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#send({ id, method, params });
    const answer = await within(PATIENCE, answered);
    if (!answer?.result) throw new Error(`${method}: ${JSON.stringify(answer?.error ?? "no answer")}`);
    return answer.result;
  }

  /** The names of all tools, page by page. */
  async tools() {
    const names = [];
    let params = {};
    do {
      const { tools, nextCursor } = await this.request("tools/list", params);
      names.push(...tools.map(({ name }) => name));
      params = nextCursor && { cursor: nextCursor };
    } while (params);
    return names;
  }

  /** Lists until the tools are as `wanted`, and gives the milliseconds since the server was started. */
  async until(wanted) {
    for (;;) {
      const names = await this.tools();
      if (wanted(names)) return this.age();
      if (this.age() > PATIENCE) throw new Error(`still waiting; there are ${names.join(", ")}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY));
    }
  }

  /** The milliseconds since the server was started. */
  age() {
    return performance.now() - this.#began;
  }

  /** Ends it by closing its input, and gives its exit code; nothing if it had to be killed. */
  async close() {
    this.#child.stdin.end();
    const exit = await within(END_LIMIT, ended(this.#child));
    if (exit === undefined) this.#child.kill("SIGKILL");
    return exit;
  }

  #receive(message) {
    if (message.method === undefined) {
      this.#waiting.get(message.id)?.(message);
    } else if (message.id !== undefined) {
      this.#send({ id: message.id, error: { code: -32601, message: "this client answers nothing" } });
    }
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}
