// A well-behaved MCP server on stdio. It counts the calls that it executes, by their nonce.

import { lines, send } from "./stdio.mjs";

const object = { type: "object" };

const tools = [
  ["echo", "Returns its nonce."],
  ["counts", "The number of executed calls of echo, and of those that were executed twice."],
  ["forbidden", "Only for policy rules: the number of times that it was executed."],
  ["guarded", "Only for policy rules: executed after a question to the user."],
  ["stream", "Reports progress, then returns a text of some bytes."],
  ["late", "Returns, and reports progress afterwards."],
  ["hang", "Never answers."],
].map(([name, description]) => ({ name, description, inputSchema: object }));

const seen = new Set();
const counts = { echo: 0, twice: 0, forbidden: 0, guarded: 0, cancelled: 0, hanging: 0 };

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

const calls = {
  echo({ nonce }) {
    counts.echo += 1;
    if (seen.has(nonce)) counts.twice += 1;
    seen.add(nonce);
    return text(nonce);
  },
  counts: () => text(JSON.stringify(counts)),
  forbidden: () => text((counts.forbidden += 1)),
  guarded: () => text((counts.guarded += 1)),
  stream({ bytes }, progress) {
    progress();
    return text("x".repeat(bytes));
  },
  late(_arguments, progress) {
    setTimeout(progress, 100);
    return text("returned");
  },
  hang: () => {
    counts.hanging += 1;
    return undefined;
  },
};

const methods = {
  initialize: ({ params }) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "honest", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ params }) => {
    const progressToken = params._meta?.progressToken;
    const progress = () => {
      if (progressToken === undefined) return;
      send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } });
    };
    return calls[params.name](params.arguments ?? {}, progress);
  },
};

lines((message) => {
  if (message.method === "notifications/cancelled") counts.cancelled += 1;
  if (message.id === undefined || message.method === undefined) return;
  const method = methods[message.method];
  if (method === undefined) {
    send({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "unknown method" } });
    return;
  }
  const result = method(message);
  if (result !== undefined) send({ jsonrpc: "2.0", id: message.id, result });
});
