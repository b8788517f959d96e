// The MCP Inspector's command line, in either era (S002-44, S003-60).
// usage: inspector.mjs legacy|auto|modern stdio|http|sse PROGRAM|URL

import assert from "node:assert/strict";

import { inspector } from "./inspect.mjs";
import { step } from "./steps.mjs";

const [era, transport, target] = process.argv.slice(2);
const fixture = {
  stdio: { command: target, args: ["--stdio"] },
  http: { type: "streamable-http", url: target },
  sse: { type: "sse", url: target },
}[transport];
const inspect = inspector(fixture, era);

await step("list tools", async () => {
  const { tools } = await inspect("--method", "tools/list");
  assert.ok(tools.some(({ name }) => name === "test_simple_text"));
});

await step("call a tool", async () => {
  const result = await inspect("--method", "tools/call", "--tool-name", "test_simple_text");
  assert.equal(result.content[0].text, "This is a simple text response for testing.");
});

await step("read a resource", async () => {
  const { contents } = await inspect("--method", "resources/read", "--uri", "test://template/123/data");
  assert.equal(JSON.parse(contents[0].text).id, "123");
});

await step("get a prompt", async () => {
  const { messages } = await inspect(
    ...["--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments"],
    ...["--prompt-args", "arg1=one", "arg2=two"],
  );
  assert.match(messages[0].content.text, /one.*two/s);
});
