// The environment of visits: a folder, a running server, a web page.

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

// Most of a visit is waiting for a server to start or to go.
const AT_ONCE = 4;

/** Does `work` with a folder of its own, a free port, and the environment for programs there. */
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

/** Starts a server that listens, and waits until it does. It is not the visitor's to end. */
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

/** Does `work` for every item, a few at a time. */
export async function eachOf(items, work) {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

/** A free port, for servers that cannot say which one they were given. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
