// S003-56: tests Plexus with the real Claude Code. Claude Code uses the memory and the task list of Plexus,
// and Plexus runs Claude Code as an agent. The model is scripted: see model.mjs.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { ended, start, within } from "../../conformance/children.mjs";
import { target } from "../../conformance/fixture.mjs";
import { startModel } from "./model.mjs";

const USAGE = `usage: peers/claude-code/run [--plexus PROGRAM]

  --plexus PROGRAM   use this plexus instead of the one in target/debug`;

const LIMIT = 2 * 60_000;
const SENTENCE = "The blue kettle is kept on the third shelf.";

async function main() {
  const { values: options } = parseArgs({
    options: {
      plexus: { type: "string", default: join(target, "debug", "plexus") },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const claude = process.env.PLEXUS_CLAUDE ?? "claude";
  const found = spawnSync(claude, ["--version"], { encoding: "utf8" });
  if (found.error || found.status !== 0) {
    console.log(`skipped: Claude Code is not installed (looked for "${claude}"); see the head of peers/claude-code/run`);
    return true;
  }
  const plexus = resolve(options.plexus);
  if (!existsSync(plexus)) {
    throw new Error(`${plexus} is missing: run ./check build`);
  }
  console.log(`Claude Code ${found.stdout.trim()}`);
  for (const [name, walk] of Object.entries({ remembers, "works a task list": works, "is made to work": isMadeToWork })) {
    const home = mkdtempSync(join(tmpdir(), "plexus-claude-"));
    try {
      await walk({ claude, plexus, home });
      console.log(`ok ${name}`);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  }
  return true;
}

/** One run of the agent stores a memory. A second run and `plexus memory search` find it. */
async function remembers(place) {
  await agent(place, [() => use("context_store", { content: SENTENCE, key: "kettle" })]);
  const recalled = await agent(place, [() => use("context_search", { query: "where is the kettle" })]);
  expect(recalled, SENTENCE);
  expect(command(place, ["memory", "search", "kettle"]), SENTENCE);
}

/** The agent creates a task and its blocker, and completes the blocker. */
async function works(place) {
  const id = (result) => JSON.parse(result).id;
  const said = await agent(place, [
    () => use("task_create_task", { description: "Fill the kettle", priority: 1 }),
    () => use("task_create_task", { description: "Make tea" }),
    ([water, tea]) => use("task_add_blocker", { task_id: id(tea), blocked_by_id: id(water) }),
    () => use("task_claim_task", { owner: "claude" }),
    ([water]) => use("task_update_task", { id: id(water), status: "completed", result: "It is full" }),
    () => use("task_next_tasks", {}),
  ]);
  expect(said, "Make tea");
  const listed = command(place, ["task", "list", "--json"]);
  expect(listed, '"status":"completed"');
  expect(listed, '"result":"It is full"');
}

/** Plexus runs the agent. A permission request of the agent goes through Plexus to the client's user. */
async function isMadeToWork(place) {
  const model = await startModel([() => ({ tool: "Bash", input: { command: "touch made && echo done" } })]);
  const env = environment(place, model);
  const child = start(place.plexus, ["serve", "--stdio"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const call = (id, name, args) => send({ id, method: "tools/call", params: { name, arguments: args } });
  const answers = {};
  let questions = 0;
  const client = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      const message = JSON.parse(line);
      if (message.method === "elicitation/create") {
        questions += 1;
        expect(message.params.message, "touch made");
        send({ id: message.id, result: { action: "accept", content: { answer: "allow" } } });
      } else if (message.id !== undefined) {
        answers[message.id] = JSON.stringify(message.result ?? message.error);
        if (message.id === 1) call(2, "claudecode_chat", { session_name: "tea", query: "go" });
        if (message.id === 2) return;
      }
    }
  })();
  const clientInfo = { name: "peers/claude-code", version: "0" };
  const capabilities = { elicitation: { form: {} } };
  send({ id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities, clientInfo } });
  send({ method: "notifications/initialized" });
  call(1, "claudecode_create", { name: "tea", working_dir: place.home });
  await within(LIMIT, client);
  child.stdin.end();
  await within(LIMIT, ended(child));
  finish(model);
  expect(answers[2], "DONE: done");
  if (questions !== 1) throw new Error(`the user was asked ${questions} times`);
  if (!existsSync(join(place.home, "made"))) throw new Error("the agent did not do what it was allowed to");
}

/** A step of a plan that calls a tool of Plexus, by the name that Claude Code gives it. */
function use(tool, input) {
  return { tool: `mcp__plexus__${tool}`, input };
}

/** Runs the agent with Plexus as its only server; returns its output. */
async function agent(place, plan) {
  const model = await startModel(plan);
  const servers = { mcpServers: { plexus: { command: place.plexus, args: ["serve", "--stdio"] } } };
  const args = ["-p", "go", "--mcp-config", JSON.stringify(servers), "--strict-mcp-config", "--allowedTools", "mcp__plexus"];
  const env = environment(place, model);
  const child = start(place.claude, args, { env, cwd: place.home, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  const exit = await within(LIMIT, ended(child));
  if (exit === undefined) child.kill("SIGKILL");
  finish(model);
  if (exit !== 0) throw new Error(`Claude Code ended with ${exit}: ${output}`);
  return output;
}

/** Runs a command of Plexus on the data that the agent used. */
function command(place, args) {
  const env = environment(place, { url: "" });
  const { stdout, stderr, status } = spawnSync(place.plexus, args, { env, encoding: "utf8" });
  if (status !== 0) throw new Error(`plexus ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** The environment of a run: separate from the user's own files, and without telemetry and updates. */
function environment({ claude, home }, model) {
  return {
    PATH: process.env.PATH,
    PLEXUS_BUILTIN: "all",
    HOME: home,
    PLEXUS_DATA_DIR: join(home, "data"),
    PLEXUS_CLAUDE: claude,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "none",
    ENABLE_TOOL_SEARCH: "false",
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
}

function finish(model) {
  model.stop();
  if (model.problems.length > 0) throw new Error(model.problems.join("\n"));
}

function expect(said, part) {
  if (!said?.includes(part)) throw new Error(`expected ${JSON.stringify(part)} in: ${said}`);
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`FAILED ${error.message}`);
  process.exitCode = 1;
}
