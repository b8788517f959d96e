// Runs `plexus setup` where Claude Code and Codex have servers of their own. Afterwards both must have
// the tools of the servers through Plexus only, none of them twice; and after `plexus setup --undo`,
// their files must be as they were.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";

import { ended, start, within } from "../../conformance/children.mjs";
import { root, target } from "../../conformance/fixture.mjs";
import { startModel } from "../gateway/model.mjs";

const USAGE = `usage: peers/agents/run setup [--plexus PROGRAM]

  --plexus PROGRAM   use this plexus instead of the one in target/debug`;

const LIMIT = 120_000;
const TIME = join(root, ".tools/python/bin/mcp-server-time");
const EVERYTHING = join(root, ".tools/peers/node_modules/.bin/mcp-server-everything");
const PLAN = [{ tool: /time__get_current_time$/, args: { timezone: "Europe/Berlin" } }];

const CLAUDE = JSON.stringify(
  {
    mcpServers: {
      time: { type: "stdio", command: TIME, args: [] },
      everything: { type: "stdio", command: EVERYTHING, args: ["stdio"] },
    },
  },
  null,
  2,
);
const CODEX = `# Mine.
model = "fake-model"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "URL/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.time] # the same server
command = ${JSON.stringify(TIME)}

[mcp_servers.more]
command = ${JSON.stringify(EVERYTHING)}
args = ["stdio"]
startup_timeout_sec = 60
`;

async function main() {
  const { values: options } = parseArgs({
    options: {
      agents: { type: "string" },
      plexus: { type: "string", default: join(target, "debug", "plexus") },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) return console.log(USAGE);
  const home = mkdtempSync(join(tmpdir(), "plexus-setup-"));
  const place = { home, agents: options.agents, plexus: resolve(options.plexus) };
  try {
    await walk(place);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function walk(place) {
  const model = await startModel(PLAN);
  try {
    const files = { ".claude.json": CLAUDE, ".codex/config.toml": CODEX.replace("URL", model.url) };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(place.home, file, ".."), { recursive: true });
      writeFileSync(join(place.home, file), text);
    }
    // The first start of an agent completes its file. It is part of what undoing restores.
    const before = Object.fromEntries(Object.keys(files).map((file) => [file, read(place, file)]));
    const named = ["--client", "claude-code", "--client", "codex"];
    const report = JSON.parse(await run(place, model, place.plexus, ["setup", "--yes", "--json", ...named]));
    assert.deepEqual(report.agents.map(({ registration }) => registration), ["command", "command"]);
    assert.deepEqual(report.doctor.findings.filter(({ severity }) => severity === "error"), []);
    console.log("ok setup: both agents were set up with their own command");

    assert.deepEqual(servers(await run(place, model, "claude", ["mcp", "list"])), ["plexus"]);
    const codex = JSON.parse(await run(place, model, "codex", ["mcp", "list", "--json"]));
    assert.deepEqual(codex.filter(({ enabled }) => enabled).map(({ name }) => name), ["plexus"]);
    console.log("ok servers: both agents start Plexus only");

    await calls("Claude Code", model.url, place, "claude", ["-p", "go", "--allowedTools", "mcp__plexus"]);
    const exec = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    await calls("Codex", undefined, place, "codex", [...exec, "-c", "mcp_servers.plexus.required=true", "go"]);

    await run(place, model, place.plexus, ["setup", "--undo", "--client", "codex"]);
    assert.equal(read(place, ".codex/config.toml"), before[".codex/config.toml"]);
    // Claude Code has written its file since.
    await run(place, model, place.plexus, ["setup", "--undo"]);
    const restored = JSON.parse(read(place, ".claude.json"));
    assert.deepEqual(restored.mcpServers, JSON.parse(CLAUDE).mcpServers);
    assert.ok(restored.numStartups || restored.userID, "what Claude Code has written since is lost");
    console.log("ok undo: the files have their servers again");
  } finally {
    model.close();
  }
}

/** Runs an agent that calls a tool, and checks that it was offered no tool twice, and all by Plexus. */
async function calls(title, url, place, program, args) {
  const model = await startModel(PLAN);
  try {
    // Codex has the address of its model in its file.
    if (!url) args.splice(1, 0, "-c", `model_providers.fake.base_url="${model.url}/v1"`);
    const said = await run(place, model, program, args);
    assert.match(said, /Europe\/Berlin/);
    const tools = model.offered().filter((name) => /get_current_time$|echo$/.test(name));
    assert.equal(tools.filter((name) => name.endsWith("get_current_time")).length, 1, tools.join(" "));
    assert.ok(tools.every((name) => name.startsWith("mcp__plexus")), tools.join(" "));
    console.log(`ok ${title}: the tools of its servers come through Plexus only`);
  } finally {
    model.close();
  }
}

/** The names in the output of `claude mcp list`. */
function servers(listed) {
  return [...listed.matchAll(/^(\S+): /gm)].map(([, name]) => name);
}

function read({ home }, file) {
  return readFileSync(join(home, file), "utf8");
}

/** Runs a program in the home directory; returns its standard output. */
async function run({ home, agents }, model, program, args) {
  const env = {
    HOME: home,
    PATH: [agents, process.env.PATH].join(delimiter),
    FAKE_KEY: "x",
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "x",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    ENABLE_TOOL_SEARCH: "false",
  };
  const work = join(home, "work");
  mkdirSync(work, { recursive: true });
  const child = start(program, args, { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] });
  const output = Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  const [said, log, exit] = (await within(LIMIT, output)) ?? ["", "it takes too long"];
  if (exit === undefined) child.kill("SIGKILL");
  assert.equal(exit, 0, `${program} ${args.join(" ")} ended with ${exit}: ${log}${said}`);
  return said;
}

try {
  await main();
} catch (error) {
  console.error(`FAILED ${error.message}`);
  process.exitCode = 1;
}
