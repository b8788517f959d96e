//! The native view on an in-memory pipe: tools as methods, streams as notifications.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test panics"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plexus_mcp_core::{
    CallToolResult, ContentBlock, Context, ElicitParams, Json, LocalService, LogLevel, NoArguments,
    Raw, Tool, ToolError, ToolResult,
};
use plexus_mcp_server::{Edge, Options, stdio};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn connect(service: LocalService) -> Self {
        let mut options = Options::default();
        options.native = true;
        Self::with(service, options)
    }

    fn with(service: LocalService, options: Options) -> Self {
        let edge = Edge::new(Arc::new(service), options).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        #[expect(
            clippy::disallowed_methods,
            reason = "the handle is awaited by the test"
        )]
        let server = tokio::spawn(async move {
            let (input, output) = tokio::io::split(far);
            stdio::serve_on(&edge, input, output).await
        });
        let (output, input) = tokio::io::split(near);
        Self {
            input,
            output: BufReader::new(output).lines(),
            server,
        }
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap();
        serde_json::from_str(&line.expect("the server closed the pipe")).unwrap()
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string()).await;
        self.receive().await
    }

    /// Calls a method, and gives the events of its stream, whole and in order.
    async fn stream(&mut self, method: &str, params: Value) -> Vec<Value> {
        let answer = self.ask(1, method, params).await;
        let subscription = &answer["result"];
        assert!(subscription.is_u64(), "{answer}");
        let mut events = Vec::new();
        loop {
            let event = self.receive().await;
            assert_eq!(event["jsonrpc"], "2.0");
            assert_eq!(event["method"], method);
            assert_eq!(event.get("id"), None);
            assert_eq!(&event["params"]["subscription"], subscription);
            events.push(event["params"]["result"].clone());
            let last = events.last().unwrap();
            if last["type"] == "complete" || last["recoverable"] == false {
                return events;
            }
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repeat {
    message: String,
    count: Option<usize>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Ran {
    stdout: String,
    exit_code: i32,
}

async fn run(Repeat { message, .. }: Repeat, ctx: Context) -> CallToolResult {
    ctx.stream(message.as_str()).await;
    let mut result = CallToolResult::new([ContentBlock::text("[exit code: 3]")]);
    let stdout = message;
    let ran = Ran {
        stdout,
        exit_code: 3,
    };
    result.structured_content = Some(Raw::encode(&ran).unwrap());
    result.is_error = true;
    result
}

async fn agent(_: NoArguments, ctx: Context) -> &'static str {
    ctx.stream("thinking").await;
    let input = Raw::encode(&json!({"q": "x"})).unwrap();
    ctx.tool_used("search", input).await;
    ctx.recovered("the first try failed").await;
    ctx.stderr("warning\n").await;
    "done"
}

fn service() -> LocalService {
    LocalService::builder("native", "1.0.0")
        .tool(
            Tool::new("echo.echo"),
            async |Repeat { message, count }: Repeat, ctx: Context| {
                for _ in 0..count.unwrap_or(1) {
                    ctx.stream(message.as_str()).await;
                    // A log event between the pieces prevents that they are merged.
                    ctx.log(LogLevel::Info, "said").await;
                }
            },
        )
        .tool(
            Tool::new("echo.once"),
            async |Repeat { message, .. }: Repeat, _: Context| message,
        )
        .tool(Tool::new("shell.run"), run)
        .tool(Tool::new("agent.work"), agent)
        .tool(
            Tool::new("deep_space.dock_now"),
            async |_: NoArguments, ctx: Context| {
                ctx.progress(1.0, Some(2.0), "half").await;
                Json(Ran {
                    stdout: String::new(),
                    exit_code: 0,
                })
            },
        )
        .tool(
            Tool::new("echo.fail"),
            async |_: NoArguments, _: Context| -> ToolResult<String> {
                tokio::task::yield_now().await;
                Err(ToolError::failed("no luck"))
            },
        )
        .tool(
            Tool::new("echo.panic"),
            async |_: NoArguments, _: Context| -> String {
                tokio::task::yield_now().await;
                panic!("on purpose")
            },
        )
        .build()
        .unwrap()
}

/// S003-43, S003-07: the number of the stream, then each event as it happens.
#[tokio::test]
async fn a_call_is_a_stream() {
    let mut client = Client::connect(service());
    let events = client.stream("echo.echo", json!(["hi", 2])).await;
    let said = json!({"type": "stdout", "data": "hi"});
    let logged = json!({"type": "log", "level": "info", "data": "said"});
    let expected = [
        json!({"type": "start"}),
        said.clone(),
        logged.clone(),
        said,
        logged,
        json!({"type": "complete"}),
    ];
    assert_eq!(events, expected);
}

/// S003-43, C14: a command's exit code is in the last event, and its output is sent only once.
#[tokio::test]
async fn a_command_completes_with_its_exit_code() {
    let mut client = Client::connect(service());
    let events = client.stream("shell.run", json!(["file1.txt\n"])).await;
    let expected = [
        json!({"type": "start"}),
        json!({"type": "stdout", "data": "file1.txt\n"}),
        json!({"type": "complete", "exit_code": 3}),
    ];
    assert_eq!(events, expected);
}

/// C14, C16, C17, S003-42: tool uses, recovered errors and standard error are events of their own,
/// sent at once and only once.
#[tokio::test]
async fn asides_are_events_of_their_own() {
    let mut client = Client::connect(service());
    let events = client.stream("agent.work", json!([])).await;
    let failed = "the first try failed";
    let expected = [
        json!({"type": "start"}),
        json!({"type": "stdout", "data": "thinking"}),
        json!({"type": "tool_use", "tool_name": "search", "input": {"q": "x"}}),
        json!({"type": "error", "message": failed, "recoverable": true}),
        json!({"type": "stderr", "data": "warning\n"}),
        json!({"type": "stdout", "data": "done"}),
        json!({"type": "complete"}),
    ];
    assert_eq!(events, expected);
}

/// S003-06: the result of a tool that does not stream is sent as events, too.
#[tokio::test]
async fn results_that_were_not_streamed_are_sent_as_events() {
    let mut client = Client::connect(service());
    let params = json!({"message": "hi", "_meta": {"progressToken": 1}});
    let events = client.stream("echo.once", params).await;
    let expected = [
        json!({"type": "start"}),
        json!({"type": "stdout", "data": "hi"}),
        json!({"type": "complete"}),
    ];
    assert_eq!(events, expected);

    let events = client.stream("echo.fail", json!([])).await;
    let failed = json!({"type": "error", "message": "no luck", "recoverable": false});
    assert_eq!(events[1], failed);
    let events = client.stream("echo.panic", json!([])).await;
    assert_eq!(events[1]["code"], -32603);
}

/// S003-08, S003-41, C50: both spellings of a tool's name are methods.
#[tokio::test]
async fn both_spellings_are_methods() {
    let mut client = Client::connect(service());
    for method in [
        "deep_space.dock_now",
        "deep_space_dock_now",
        "deep.space.dock.now",
    ] {
        let events = client.stream(method, json!({})).await;
        let progress =
            json!({"type": "progress", "progress": 1.0, "total": 2.0, "message": "half"});
        assert_eq!(events[1], progress);
        let complete = json!({"type": "complete", "stdout": "", "exit_code": 0});
        assert_eq!(events[2], complete, "{method}");
    }
    for method in ["deep_space", "dock_now", "echo.twice", ".", ""] {
        let answer = client.ask(2, method, json!([])).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}

/// S000-37: invalid calls get an error response, and no stream.
#[tokio::test]
async fn wrong_parameters_are_refused_at_once() {
    let mut client = Client::connect(service());
    for params in [
        json!([]),
        json!([7]),
        json!(["a", 1, 2]),
        json!({"message": "a", "loud": true}),
        json!(["a", "b"]),
    ] {
        let answer = client.ask(3, "echo.echo", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        assert_eq!(answer["id"], 3);
    }
    for (line, code) in [
        ("{", -32700),
        ("7", -32600),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"echo.echo","params":"a"}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"echo.echo"}"#,
            -32600,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":5,"method":"echo.once","params":["a"]}]"#,
            -32600,
        ),
    ] {
        client.send(line).await;
        let answer = client.receive().await;
        let error = if answer.is_array() {
            &answer[0]
        } else {
            &answer
        };
        assert_eq!(error["error"]["code"], code, "{line}: {answer}");
    }
    // A notification does not start a call.
    client
        .send(r#"{"jsonrpc":"2.0","method":"echo.once","params":["a"]}"#)
        .await;
    let events = client.stream("echo.once", json!(["b"])).await;
    assert_eq!(events[1]["data"], "b");
}

/// S003-05, C49: MCP is served on the same pipe, without a handshake or after one. A client that
/// begins a handshake must keep to its order.
#[tokio::test]
async fn mcp_is_spoken_beside_it() {
    let mut client = Client::connect(service());
    let list = client.ask(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "echo.echo");
    let params = json!({"name": "echo.once", "arguments": {"message": "hi"}});
    let called = client.ask(2, "tools/call", params.clone()).await;
    assert_eq!(called["result"]["content"][0]["text"], "hi");

    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let answer = client.ask(3, "initialize", hello).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let early = client.ask(4, "echo.once", json!(["hi"])).await;
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(early["error"]["message"], "Server initializing");
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let events = client.stream("echo.once", json!(["hi"])).await;
    assert_eq!(events[1]["data"], "hi");
    let called = client.ask(5, "tools/call", params).await;
    assert_eq!(called["result"]["content"][0]["text"], "hi");
}

/// C49: the native view is off by default, even in a session that is initialized.
#[tokio::test]
async fn the_native_view_is_off_by_default() {
    let mut client = Client::with(service(), Options::default());
    let early = client.ask(1, "echo.once", json!({"message": "hi"})).await;
    assert_eq!(early["error"]["code"], -32600);
    let hello = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    client.ask(2, "initialize", hello).await;
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    for method in ["echo.once", "echo_once", "unsubscribe"] {
        let answer = client.ask(3, method, json!({"message": "hi"})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}

/// A tool that streams without end, the count of its pieces, and a channel that closes when it ends.
fn endless() -> (LocalService, Arc<AtomicUsize>, mpsc::Receiver<()>) {
    let said = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&said);
    let (alive, ended) = mpsc::channel(1);
    let tool = move |_: NoArguments, ctx: Context| {
        let (said, alive) = (Arc::clone(&counting), alive.clone());
        async move {
            let _alive = alive;
            loop {
                ctx.stream("x".repeat(1024)).await;
                said.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
            #[expect(unreachable_code, reason = "says what the tool would return")]
            {
                String::new()
            }
        }
    };
    let builder = LocalService::builder("endless", "1.0.0").tool(Tool::new("say.on"), tool);
    (builder.build().unwrap(), said, ended)
}

/// S003-07, S003-61, C08: `unsubscribe` ends a stream early, and cancels its call.
#[tokio::test]
async fn unsubscribe_ends_a_stream_and_cancels_its_call() {
    let (service, _, mut ended) = endless();
    let mut client = Client::connect(service);
    let answer = client.ask(1, "say_on", json!([])).await;
    let subscription = answer["result"].clone();
    let request =
        json!({"jsonrpc": "2.0", "id": 2, "method": "unsubscribe", "params": [subscription]});
    client.send(&request.to_string()).await;
    let (mut confirmed, mut last) = (None, None);
    while confirmed.is_none() || last.is_none() {
        let message = client.receive().await;
        if message["id"] == 2 {
            confirmed = Some(message["result"].clone());
        } else if message["params"]["result"]["type"] == "error" {
            last = Some(message["params"]["result"].clone());
        }
    }
    assert_eq!(confirmed, Some(json!(true)));
    assert_eq!(last.unwrap()["code"], -32800);
    drop(client.input.shutdown().await);
    // The service holds the other sender until the pipe is closed.
    client.server.await.unwrap().unwrap();
    assert_eq!(ended.recv().await, None);
}

/// S002-24, C08: a call that is cancelled by its request id sends no `error` event.
#[tokio::test]
async fn a_cancelled_call_falls_silent() {
    let (service, _, _ended) = endless();
    let mut client = Client::connect(service);
    client.ask(1, "say.on", json!([])).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    client.send(cancel).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
        .await;
    loop {
        let message = client.receive().await;
        if message["id"] == 2 {
            break;
        }
        assert_ne!(message["params"]["result"]["type"], "error");
    }
    let gone = client
        .ask(3, "unsubscribe", json!({"subscription": 1}))
        .await;
    assert_eq!(gone["result"], false);
}

/// C57, S003-50: a client that does not read slows down the sender, and queues stay bounded.
#[tokio::test(start_paused = true)]
async fn endless_output_waits_for_its_reader() {
    let (service, said, _ended) = endless();
    let mut client = Client::connect(service);
    client.ask(1, "say.on", json!([])).await;
    // Paused time advances only when all tasks wait.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = said.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(said.load(Ordering::Relaxed), before);
    assert!(before < 4096, "{before} KiB wait for one reader");

    // When the client reads again, the tool continues.
    for _ in 0..2 * before {
        client.receive().await;
    }
    assert!(said.load(Ordering::Relaxed) > before);
}

/// S002-05: requests that came before the end of the input are answered.
#[tokio::test]
async fn the_end_of_input_lets_streams_finish() {
    let mut client = Client::connect(service());
    for id in 1..=3 {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "echo.once", "params": ["hi"]});
        client.send(&request.to_string()).await;
    }
    client.input.shutdown().await.unwrap();
    let mut completed = 0;
    while let Some(line) = client.output.next_line().await.unwrap() {
        completed += usize::from(line.contains(r#""type":"complete""#));
    }
    assert_eq!(completed, 3);
    client.server.await.unwrap().unwrap();
}

/// After a handshake with the capability, the client can be asked during a stream.
#[tokio::test]
async fn questions_need_a_handshake_with_the_capability() {
    let tool = async |_: NoArguments, ctx: Context| -> ToolResult<String> {
        let schema = Raw::encode(&json!({"type": "object", "properties": {}})).unwrap();
        let answer = ctx.elicit(ElicitParams::form("Sure?", schema)).await?;
        Ok(format!("{:?}", answer.action))
    };
    let service = LocalService::builder("asking", "1.0.0").tool(Tool::new("ask.me"), tool);
    let mut client = Client::connect(service.build().unwrap());
    // Without a handshake the client cannot be asked.
    let refused = client.ask(1, "ask.me", json!([])).await;
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("elicitation")
    );

    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "0"},
    });
    client.ask(2, "initialize", hello).await;
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    client.ask(3, "ask.me", json!([])).await;
    assert_eq!(client.receive().await["params"]["result"]["type"], "start");
    let question = client.receive().await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    client.send(&answer.to_string()).await;
    assert_eq!(
        client.receive().await["params"]["result"]["data"],
        "Decline"
    );
}
