// A walk: uses every feature of the fixture server, with any client written in JavaScript.
//
// A peer wraps an SDK's client, whose methods have the same names in every version:
//   era, transport, client       the requested era and transport, and the SDK's client
//   connect(handlers, inboxes)   connects, answering questions with `handlers`
//   revision()                   the negotiated revision
//   call(name, args, options)    calls a tool; options: meta, signal, onprogress
//   subscribe(uri)               subscribes to a resource and to list changes; returns a function that ends it
//   notFound                     the code under which the client reports a missing resource
//   serverProcess()              the id of the server's process, over stdio

import assert from "node:assert/strict";

import { Inbox, step } from "./steps.mjs";

const WATCHED = "test://watched-resource";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Tests every feature with `peer`; exits at the first step that fails. */
export async function walk(peer) {
  const modern = peer.era !== "legacy";
  const inboxes = { log: new Inbox(), updated: new Inbox(), toolsChanged: new Inbox() };
  const asked = [];
  const answers = { elicitation: { action: "decline" } };
  const errors = [];

  const text = async (name, args, options) => {
    const result = await peer.call(name, args, options);
    assert.equal(result.isError ?? false, false, JSON.stringify(result));
    assert.equal(result.content.length, 1);
    return result.content[0].text;
  };

  await step("connect", async () => {
    const handlers = {
      "elicitation/create": ({ params }) => (asked.push(params), answers.elicitation),
      "sampling/createMessage": ({ params }) => (asked.push(params), answers.sampling),
      "roots/list": () => answers.roots,
    };
    await peer.connect(handlers, inboxes);
    peer.client.onerror = (error) => errors.push(error);
    assert.equal(peer.revision(), modern ? "2026-07-28" : "2025-11-25");
    assert.ok(peer.client.getServerVersion()?.name);
    const capabilities = peer.client.getServerCapabilities();
    for (const capability of ["tools", "resources", "prompts", "completions", "logging"]) {
      assert.ok(capabilities[capability], `${capability} is not declared`);
    }
    assert.equal(capabilities.resources.subscribe, true);
    assert.equal(capabilities.tools.listChanged, true);
  });

  if (!modern) {
    await step("ping", async () => assert.deepEqual(await peer.client.ping(), {}));
  }

  await step("list tools", async () => {
    const { tools } = await peer.client.listTools();
    const tool = (name) => tools.find((candidate) => candidate.name === name);
    for (const name of ["test_simple_text", "test_elicitation", "test_wait_for_cancel"]) {
      assert.equal(tool(name)?.inputSchema.type, "object", name);
    }
    assert.equal(new Set(tools.map(({ name }) => name)).size, tools.length);
    const schema = tool("json_schema_2020_12_tool").inputSchema;
    assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
    assert.equal(schema.$defs.address.properties.street.type, "string");
    assert.equal(schema.additionalProperties, false);
  });

  await step("list resources, templates and prompts", async () => {
    const { resources } = await peer.client.listResources();
    const uris = resources.map(({ uri }) => uri);
    assert.ok(uris.includes("test://static-text") && uris.includes("test://static-binary"), uris.join());
    const { resourceTemplates } = await peer.client.listResourceTemplates();
    assert.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === "test://template/{id}/data"));
    const { prompts } = await peer.client.listPrompts();
    const prompt = prompts.find(({ name }) => name === "test_prompt_with_arguments");
    assert.deepEqual(
      prompt.arguments.map(({ name }) => name),
      ["arg1", "arg2"],
    );
  });

  await step("call tools", async () => {
    assert.equal(await text("test_simple_text"), "This is a simple text response for testing.");
    const image = await peer.call("test_image_content", {});
    assert.equal(image.content[0].mimeType, "image/png");
    assert.deepEqual([...Buffer.from(image.content[0].data, "base64").subarray(1, 4)], [0x50, 0x4e, 0x47]);
    const audio = await peer.call("test_audio_content", {});
    assert.equal(audio.content[0].mimeType, "audio/wav");
    const embedded = await peer.call("test_embedded_resource", {});
    assert.equal(embedded.content[0].resource.text, "This is an embedded resource content.");
    const mixed = await peer.call("test_multiple_content_types", {});
    assert.deepEqual(
      mixed.content.map(({ type }) => type),
      ["text", "image", "resource"],
    );
  });

  await step("see a tool fail", async () => {
    const failed = await peer.call("test_error_handling", {});
    assert.equal(failed.isError, true);
    assert.equal(failed.content[0].text, "This tool intentionally returns an error for testing");
    await assert.rejects(peer.call("no_such_tool", {}), { code: -32602 });
  });

  await step("call many tools at once", async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    const read = await Promise.all(
      ids.map((id) => peer.client.readResource({ uri: `test://template/${id}/data` })),
    );
    assert.deepEqual(
      read.map(({ contents }) => JSON.parse(contents[0].text).id),
      ids,
    );
  });

  await step("read resources", async () => {
    const plain = await peer.client.readResource({ uri: "test://static-text" });
    assert.equal(plain.contents[0].mimeType, "text/plain");
    assert.ok(plain.contents[0].text.length > 0);
    const binary = await peer.client.readResource({ uri: "test://static-binary" });
    assert.equal(binary.contents[0].mimeType, "image/png");
    assert.ok(Buffer.from(binary.contents[0].blob, "base64").length > 0);
    const unknown = peer.client.readResource({ uri: "test://no-such-resource" });
    await assert.rejects(unknown, { code: peer.notFound });
  });

  await step("get prompts", async () => {
    const simple = await peer.client.getPrompt({ name: "test_simple_prompt" });
    assert.equal(simple.messages[0].content.type, "text");
    const filled = await peer.client.getPrompt({
      name: "test_prompt_with_arguments",
      arguments: { arg1: "one", arg2: "two" },
    });
    assert.match(filled.messages[0].content.text, /one.*two/s);
    const pictured = await peer.client.getPrompt({ name: "test_prompt_with_image" });
    assert.ok(pictured.messages.some(({ content }) => content.type === "image"));
    const linked = await peer.client.getPrompt({
      name: "test_prompt_with_embedded_resource",
      arguments: { resourceUri: "test://linked" },
    });
    assert.ok(linked.messages.some(({ content }) => content.resource?.uri === "test://linked"));
  });

  await step("complete an argument", async () => {
    const { completion } = await peer.client.complete({
      ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
      argument: { name: "arg1", value: "" },
    });
    assert.ok(Array.isArray(completion.values));
  });

  await step("follow progress", async () => {
    const seen = [];
    await text("test_tool_with_progress", {}, { onprogress: ({ progress, total }) => seen.push({ progress, total }) });
    // These SDKs lose a progress notification that arrives in one chunk with the result,
    // and then report it as unknown.
    const expected = [0, 50, 100].map((progress) => ({ progress, total: 100 }));
    assert.ok(seen.length >= 2, `${seen.length} progress notifications`);
    assert.deepEqual(seen, expected.slice(0, seen.length));
  });

  await step("choose a log level", async () => {
    const log = async (level) => {
      if (!modern) await peer.client.setLoggingLevel(level);
      await text("test_tool_with_logging", {}, modern ? { meta: { [LOG_LEVEL]: level } } : {});
    };
    await log("error");
    await log("info");
    const messages = await inboxes.log.atLeast(3);
    assert.deepEqual(
      messages.map(({ params }) => params.level),
      ["info", "info", "info"],
    );
    if (modern) {
      inboxes.log.clear();
      await text("test_tool_with_logging", {});
      assert.equal(inboxes.log.clear().length, 0, "logs came without a level");
    }
  });

  await step("cancel a call", async () => {
    const cancelled = async () => Number(await text("test_cancelled_count", {}));
    const before = await cancelled();
    const controller = new AbortController();
    const call = peer.call(
      "test_wait_for_cancel",
      {},
      { signal: controller.signal, onprogress: () => controller.abort("enough") },
    );
    await assert.rejects(call);
    while ((await cancelled()) !== before + 1);
  });

  await step("watch a resource", async () => {
    const touch = () => text("test_touch_watched_resource", {});
    const stop = await peer.subscribe(WATCHED);
    await touch();
    await inboxes.updated.atLeast(1);
    await stop();
    await touch();
    const stopAgain = await peer.subscribe(WATCHED);
    await touch();
    // The resource also changed between the two subscriptions. An update for that would be an additional
    // item before this one.
    const updates = await inboxes.updated.atLeast(2);
    assert.deepEqual(
      updates.map(({ params }) => params.uri),
      [WATCHED, WATCHED],
    );
    inboxes.toolsChanged.clear();
    await text("test_trigger_tool_change", {});
    await inboxes.toolsChanged.atLeast(1);
    await stopAgain();
  });

  await step("answer an elicitation", async () => {
    const respond = async (answer) => {
      answers.elicitation = answer;
      asked.length = 0;
      const said = await text("test_elicitation", { message: "Who are you?" });
      assert.equal(asked.length, 1);
      assert.equal(asked[0].message, "Who are you?");
      assert.deepEqual(Object.keys(asked[0].requestedSchema.properties).sort(), ["email", "username"]);
      return said;
    };
    const accepted = await respond({
      action: "accept",
      content: { username: "ada", email: "ada@example.com" },
    });
    assert.match(accepted, /accept/);
    assert.match(accepted, /ada@example\.com/);
    assert.match(await respond({ action: "decline" }), /decline/);
    assert.match(await respond({ action: "cancel" }), /cancel/);
  });

  await step("answer a sampling request", async () => {
    answers.sampling = {
      role: "assistant",
      content: { type: "text", text: "forty-two" },
      model: "a-model",
      stopReason: "endTurn",
    };
    asked.length = 0;
    assert.equal(await text("test_sampling", { prompt: "What is it?" }), "LLM response: forty-two");
    assert.equal(asked[0].maxTokens, 100);
    assert.equal([asked[0].messages[0].content].flat()[0].text, "What is it?");
  });

  await step("show roots", async () => {
    answers.roots = { roots: [{ uri: "file:///one", name: "one" }, { uri: "file:///two" }] };
    assert.equal(await text("test_roots", {}), "Roots: file:///one, file:///two");
  });

  if (modern) {
    await step("answer several rounds", async () => {
      answers.elicitation = { action: "accept", content: { name: "Ada", color: "green", ok: true } };
      assert.equal(await text("test_input_required_result_elicitation", {}), "Hello, Ada!");
      for (const tool of ["request_state", "multiple_inputs", "multi_round", "tampered_state"]) {
        await text(`test_input_required_result_${tool}`, {});
      }
    });
  }

  await step("find no protocol errors", async () => {
    assert.deepEqual(
      errors.filter(({ message }) => !message.includes("progress notification for an unknown token")),
      [],
    );
  });

  await step("close", async () => {
    const server = peer.serverProcess();
    const began = performance.now();
    await peer.close();
    if (server) {
      assert.throws(() => process.kill(server, 0), { code: "ESRCH" });
      // The SDKs send a signal after two seconds; closing stdin must be enough.
      assert.ok(performance.now() - began < 1_900, "the server did not end with its stdin");
    }
  });
}
