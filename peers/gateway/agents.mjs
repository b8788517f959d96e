// Runs MCP clients (the Inspector, and agents) against one server: `{ command, args, env }` or `{ url }`.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { ended, start, within } from "../../conformance/children.mjs";
import { root } from "../../conformance/fixture.mjs";
import { startModel } from "./model.mjs";

const LIMIT = 120_000;

const launcher = join(root, ".tools/peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

/** The default task: the tool calls of the model, the expected last answer, and tools that must be offered. */
const TASK = {
  plan: [
    { tool: /time__get_current_time$/, args: { timezone: "Europe/Berlin" } },
    { tool: /everything__echo$/, args: { message: "through the gateway" } },
  ],
  answer: /Echo: through the gateway/,
  tools: [],
};

/** With the Inspector: lists the tools, checks that each server in `names` has one, and calls a tool. */
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

/** Runs the health check of Claude Code (`claude mcp list`) on the server. */
export async function claudeHealth(programs, place, server) {
  const program = join(programs, "claude");
  const home = newHome(place, "claude-health");
  const env = { ...place.env, ...CLAUDE_ENV };
  await run(program, ["mcp", "add-json", "plexus", JSON.stringify(forClaude(server))], home, env);
  assert.match(await run(program, ["mcp", "list"], home, env), /plexus: .*Connected/);
}

/** Runs Claude Code, which calls tools of the server. */
function claude(programs, place, server, { home = newHome(place, "claude"), task = TASK } = {}) {
  const config = JSON.stringify({ mcpServers: { plexus: forClaude(server) } });
  const args = ["-p", "go", "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__plexus"];
  return withModel(task, (url) => {
    return run(join(programs, "claude"), args, home, { ...place.env, ...CLAUDE_ENV, ANTHROPIC_BASE_URL: url });
  });
}

const CLAUDE_ENV = {
  ANTHROPIC_API_KEY: "x",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  ENABLE_TOOL_SEARCH: "false",
};

function forClaude(server) {
  return server.url ? { type: "http", url: server.url } : { type: "stdio", ...server };
}

/**
 * Runs Codex, which calls tools of the server. Codex waits less than a second for the list of tools, then
 * continues without it. With `patient`, it waits longer; the other agents always wait 30 s.
 */
function codex(programs, place, server, { home = newHome(place, "codex"), task = TASK, patient = false } = {}) {
  return withModel(task, (url) => {
    const args = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    args.push(...codexSettings(url, server, patient), "go");
    return run(join(programs, "codex"), args, home, { ...place.env, ...codexEnv(home) });
  });
}

/** The arguments of Codex for the model at `url` and for the server. With `patient`, Codex waits for the server. */
export function codexSettings(url, server, patient) {
  const toml = (value) => {
    if (Array.isArray(value)) return `[${value.map(toml).join(",")}]`;
    if (typeof value !== "object") return JSON.stringify(value);
    return `{${Object.entries(value).map(([key, member]) => `${key}=${toml(member)}`).join(",")}}`;
  };
  const provider = { name: "fake", base_url: `${url}/v1`, wire_api: "responses", env_key: "FAKE_KEY" };
  const settings = {
    model: "fake-model",
    model_provider: "fake",
    "model_providers.fake": { ...provider, request_max_retries: 0, stream_max_retries: 0 },
    "mcp_servers.plexus": { ...server, required: patient },
  };
  return Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${toml(value)}`]);
}

/** The environment of Codex, which keeps its files in `home`. */
export function codexEnv(home) {
  return { CODEX_HOME: home, FAKE_KEY: "x" };
}

/** Runs Gemini CLI, which calls tools of the server. */
function gemini(programs, place, server, { home = newHome(place, "gemini"), task = TASK } = {}) {
  const plexus = { ...(server.url ? { httpUrl: server.url } : server), trust: true };
  const settings = {
    mcpServers: { plexus },
    security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
    general: { disableAutoUpdate: true },
  };
  mkdirSync(join(home, ".gemini"), { recursive: true });
  writeFileSync(join(home, ".gemini", "settings.json"), JSON.stringify(settings));
  const env = { ...place.env, GEMINI_API_KEY: "x", GEMINI_CLI_TRUST_WORKSPACE: "true" };
  return withModel(task, (url) => {
    // Without `--model`, Gemini CLI first asks another model which one to use.
    const args = ["--yolo", "--model", "gemini-2.5-flash", "--prompt", "go"];
    return run(join(programs, "gemini"), args, home, { ...env, GOOGLE_GEMINI_BASE_URL: url });
  });
}

/** The agents, by name. */
export const agents = { "Claude Code": claude, Codex: codex, "Gemini CLI": gemini };

/** Starts a model with the task's plan, runs an agent with `work`, and checks the tools and the answer. */
async function withModel({ plan, answer, tools }, work) {
  const model = await startModel(plan);
  try {
    const said = await work(model.url);
    const missing = notOffered(tools, model.offered());
    assert.ok(missing.length === 0, `${missing.length} of ${tools.length} tools are not offered, first ${missing[0]}`);
    assert.match(said, answer);
  } finally {
    model.close();
  }
}

/** The `tools` that are not in `offered`. Agents add a prefix to names, and some replace hyphens. */
function notOffered(tools, offered) {
  const plain = (name) => name.replaceAll("-", "_");
  return tools.filter((tool) => !offered.some((name) => plain(name).endsWith(plain(tool))));
}

function newHome(place, name) {
  return mkdtempSync(join(place.folder, `${name}-`));
}

/** Runs a program with the home directory `home`; returns its standard output. */
async function run(program, args, home, env) {
  const child = start(program, args, { cwd: home, env: { ...env, HOME: home }, stdio: ["ignore", "pipe", "pipe"] });
  const output = Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  const [said, log, exit] = (await within(LIMIT, output)) ?? ["", "it takes too long"];
  if (exit === undefined) child.kill("SIGKILL");
  assert.equal(exit, 0, `${program} ${args.join(" ")} ended with ${exit}: ${log}${said}`);
  return said;
}
