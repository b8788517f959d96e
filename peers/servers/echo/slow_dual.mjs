// A stdio server that knows `server/discover` but not `initialize`, and reads its first message only after
// READY_MILLISECONDS. Like a server that handles each request in a goroutine, it answers what it has read
// in any order, and its output may be cut anywhere. All chances follow from the seed.
// usage: slow_dual.mjs SEED

import { setTimeout as pause } from "node:timers/promises";

import { randomFrom } from "../random.mjs";

/** A gateway sends `initialize` as well once `server/discover` is unanswered for 3 s. */
const READY_MILLISECONDS = [2800, 3400];
const MAX_CHUNKS = 4;
const MAX_PAUSE_MILLISECONDS = 3;

/** The errors that servers give to `initialize`: each a code, and a text. */
const REFUSALS = [
  [-32600, "initialize is not expected"],
  [-32601, "method not found: initialize"],
  [-32602, "unsupported protocol version"],
  [-32022, "unsupported protocol version"],
];

const random = randomFrom(Number(process.argv[2]));
const below = (limit) => Math.floor(random() * limit);
const refusal = REFUSALS[below(REFUSALS.length)];

const results = {
  "server/discover": {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {} },
    ttlMs: 0,
    cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "slow-dual", version: "1.0.0" } },
  },
  "tools/list": {
    resultType: "complete",
    tools: [{ name: "echo", description: "Says what it is told", inputSchema: { type: "object" } }],
    ttlMs: 0,
    cacheScope: "private",
  },
};

function answer({ id, method }) {
  const result = results[method];
  if (result) return { jsonrpc: "2.0", id, result };
  const [code, message] = method === "initialize" ? refusal : [-32601, `method not found: ${method}`];
  const data = code === -32022 ? { supported: ["2026-07-28"], requested: "2025-11-25" } : undefined;
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}

/** Writes a text in up to MAX_CHUNKS parts, cut anywhere. */
async function write(text) {
  const cuts = Array.from({ length: below(MAX_CHUNKS) }, () => below(text.length)).toSorted((a, b) => a - b);
  for (const [index, cut] of [...cuts, text.length].entries()) {
    process.stdout.write(text.slice(index === 0 ? 0 : cuts[index - 1], cut));
    await pause(below(MAX_PAUSE_MILLISECONDS + 1));
  }
}

const [soonest, latest] = READY_MILLISECONDS;
await pause(performance.timeOrigin + soonest + random() * (latest - soonest) - Date.now());
let rest = "";
for await (const chunk of process.stdin) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  const requests = lines.filter(Boolean).map((line) => JSON.parse(line)).filter(({ id }) => id !== undefined);
  const answers = requests.map((request) => ({ text: `${JSON.stringify(answer(request))}\n`, rank: random() }));
  const shuffled = answers.toSorted((one, other) => one.rank - other.rank);
  if (shuffled.length > 0) await write(shuffled.map(({ text }) => text).join(""));
}
