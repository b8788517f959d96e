// A scripted language model: it calls the tools of a plan one by one, then answers with the result of the
// last call.
//
// It supports the parts of Anthropic's Messages, OpenAI's Responses and Gemini's generateContent that
// agents need.

import { createServer } from "node:http";
import { json } from "node:stream/consumers";

/**
 * Starts a model. `plan` is a list of `{ tool, args }`; `tool` is a pattern for the name of the tool.
 * `offered()` returns the names of the tools that the agent offered before the first call.
 */
export async function startModel(plan) {
  let offeredFirst = [];
  const server = createServer(async (request, response) => {
    const path = request.url.split("?")[0];
    const [, dialect] = dialects.find(([pattern]) => request.method === "POST" && pattern.test(path)) ?? [];
    if (!dialect) {
      request.resume();
      response.writeHead(404).end();
      return;
    }
    const body = await json(request);
    const [offered, answers] = [dialect.offered(body), dialect.answers(body)];
    // Agents also send requests with fewer tools or none, for example for a title.
    if (answers.length === 0 && offered.length > offeredFirst.length) {
      offeredFirst = offered.map(({ name, namespace = "" }) => namespace + name);
    }
    const events = dialect(body, decide(plan, offered, answers));
    if (path.endsWith(":generateContent")) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(events[0]));
      return;
    }
    const name = ({ type }) => (type ? `event: ${type}\n` : "");
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((event) => `${name(event)}data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    offered: () => offeredFirst,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The next step of the plan. The number of tool results is the number of steps that are done. */
function decide(plan, offered, answers) {
  const step = plan[answers.length];
  if (!step) return { say: `the last answer: ${answers.at(-1)}` };
  const tool = offered.find(({ name, namespace = "" }) => step.tool.test(namespace + name));
  if (tool) return { call: tool, args: JSON.stringify(step.args) };
  return { say: `there is no ${step.tool} among the ${offered.length} tools that are offered` };
}

const dialects = [
  [/^\/v1\/messages$/, messages],
  [/^\/v1\/responses$/, responses],
  [/:(streamGenerateContent|generateContent)$/, generateContent],
];

function messages({ model }, { say, call, args }) {
  const block = call ? { type: "tool_use", id: `toolu_${Date.now()}`, name: call.name, input: {} } : { type: "text", text: "" };
  const delta = call ? { type: "input_json_delta", partial_json: args } : { type: "text_delta", text: say };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
  return [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: call ? "tool_use" : "end_turn" }, usage },
    { type: "message_stop" },
  ];
}
messages.offered = ({ tools = [] }) => tools;
messages.answers = ({ messages }) =>
  messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === "tool_result")
    .map(({ content }) => JSON.stringify(content));

function responses({ model }, { say, call, args }) {
  const id = `item_${Date.now()}`;
  const content = [{ type: "output_text", text: say, annotations: [] }];
  const item = call
    ? { type: "function_call", id, call_id: `call_${id}`, ...call, arguments: args, status: "completed" }
    : { type: "message", id, role: "assistant", content, status: "completed" };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const response = { id: "resp_1", object: "response", model, status: "in_progress", output: [] };
  return [
    { type: "response.created", response },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { ...response, status: "completed", output: [item], usage } },
  ];
}
// The tools of one server may be grouped in a namespace, which has the name of the server.
responses.offered = ({ tools = [] }) =>
  tools.flatMap(({ type, name, tools: members }) =>
    type === "namespace" ? members.map((member) => ({ name: member.name, namespace: name })) : { name: name ?? type },
  );
responses.answers = ({ input }) =>
  input.filter(({ type }) => type === "function_call_output").map(({ output }) => JSON.stringify(output));

function generateContent({ generationConfig }, { say, call, args }) {
  // Gemini CLI also asks, with a JSON response type, whether the user or the model speaks next.
  const isForm = generationConfig?.responseMimeType === "application/json";
  const words = isForm ? JSON.stringify({ reasoning: say, next_speaker: "user" }) : say;
  const part = call ? { functionCall: { name: call.name, args: JSON.parse(args) } } : { text: words };
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const candidate = { index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" };
  return [{ candidates: [candidate], usageMetadata }];
}
generateContent.offered = ({ tools = [] }) => tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations);
generateContent.answers = ({ contents }) =>
  contents
    .flatMap(({ parts = [] }) => parts)
    .filter(({ functionResponse }) => functionResponse)
    .map(({ functionResponse }) => JSON.stringify(functionResponse.response));
