// The environment of visits: a temporary directory, a server that listens, and a web page.

import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";

import { ended, start, within } from "../../conformance/children.mjs";
import { root } from "../../conformance/fixture.mjs";

const START_LIMIT = 30_000;

// The usual number of concurrent visits. A visit mostly waits for a server to start or to exit.
const AT_ONCE = 4;

/** Calls `work` with a temporary directory, a free port, and environment variables for programs. */
export async function inPlace(work) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "plexus-visit-")));
  try {
    spawnSync("git", ["init", "--quiet", folder]);
    const path = join(root, ".tools", "bin") + delimiter + process.env.PATH;
    const env = { ...process.env, HOME: folder, PLEXUS_DATA_DIR: join(folder, ".plexus"), PATH: path };
    return await work({ folder, port: String(await freePort()), env });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a server that listens, and waits until it does. The caller, not the visitor, must stop it. */
export async function serve({ name, http, sse }, { folder, env }) {
  const server = http ?? sse;
  const options = { cwd: folder, env: { ...env, ...server.env } };
  const child = start(server.command, server.args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const listening = new Promise((resolve) => {
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => /(listening|running) on/i.test(line) && resolve(true));
    }
  });
  if ((await within(START_LIMIT, Promise.race([listening, ended(child)]))) !== true) {
    child.kill("SIGKILL");
    throw new Error(`${name} did not start listening`);
  }
  return child;
}

/** Serves the page that one of the servers is told to fetch. */
export async function servePage() {
  const server = createHttpServer((_, response) => {
    response.setHeader("content-type", "text/plain").end("a page to fetch");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Calls `work` for every item, at most `atOnce` at a time. */
export async function eachOf(items, work, atOnce = AT_ONCE) {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

/** A free port, for servers that do not print the port that they listen on. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
