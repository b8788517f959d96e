// Programs with an MCP client in them, each pointed at one server: `{ command, args, env }` or `{ url }`.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { ended, start, within } from "../../conformance/children.mjs";
import { root } from "../../conformance/fixture.mjs";
import { startModel } from "./model.mjs";

const LIMIT = 120_000;

const launcher = join(root, ".tools/peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

/** What the model has the agents call, and what must come of the last call. */
const PLAN = [
  { tool: /time__get_current_time$/, args: { timezone: "Europe/Berlin" } },
  { tool: /everything__echo$/, args: { message: "through the gateway" } },
];
const LAST_ANSWER = /Echo: through the gateway/;

/** Lists with the Inspector, finds tools of all servers named, and calls one. */
export async function inspector(place, era, server, names) {
  const home = mkdtempSync(join(place.folder, "inspector-"));
  const config = join(home, "mcp.json");
  const plexus = server.url ? { type: "streamable-http", url: server.url } : server;
  writeFileSync(config, JSON.stringify({ mcpServers: { plexus } }));
  const inspect = async (...args) => {
    const common = ["--cli", "--config", config, "--server", "plexus", "--protocol-era", era, "--format", "json"];
    const output = await run(process.execPath, [launcher, ...common, ...args], home, place.env);
    return JSON.parse(output).result;
  };
  const { tools } = await inspect("--method", "tools/list");
  const missing = names.filter((server) => !tools.some(({ name }) => name.startsWith(`${server}__`)));
  assert.deepEqual(missing, [], "no tools of these servers are listed");
  const call = ["--tool-name", "everything__echo", "--tool-arg", "message=hello"];
  const { content } = await inspect("--method", "tools/call", ...call);
  assert.equal(content[0].text, "Echo: hello");
}

/** Has Claude Code check the server's health, and call tools of it. */
export async function claude(agents, place, server) {
  const program = join(agents, "claude");
  const home = mkdtempSync(join(place.folder, "claude-"));
  const env = {
    ...place.env,
    ANTHROPIC_API_KEY: "x",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    ENABLE_TOOL_SEARCH: "false",
  };
  const plexus = server.url ? { type: "http", url: server.url } : { type: "stdio", ...server };
  await run(program, ["mcp", "add-json", "plexus", JSON.stringify(plexus)], home, env);
  assert.match(await run(program, ["mcp", "list"], home, env), /plexus: .*Connected/);

  const config = JSON.stringify({ mcpServers: { plexus } });
  const args = ["-p", "go", "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__plexus"];
  await withModel(async (url) => {
    const said = await run(program, args, home, { ...env, ANTHROPIC_BASE_URL: url });
    assert.match(said, LAST_ANSWER);
  });
}

/** Has Codex call tools of the server. */
export async function codex(agents, place, server) {
  const home = mkdtempSync(join(place.folder, "codex-"));
  const toml = (value) => {
    if (Array.isArray(value)) return `[${value.map(toml).join(",")}]`;
    if (typeof value !== "object") return JSON.stringify(value);
    return `{${Object.entries(value).map(([key, member]) => `${key}=${toml(member)}`).join(",")}}`;
  };
  await withModel(async (url) => {
    const provider = { name: "fake", base_url: `${url}/v1`, wire_api: "responses", env_key: "FAKE_KEY" };
    const settings = {
      model: "fake-model",
      model_provider: "fake",
      "model_providers.fake": { ...provider, request_max_retries: 0, stream_max_retries: 0 },
      "mcp_servers.plexus": server,
    };
    const args = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    args.push(...Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${toml(value)}`]), "go");
    const env = { ...place.env, CODEX_HOME: home, FAKE_KEY: "x" };
    assert.match(await run(join(agents, "codex"), args, home, env), LAST_ANSWER);
  });
}

async function withModel(work) {
  const model = await startModel(PLAN);
  try {
    await work(model.url);
  } finally {
    model.close();
  }
}

/** Runs a program in a home of its own, and gives what it printed. */
async function run(program, args, home, env) {
  const child = start(program, args, { cwd: home, env: { ...env, HOME: home }, stdio: ["ignore", "pipe", "pipe"] });
  const output = Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  const [said, log, exit] = (await within(LIMIT, output)) ?? ["", "it takes too long"];
  if (exit === undefined) child.kill("SIGKILL");
  assert.equal(exit, 0, `${program} ${args.join(" ")} ended with ${exit}: ${log}${said}`);
  return said;
}
