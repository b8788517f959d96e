// Starts gateways with a folder, servers and tokens of their own.

import { execFileSync, spawnSync } from "node:child_process";
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";

import { ended, start, within } from "../conformance/children.mjs";
import { root } from "../conformance/fixture.mjs";

const START_LIMIT = 60_000;
const STOP_LIMIT = 15_000;
const COMMAND_LIMIT = 60_000;

/** How long a call of a hostile server may take. */
export const HOSTILE_CALL_LIMIT = 6_000;

const servers = join(root, "attack", "servers");

/** The definition of the well-behaved server. */
export const honest = { command: process.execPath, args: [join(servers, "honest.mjs")] };

/** The definition of a hostile server on stdio. It appends a line to `journal` whenever it starts. */
export function hostile(behaviour, journal) {
  const args = [join(servers, "hostile.mjs"), behaviour, ...(journal ? [journal] : [])];
  return { command: process.execPath, args, timeout_ms: HOSTILE_CALL_LIMIT };
}

/** A home directory for one gateway and its commands. */
export class Home {
  /** A home with the settings `toml` of plexus.toml, and these servers. */
  constructor(program, { toml = "", mcpServers = {}, env = {} } = {}) {
    this.program = program;
    this.folder = mkdtempSync(join(tmpdir(), "plexus-attack-"));
    mkdirSync(join(this.folder, "plexus"));
    this.settings = join(this.folder, "plexus", "plexus.toml");
    writeFileSync(this.settings, toml);
    this.servers = join(this.folder, "servers.json");
    this.define(mcpServers);
    this.data = join(this.folder, "data");
    const { PATH, LANG = "C.UTF-8" } = process.env;
    this.env = { PATH, LANG, HOME: this.folder, XDG_CONFIG_HOME: this.folder, PLEXUS_DATA_DIR: this.data, ...env };
  }

  /** Defines the servers. */
  define(mcpServers) {
    writeFileSync(this.servers, JSON.stringify({ mcpServers }));
  }

  /** Writes a file of the home directory, which is also the project of every command. */
  write(name, text) {
    writeFileSync(join(this.folder, name), text);
  }

  /** Runs a command that succeeds, and returns its standard output. */
  run(...args) {
    return execFileSync(this.program, args, this.#options()).trim();
  }

  /** Runs a command, and returns everything that it prints. */
  shown(...args) {
    const { stdout, stderr, error } = spawnSync(this.program, args, this.#options());
    if (error) throw error;
    return stdout + stderr;
  }

  #options() {
    return { cwd: this.folder, env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: COMMAND_LIMIT };
  }

  /** Makes a token for the principal `token:NAME`. */
  token(name) {
    return this.run("token", "add", name);
  }

  /**
   * Serves HTTP on a free port. `shell` is what a shell does before it becomes the gateway, for example
   * `ulimit -n 256`.
   */
  async serve(args = [], { shell } = {}) {
    const all = ["serve", "--http", "127.0.0.1:0", "--mcp-config", this.servers, ...args];
    const [program, words] = shell ? ["sh", ["-c", `${shell}; exec "$0" "$@"`, this.program, ...all]] : [this.program, all];
    const log = join(this.folder, `log-${process.pid}-${Date.now()}`);
    const logged = createWriteStream(log);
    const child = start(program, words, { cwd: this.folder, env: this.env, stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.pipe(logged);
    const listening = new Promise((found) => {
      createInterface({ input: child.stderr }).on("line", (line) => {
        const address = /listening on (http:\S+)/.exec(line);
        if (address) found(address[1]);
      });
    });
    const url = await within(START_LIMIT, Promise.race([listening, ended(child)]));
    if (typeof url !== "string" || !url.startsWith("http:")) {
      child.kill("SIGKILL");
      throw new Error(`the gateway did not start: ${readFileSync(log, "utf8")}`);
    }
    return new Gateway(child, url, log, logged);
  }

  /** Removes the directory. */
  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

class Gateway {
  #child;
  #logged;

  constructor(child, url, log, logged) {
    this.#child = child;
    this.#logged = logged;
    this.url = url;
    this.log = log;
  }

  get pid() {
    return this.#child.pid;
  }

  /** Whether the process still runs. */
  get runs() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Stops the gateway. Returns its faults: an earlier exit, a panic, or no exit after SIGTERM. */
  async stop() {
    const faults = [];
    if (!this.runs) {
      faults.push(`the gateway ended by itself (${this.#child.exitCode ?? this.#child.signalCode})`);
    } else {
      this.#child.kill("SIGTERM");
      if ((await within(STOP_LIMIT, ended(this.#child))) === undefined) {
        this.#child.kill("SIGKILL");
        await ended(this.#child);
        faults.push(`the gateway did not stop within ${STOP_LIMIT / 1000} s of SIGTERM`);
      }
    }
    await finished(this.#logged).catch(() => {});
    const panic = /^.*panicked at.*$/m.exec(readFileSync(this.log, "utf8"));
    if (panic) faults.push(`the gateway panicked: ${panic[0]}`);
    return faults;
  }
}

/** Runs `work` with a gateway of its own, and fails if the gateway had a fault. */
export async function withGateway(program, { toml, mcpServers, env, args, shell, prepare = () => ({}) }, work) {
  const home = new Home(program, { toml, mcpServers, env });
  try {
    const prepared = prepare(home);
    const gateway = await home.serve(args, { shell });
    let faults = [];
    let result;
    try {
      result = await work({ home, gateway, url: gateway.url, ...prepared });
    } finally {
      faults = await gateway.stop();
    }
    if (faults.length > 0) throw new Error(faults.join("; "));
    return result;
  } finally {
    home.remove();
  }
}
