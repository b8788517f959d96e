"""The Python SDK, in either era: the same walk as walk.mjs, in its own words.

usage: python_sdk.py legacy|auto|modern stdio|http|sse PROGRAM|URL
"""

import base64
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

STEP_LIMIT = 15
WATCHED = "test://watched-resource"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"

# Half of the handshake era is deprecated; it must work all the same.
warnings.simplefilter("ignore", MCPDeprecationWarning)

Body = Callable[[], Awaitable[None]]


class StepFailed(Exception):
    """A step did not do what it should; it has already been reported."""


async def step(name: str, body: Body) -> None:
    """Runs one step and prints its outcome."""
    try:
        with anyio.fail_after(STEP_LIMIT):
            await body()
    except Exception as error:
        print(f"FAILED {name}: {error!r}\n{traceback.format_exc()}", flush=True)
        raise StepFailed(name) from error
    print(f"ok {name}", flush=True)


def equal(actual: object, expected: object) -> None:
    assert actual == expected, f"{actual!r} is not {expected!r}"


class Inbox:
    """What was received so far, for steps that wait until enough has come."""

    def __init__(self) -> None:
        self.items: list[object] = []
        self._changed = anyio.Event()

    def push(self, item: object) -> None:
        self.items.append(item)
        self._changed.set()
        self._changed = anyio.Event()

    async def at_least(self, count: int) -> list[object]:
        while len(self.items) < count:
            await self._changed.wait()
        return self.items


class Walk:
    def __init__(self, era: str, transport: str, target: str) -> None:
        self.modern = era != "legacy"
        self.negotiated = era != "modern"
        self.log = Inbox()
        self.updated = Inbox()
        self.tools_changed = Inbox()
        self.asked: list[object] = []
        self.elicited = types.ElicitResult(action="decline")
        self.surprises: list[Exception] = []
        stdio = StdioServerParameters(command=target, args=["--stdio"])
        connections = {
            "stdio": lambda: stdio_client(stdio, errlog=open(os.devnull, "w")),
            "http": lambda: target,
            "sse": lambda: sse_client(target),
        }
        self.client = Client(
            connections[transport](),
            mode={"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}[era],
            sampling_callback=self.sample,
            elicitation_callback=self.elicit,
            list_roots_callback=self.roots,
            logging_callback=self.logged,
            message_handler=self.received,
        )

    async def sample(self, _context: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.asked.append(params)
        said = types.TextContent(type="text", text="forty-two")
        return types.CreateMessageResult(role="assistant", content=said, model="a-model", stop_reason="endTurn")

    async def elicit(self, _context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        return self.elicited

    async def roots(self, _context: object) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root(uri="file:///one", name="one"), types.Root(uri="file:///two")]
        )

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.log.push(params)

    async def received(self, message: object) -> None:
        if isinstance(message, Exception):
            self.surprises.append(message)
        elif isinstance(message, types.ResourceUpdatedNotification):
            self.updated.push(message.params.uri)
        elif isinstance(message, types.ToolListChangedNotification):
            self.tools_changed.push(message)

    async def text(self, name: str, arguments: dict | None = None, **options: object) -> str:
        result = await self.client.call_tool(name, arguments, **options)
        assert not result.is_error, result
        equal(len(result.content), 1)
        return result.content[0].text

    async def all_pages(self, fetch: Callable, field: str) -> list:
        page = await fetch()
        items = list(getattr(page, field))
        while page.next_cursor is not None:
            page = await fetch(cursor=page.next_cursor)
            items += getattr(page, field)
        return items

    async def run(self) -> None:
        async with self.client:
            for name, body in self.steps():
                await step(name, body)
            closing = time.monotonic()
        # The SDK sends a signal after two seconds; closing stdin must be enough.
        assert time.monotonic() - closing < 1.9, "the server did not end with its stdin"
        print("ok close", flush=True)

    def steps(self) -> list[tuple[str, Body]]:
        both = [
            ("connect", self.check_connection),
            ("list tools", self.list_tools),
            ("list resources, templates and prompts", self.list_others),
            ("call tools", self.call_tools),
            ("see a tool fail", self.see_failure),
            ("call many tools at once", self.call_many),
            ("read resources", self.read_resources),
            ("get prompts", self.get_prompts),
            ("complete an argument", self.complete),
            ("follow progress", self.follow_progress),
            ("choose a log level", self.choose_log_level),
            ("cancel a call", self.cancel),
            ("watch a resource", self.listen if self.modern else self.subscribe),
            ("answer an elicitation", self.answer_elicitation),
            ("answer a sampling request", self.answer_sampling),
            ("show roots", self.show_roots),
        ]
        own = [("answer several rounds", self.answer_rounds)] if self.modern else [("ping", self.ping)]
        return [*both, *own, ("find no protocol errors", self.find_no_errors)]

    async def check_connection(self) -> None:
        equal(self.client.protocol_version, "2026-07-28" if self.modern else "2025-11-25")
        if self.negotiated:
            assert self.client.server_info is not None and self.client.server_info.name
            capabilities = self.client.server_capabilities
            for capability in ("tools", "resources", "prompts", "completions", "logging"):
                assert getattr(capabilities, capability) is not None, f"{capability} is not declared"
            assert capabilities.resources.subscribe and capabilities.tools.list_changed

    async def ping(self) -> None:
        await self.client.send_ping()

    async def list_tools(self) -> None:
        tools = await self.all_pages(self.client.list_tools, "tools")
        by_name = {tool.name: tool for tool in tools}
        equal(len(by_name), len(tools))
        for name in ("test_simple_text", "test_elicitation", "test_wait_for_cancel"):
            equal(by_name[name].input_schema["type"], "object")
        schema = by_name["json_schema_2020_12_tool"].input_schema
        equal(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        equal(schema["$defs"]["address"]["properties"]["street"]["type"], "string")
        equal(schema["additionalProperties"], False)

    async def list_others(self) -> None:
        resources = await self.all_pages(self.client.list_resources, "resources")
        assert {"test://static-text", "test://static-binary"} <= {str(resource.uri) for resource in resources}
        templates = await self.all_pages(self.client.list_resource_templates, "resource_templates")
        assert "test://template/{id}/data" in [template.uri_template for template in templates]
        prompts = {prompt.name: prompt for prompt in await self.all_pages(self.client.list_prompts, "prompts")}
        arguments = prompts["test_prompt_with_arguments"].arguments
        equal([argument.name for argument in arguments], ["arg1", "arg2"])

    async def call_tools(self) -> None:
        equal(await self.text("test_simple_text"), "This is a simple text response for testing.")
        image = (await self.client.call_tool("test_image_content", {})).content[0]
        equal((image.mime_type, base64.b64decode(image.data)[1:4]), ("image/png", b"PNG"))
        audio = (await self.client.call_tool("test_audio_content", {})).content[0]
        equal(audio.mime_type, "audio/wav")
        embedded = (await self.client.call_tool("test_embedded_resource", {})).content[0]
        equal(embedded.resource.text, "This is an embedded resource content.")
        mixed = (await self.client.call_tool("test_multiple_content_types", {})).content
        equal([block.type for block in mixed], ["text", "image", "resource"])

    async def see_failure(self) -> None:
        failed = await self.client.call_tool("test_error_handling", {})
        assert failed.is_error
        equal(failed.content[0].text, "This tool intentionally returns an error for testing")
        await self.refused(-32602, self.client.call_tool("no_such_tool", {}))

    async def refused(self, code: int, call: Awaitable[object]) -> None:
        try:
            result = await call
        except MCPError as error:
            equal(error.code, code)
        else:
            raise AssertionError(f"not refused: {result!r}")

    async def call_many(self) -> None:
        read: dict[str, str] = {}

        async def read_one(id: str) -> None:
            result = await self.client.read_resource(f"test://template/{id}/data")
            read[id] = json.loads(result.contents[0].text)["id"]

        ids = [f"many-{index}" for index in range(20)]
        async with anyio.create_task_group() as tasks:
            for id in ids:
                tasks.start_soon(read_one, id)
        equal(read, {id: id for id in ids})

    async def read_resources(self) -> None:
        plain = (await self.client.read_resource("test://static-text")).contents[0]
        equal(plain.mime_type, "text/plain")
        assert plain.text
        binary = (await self.client.read_resource("test://static-binary")).contents[0]
        equal(binary.mime_type, "image/png")
        assert base64.b64decode(binary.blob)
        code = -32602 if self.modern else -32002
        await self.refused(code, self.client.read_resource("test://no-such-resource"))

    async def get_prompts(self) -> None:
        simple = await self.client.get_prompt("test_simple_prompt")
        equal(simple.messages[0].content.type, "text")
        filled = await self.client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        assert "one" in filled.messages[0].content.text and "two" in filled.messages[0].content.text
        pictured = await self.client.get_prompt("test_prompt_with_image")
        assert any(message.content.type == "image" for message in pictured.messages)
        linked = await self.client.get_prompt("test_prompt_with_embedded_resource", {"resourceUri": "test://linked"})
        resources = [message.content.resource for message in linked.messages if message.content.type == "resource"]
        equal([str(resource.uri) for resource in resources], ["test://linked"])

    async def complete(self) -> None:
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        result = await self.client.complete(reference, {"name": "arg1", "value": ""})
        assert isinstance(result.completion.values, list)

    async def follow_progress(self) -> None:
        seen = []

        async def note(progress: float, total: float | None, _message: str | None) -> None:
            seen.append((progress, total))

        await self.text("test_tool_with_progress", {}, progress_callback=note)
        equal(seen, [(0, 100), (50, 100), (100, 100)])

    async def choose_log_level(self) -> None:
        async def log(level: str) -> None:
            if self.modern:
                await self.text("test_tool_with_logging", {}, meta={LOG_LEVEL: level})
            else:
                await self.client.set_logging_level(level)
                await self.text("test_tool_with_logging", {})

        await log("error")
        await log("info")
        equal([message.level for message in await self.log.at_least(3)], ["info", "info", "info"])

    async def cancel(self) -> None:
        before = int(await self.text("test_cancelled_count", {}))
        started = anyio.Event()

        async def note(_progress: float, _total: float | None, _message: str | None) -> None:
            started.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(self.client.call_tool, "test_wait_for_cancel", {}, progress_callback=note))
            await started.wait()
            tasks.cancel_scope.cancel()
        while int(await self.text("test_cancelled_count", {})) != before + 1:
            pass

    async def subscribe(self) -> None:
        await self.client.subscribe_resource(WATCHED)
        await self.text("test_touch_watched_resource", {})
        await self.updated.at_least(1)
        await self.client.unsubscribe_resource(WATCHED)
        await self.text("test_touch_watched_resource", {})
        await self.client.subscribe_resource(WATCHED)
        await self.text("test_touch_watched_resource", {})
        # The update in between was not asked for: it would have come before this one.
        equal(await self.updated.at_least(2), [WATCHED, WATCHED])
        await self.text("test_trigger_tool_change", {})
        await self.tools_changed.at_least(1)

    async def listen(self) -> None:
        async with self.client.listen(resource_subscriptions=[WATCHED], tools_list_changed=True) as subscription:
            equal(subscription.honored.resource_subscriptions, [WATCHED])
            await self.text("test_touch_watched_resource", {})
            equal(await anext(subscription), ResourceUpdated(uri=WATCHED))
            await self.text("test_trigger_tool_change", {})
            equal(await anext(subscription), ToolsListChanged())

    async def answer_elicitation(self) -> None:
        async def respond(answer: types.ElicitResult) -> str:
            self.elicited = answer
            self.asked.clear()
            said = await self.text("test_elicitation", {"message": "Who are you?"})
            equal(len(self.asked), 1)
            equal(self.asked[0].message, "Who are you?")
            equal(sorted(self.asked[0].requested_schema["properties"]), ["email", "username"])
            return said

        content = {"username": "ada", "email": "ada@example.com"}
        accepted = await respond(types.ElicitResult(action="accept", content=content))
        assert "accept" in accepted and "ada@example.com" in accepted, accepted
        for action in ("decline", "cancel"):
            assert action in await respond(types.ElicitResult(action=action))

    async def answer_sampling(self) -> None:
        self.asked.clear()
        equal(await self.text("test_sampling", {"prompt": "What is it?"}), "LLM response: forty-two")
        equal(self.asked[0].max_tokens, 100)

    async def show_roots(self) -> None:
        equal(await self.text("test_roots", {}), "Roots: file:///one, file:///two")

    async def answer_rounds(self) -> None:
        content = {"name": "Ada", "color": "green", "ok": True}
        self.elicited = types.ElicitResult(action="accept", content=content)
        equal(await self.text("test_input_required_result_elicitation", {}), "Hello, Ada!")
        for tool in ("request_state", "multiple_inputs", "multi_round", "tampered_state"):
            await self.text(f"test_input_required_result_{tool}", {})

    async def find_no_errors(self) -> None:
        equal(self.surprises, [])


async def main() -> None:
    await Walk(*sys.argv[1:]).run()


if __name__ == "__main__":
    try:
        anyio.run(main)
    except* StepFailed:
        sys.exit(1)
