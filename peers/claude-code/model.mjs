// A scripted model for agents, with the Anthropic Messages API. Each response is the next step of a plan.

import { createServer } from "node:http";

/**
 * Starts a model on a free loopback port. `plan` is a list of functions; each gets the tool results so
 * far, and returns the next tool call: `{ tool, input }`. After the last step, the model answers `DONE: `
 * and the last result.
 */
export async function startModel(plan) {
  const problems = [];
  const server = createServer(async (request, response) => {
    const path = request.url.split("?")[0];
    if (request.method !== "POST" || !path.endsWith("/messages")) {
      return json(response, path.endsWith("/count_tokens") ? { input_tokens: 1 } : {});
    }
    try {
      const asked = JSON.parse(await body(request));
      answer(response, asked, decide(plan, asked));
    } catch (error) {
      problems.push(error.message);
      json(response, { type: "error", error: { type: "invalid_request_error", message: error.message } }, 400);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, problems, stop: () => server.close() };
}

/** The content block of the next response: a tool call or a text. */
function decide(plan, { messages, tools = [] }) {
  const results = messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === "tool_result")
    .map(({ content }) => text(content));
  // Agents also send requests without tools, for example for a title.
  if (tools.length === 0) return { type: "text", text: "ok" };
  const step = plan[results.length];
  if (!step) return { type: "text", text: `DONE: ${results.at(-1)}` };
  const { tool, input } = step(results);
  if (!tools.some(({ name }) => name === tool)) {
    throw new Error(`${tool} is not offered, only ${tools.map(({ name }) => name).join(", ")}`);
  }
  return { type: "tool_use", id: `toolu_${results.length}`, name: tool, input };
}

function text(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("");
}

function answer(response, { model, stream }, block) {
  const stop_reason = block.type === "tool_use" ? "tool_use" : "end_turn";
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model, usage, stop_sequence: null };
  if (!stream) return json(response, { ...message, content: [block], stop_reason });
  const [empty, delta] =
    block.type === "tool_use"
      ? [{ ...block, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(block.input) }]
      : [{ ...block, text: "" }, { type: "text_delta", text: block.text }];
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const event of [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ]) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}

function json(response, value, status = 200) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

async function body(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
