// The programs under test: the fixture server, to which the suites and the peers connect, the client that
// the suites start, and plexus itself.

import { createWriteStream, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { fileURLToPath } from "node:url";

import { ended, start, within } from "./children.mjs";

const START_LIMIT = 10_000;
const STOP_LIMIT = 10_000;

/** The root of the repository. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** The directory for build results and for the output of these scripts. */
export const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");

/** The path of the fixture server: `asked`, by default the debug build. */
export function fixtureProgram(asked = process.env.PLEXUS_FIXTURE_SERVER) {
  return existing(asked ? resolve(asked) : join(target, "debug", "conformance-server"));
}

/** The path of the conformance client: `asked`, by default the debug build. */
export function clientProgram(asked = process.env.PLEXUS_CONFORMANCE_CLIENT) {
  return existing(asked ? resolve(asked) : join(target, "debug", "conformance-client"));
}

/** The path of plexus: `asked`, by default the debug build. */
export function plexusProgram(asked = process.env.PLEXUS_PROGRAM) {
  return existing(asked ? resolve(asked) : join(target, "debug", "plexus"));
}

/**
 * Starts the fixture server, or plexus in front of it, and waits until it prints its URL.
 * `args` must make it listen, for example `--http 127.0.0.1:0`. Its standard error goes to the file `log`.
 * `options` has its working directory and environment.
 */
export async function startFixture(program, args, log, options = {}) {
  mkdirSync(dirname(log), { recursive: true });
  const logged = createWriteStream(log);
  const child = start(program, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
  child.stderr.pipe(logged);

  const listening = new Promise((found) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      const address = /listening on (http:\S+)/.exec(line);
      if (address) found(address[1]);
    });
  });
  const outcome = await within(START_LIMIT, Promise.race([listening, ended(child)]));
  if (typeof outcome !== "string" || !outcome.startsWith("http:")) {
    child.kill("SIGKILL");
    throw new Error(`the fixture server did not start listening: see ${log}`);
  }

  /** Stops the server. Returns its faults: an earlier exit, a panic, or no exit after SIGTERM. */
  async function stop() {
    const faults = [];
    if (child.exitCode !== null || child.signalCode !== null) {
      faults.push(`it ended by itself (${child.exitCode ?? child.signalCode})`);
    } else {
      child.kill("SIGTERM");
      if ((await within(STOP_LIMIT, ended(child))) === undefined) {
        child.kill("SIGKILL");
        await ended(child);
        faults.push(`it did not stop within ${STOP_LIMIT / 1000} s of SIGTERM`);
      }
    }
    await finished(logged);
    if (readFileSync(log, "utf8").includes("panicked at")) {
      faults.push("it panicked");
    }
    return faults.map((fault) => `the fixture server: ${fault} (see ${log})`);
  }

  return { url: outcome, stop };
}

function existing(program) {
  if (!existsSync(program)) {
    throw new Error(`${program} is missing: run ./check build`);
  }
  return program;
}
