// Starts `plexus serve` in front of a server and two other servers, as in a usual configuration.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { root, startFixture } from "./fixture.mjs";

const REVISION = "2026-07-28";
const READY_LIMIT = 30_000;

const npm = (name) => join(root, ".tools", "peers", "node_modules", ".bin", name);

/**
 * Starts the gateway with the server `name`, defined by `definition` in the format of configuration files,
 * and two other servers. Waits until the tools of all three are listed.
 */
export async function startGateway(program, name, definition, log) {
  const folder = mkdtempSync(join(tmpdir(), "plexus-conformance-"));
  const mcpServers = {
    [name]: definition,
    everything: { command: npm("mcp-server-everything"), args: ["stdio"] },
    memory: { command: npm("mcp-server-memory"), env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") } },
  };
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, PLEXUS_DATA_DIR: join(folder, "data") };
  const args = ["serve", "--http", "127.0.0.1:0", "--mcp-config", config];
  const gateway = await startFixture(program, args, log, { cwd: folder, env });

  async function stop() {
    const faults = await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
    return faults;
  }

  try {
    await listed(gateway.url, Object.keys(mcpServers));
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: gateway.url, stop };
}

/** Waits until the gateway lists at least one tool of each of the `servers`. */
async function listed(url, servers) {
  const end = Date.now() + READY_LIMIT;
  for (;;) {
    const names = await tools(url);
    const missing = servers.filter((server) => !names.some((name) => name.startsWith(`${server}__`)));
    if (missing.length === 0) return;
    if (Date.now() > end) throw new Error(`the gateway does not list the tools of ${missing.join(" and ")}`);
    await sleep(100);
  }
}

/** The names of all tools, read page by page. */
async function tools(url) {
  const names = [];
  let cursor;
  do {
    const { tools, nextCursor } = await list(url, cursor);
    names.push(...tools.map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return names;
}

async function list(url, cursor) {
  const key = (name) => `io.modelcontextprotocol/${name}`;
  const _meta = {
    [key("protocolVersion")]: REVISION,
    [key("clientCapabilities")]: {},
    [key("clientInfo")]: { name: "conformance", version: "1.0.0" },
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta, cursor } }),
  });
  const { result } = await response.json();
  return result;
}
