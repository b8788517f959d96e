// Runs the MCP Inspector's command line against one server.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ended, start } from "../conformance/children.mjs";
import { root } from "../conformance/fixture.mjs";

const launcher = join(
  root,
  ".tools/peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);

/** Returns a function that runs the Inspector against `server`, an entry of `mcpServers`, and parses the result. */
export function inspector(server, era) {
  // The Inspector stores files in the home directory, so it gets a temporary one.
  const home = mkdtempSync(join(tmpdir(), "plexus-inspector-"));
  process.on("exit", () => rmSync(home, { recursive: true, force: true }));
  const config = join(home, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { server } }));

  return async function inspect(...args) {
    const child = start(
      process.execPath,
      [launcher, "--cli", "--config", config, "--server", "server", "--protocol-era", era, "--format", "json", ...args],
      { env: { ...process.env, HOME: home }, stdio: ["ignore", "pipe", "pipe"] },
    );
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const exit = await ended(child);
    assert.equal(exit, 0, `inspector ${args.join(" ")} ended with ${exit}: ${stderr}${stdout}`);
    return JSON.parse(stdout).result;
  };
}
