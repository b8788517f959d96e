// Tests that a form with multiple choices reaches a client of 2025-06-18, which has no field for them: Codex.
// It must be asked with a text field that names the allowed values, and the tool must get an array. An answer
// with a value that is not allowed must be asked for again, with the reason.
//
// `codex exec` has no user and declines every form, so this script is the user of `codex app-server`.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { ended, start, within } from "../../conformance/children.mjs";
import { fixtureProgram, plexusProgram, startFixture, target } from "../../conformance/fixture.mjs";
import { codexEnv, codexSettings } from "../gateway/agents.mjs";
import { startModel } from "../gateway/model.mjs";
import { Report } from "../gateway/report.mjs";
import { inPlace } from "../servers/environment.mjs";
import { clear, marking } from "../servers/processes.mjs";

const USAGE = `usage: peers/agents/run form [--plexus PROGRAM] [--server PROGRAM]

  --plexus PROGRAM   use this plexus instead of the one in target/debug
  --server PROGRAM   use this fixture server instead of the one in target/debug`;

const LIMIT = 60_000;
const CLEAN_LIMIT = 3000;

/** The call of the model: a tool that asks for one or more of several values, in each way that there is. */
const PLAN = [{ tool: /fixture__test_elicitation_sep1330_enums$/, args: {} }];
const QUESTION = "Please choose.";
/** The answer to the first question has this value, which is not allowed. */
const WRONG = "option9";

/** For each field that allows several values: the values that its description must name, and the answer. */
const SEVERAL = {
  untitledMulti: {
    allowed: ["option1", "option2", "option3"],
    answer: "option1, option2",
    typed: ["option1", "option2"],
  },
  titledMulti: {
    allowed: ["value1", "value2", "value3"],
    answer: '["value3"]',
    typed: ["value3"],
  },
};
/** The answers to the other fields. */
const SINGLE = { untitledSingle: "option2", titledSingle: "value1", legacyEnum: "opt3" };

async function main() {
  const { values: options } = parseArgs({
    options: {
      plexus: { type: "string" },
      server: { type: "string" },
      agents: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const plexus = plexusProgram(options.plexus);
  const fixture = fixtureProgram(options.server);
  const program = join(resolve(options.agents), "codex");

  const report = new Report();
  const mark = randomUUID();
  await inPlace(async (place) => {
    Object.assign(place.env, marking(mark));
    const config = join(place.folder, "mcp.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { fixture: { command: fixture, args: ["--stdio"] } } }));
    const serving = ["serve", "--mcp-config", config];
    const { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME } = place.env;
    const env = { PLEXUS_DATA_DIR, PLEXUS_VISIT, PATH, HOME };
    const http = await startFixture(plexus, [...serving, "--http", "127.0.0.1:0"], join(target, "peers", "form.log"), {
      env: place.env,
      cwd: place.folder,
    });
    const ways = { stdio: { command: plexus, args: [...serving, "--stdio"], env }, http: { url: http.url } };
    for (const [transport, server] of Object.entries(ways)) {
      await report.step(`Codex is asked, ${transport}`, () => isAsked(program, place, transport, server));
    }
    await report.step("the gateway on HTTP ends", async () => assert.deepEqual(await http.stop(), []));
  });
  await report.step("nothing is left behind", async () => assert.deepEqual(await clear(mark, CLEAN_LIMIT), []));
  return report.print();
}

/** Has Codex call the tool, and answers the form as its user. */
async function isAsked(program, place, transport, server) {
  const home = join(place.folder, `codex-${transport}`);
  mkdirSync(home);
  const model = await startModel(PLAN);
  const args = ["app-server", ...codexSettings(model.url, server, true)];
  const codex = new AppServer(program, args, home, { ...place.env, ...codexEnv(home), HOME: home });
  try {
    const turn = codex.turn();
    const { asked, text } = (await within(LIMIT, Promise.race([turn, codex.ended()]))) ?? {};
    assert.ok(text, `the tool was not called: ${codex.log()}`);
    assert.equal(asked.length, 2, "how often the user was asked");
    const [first, again] = asked;
    assert.equal(first.message, QUESTION);
    assert.ok(again.message.startsWith(QUESTION) && again.message.includes(WRONG), `the reason: ${again.message}`);
    asked.forEach(({ requestedSchema }) => assertLowered(requestedSchema));
    const typed = Object.fromEntries(Object.entries(SEVERAL).map(([name, { typed }]) => [name, typed]));
    const content = /action=accept, content=(\{.*\})$/.exec(text)?.[1];
    assert.deepEqual(JSON.parse(content ?? "null"), { ...SINGLE, ...typed }, `the tool got another answer: ${text}`);
  } finally {
    await codex.close();
    model.close();
  }
}

/** Each field that allows several values must be a text field that names them. */
function assertLowered({ properties }) {
  for (const [name, { allowed }] of Object.entries(SEVERAL)) {
    const { type, description } = properties[name];
    assert.equal(type, "string", `the type of the field ${name}`);
    const unnamed = allowed.filter((value) => !description.includes(value));
    assert.deepEqual(unnamed, [], `the description of ${name} does not name these: ${description}`);
  }
}

/** A client of `codex app-server`, which speaks JSON-RPC on its standard input and output. */
class AppServer {
  #child;
  #lastId = 0;
  #waiting = new Map();
  #asked = [];
  #text;
  #log = "";
  #completed = Promise.withResolvers();

  constructor(program, args, home, env) {
    this.#child = start(program, args, { cwd: home, env, stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdin.on("error", () => {});
    this.#child.stderr.on("data", (data) => (this.#log += data));
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#receive(JSON.parse(line)));
  }

  /** One turn of the model. Returns what the user was asked, and the text of the tool's result. */
  async turn() {
    const capabilities = { experimentalApi: false, requestAttestation: false };
    await this.#request("initialize", { clientInfo: { name: "form", title: null, version: "1.0.0" }, capabilities });
    this.#send({ method: "initialized" });
    const { thread } = await this.#request("thread/start", { approvalPolicy: "on-request", sandbox: "read-only" });
    const input = [{ type: "text", text: "go", text_elements: [] }];
    await this.#request("turn/start", { threadId: thread.id, input });
    await this.#completed.promise;
    return { asked: this.#asked, text: this.#text };
  }

  /** Fails when the program ends. */
  async ended() {
    throw new Error(`codex app-server ended with ${await ended(this.#child)}: ${this.#log}`);
  }

  /** What the program wrote to its standard error. */
  log() {
    return this.#log;
  }

  async close() {
    this.#child.stdin.end();
    if ((await within(CLEAN_LIMIT, ended(this.#child))) === undefined) this.#child.kill("SIGKILL");
  }

  #receive({ id, method, params, result, error }) {
    if (method === undefined) {
      const waiting = this.#waiting.get(id);
      if (error) waiting?.reject(new Error(`codex app-server: ${error.message}`));
      else waiting?.resolve(result);
    } else if (id !== undefined) {
      this.#send({ id, ...this.#answer(method, params) });
    } else if (method === "item/completed" && params.item.type === "mcpToolCall") {
      const { result, error } = params.item;
      this.#text = result?.content[0]?.text ?? JSON.stringify(error);
    } else if (method === "turn/completed") {
      this.#completed.resolve();
    }
  }

  /** What the user says to a request of Codex. Codex asks in a form, too, whether it may call the tool. */
  #answer(method, params) {
    if (method !== "mcpServer/elicitation/request") return { error: { code: -32601, message: `no ${method} here` } };
    const accepted = (content) => ({ result: { action: "accept", content, _meta: null } });
    if (params._meta?.codex_approval_kind) return accepted({});
    const answers = Object.fromEntries(Object.entries(SEVERAL).map(([name, { answer }]) => [name, answer]));
    if (this.#asked.length === 0) answers.untitledMulti = WRONG;
    this.#asked.push(params);
    return accepted({ ...SINGLE, ...answers });
  }

  #request(method, params) {
    const id = ++this.#lastId;
    const waiting = Promise.withResolvers();
    this.#waiting.set(id, waiting);
    this.#send({ id, method, params });
    return waiting.promise;
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/agents/form: ${error.message}`);
  process.exitCode = 2;
}
