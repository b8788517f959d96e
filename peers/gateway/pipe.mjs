// A minimal stdio client that measures the time since the server was started.

import { createInterface } from "node:readline";

import { ended, start, within } from "../../conformance/children.mjs";
import { HANDSHAKE, statelessMeta } from "./eras.mjs";

const POLL_EVERY = 10;
const PATIENCE = 30_000;
const END_LIMIT = 15_000;

export class Pipe {
  #began = performance.now();
  #child;
  #era;
  #listening;
  #waiting = new Map();
  #lastId = 0;

  /** Starts a server as `{ command, args, env, cwd }` says. The `era` of the client is legacy or modern. */
  constructor({ command, args = [], env, cwd, era = "legacy" }) {
    this.#era = era;
    this.#child = start(command, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
    // A server that was killed cannot be written to; its requests then stay without an answer.
    this.#child.stdin.on("error", () => {});
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#receive(JSON.parse(line)));
    this.#listening = new Promise((resolve) => {
      createInterface({ input: this.#child.stderr }).on("line", (line) => {
        const url = /listening on (http:\S+)/.exec(line)?.[1];
        if (url) resolve(url);
      });
    });
  }

  /**
   * Opens a session with these capabilities; in the modern era, discovers the server instead. Requests of
   * the server are refused nevertheless.
   */
  async open(capabilities = {}) {
    if (this.#era === "modern") {
      await this.request("server/discover");
      return;
    }
    const clientInfo = { name: "pipe", version: "1.0.0" };
    await this.request("initialize", { protocolVersion: HANDSHAKE, capabilities, clientInfo });
    this.#send({ method: "notifications/initialized" });
  }

  /** Sends a request, and waits for the result. */
  async request(method, params = {}) {
    const id = ++this.#lastId;
    const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
    const whole = this.#era === "modern" ? { ...params, _meta: statelessMeta("pipe") } : params;
    this.#send({ id, method, params: whole });
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

  /** Lists the tools until `wanted(names)` holds; returns the milliseconds since the server was started. */
  async until(wanted) {
    for (;;) {
      const names = await this.tools();
      if (wanted(names)) return this.age();
      if (this.age() > PATIENCE) throw new Error(`still waiting; there are ${names.join(", ")}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY));
    }
  }

  /** The URL that the server prints when it listens on HTTP. */
  async url() {
    const url = await within(PATIENCE, this.#listening);
    if (!url) throw new Error("the server does not listen");
    return url;
  }

  /** The milliseconds since the server was started. */
  age() {
    return performance.now() - this.#began;
  }

  /**
   * Closes the server's input, or sends `signal`. Returns its exit code, or the signal that ended it;
   * undefined if it had to be killed.
   */
  async close(signal) {
    if (signal) this.#child.kill(signal);
    else this.#child.stdin.end();
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
