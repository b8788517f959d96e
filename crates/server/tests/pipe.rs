//! The server edge on an in-memory pipe: what needs a clock, a tiny limit or a faulty handler.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test panics"
)]

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::{
    CacheHints, CallToolResult, ContentBlock, Context, ElicitParams, LocalService, Raw, Resource,
    ResourceContents, Tool, ToolError,
};
use plexus_mcp_server::{Edge, Options, stdio};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

/// A client on a pipe, and the server at its other end.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<std::io::Result<()>>,
    edge: Arc<Edge>,
}

impl Client {
    fn connect(service: LocalService, options: Options) -> Self {
        let edge = Edge::new(Arc::new(service), options).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let serving = Arc::clone(&edge);
        #[expect(
            clippy::disallowed_methods,
            reason = "the handle is awaited by the test"
        )]
        let server = tokio::spawn(async move {
            let (input, output) = tokio::io::split(far);
            stdio::serve_on(&serving, input, output).await
        });
        let (output, input) = tokio::io::split(near);
        Self {
            input,
            output: BufReader::new(output).lines(),
            server,
            edge,
        }
    }

    async fn send(&mut self, message: Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self
            .output
            .next_line()
            .await
            .unwrap()
            .expect("the server closed the pipe");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    async fn initialize(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"},
        });
        let answer = self
            .ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        answer
    }
}

/// A stateless `tools/call`, with further parameters.
fn stateless_call(id: i64, tool: &str, more: &Value) -> Value {
    let mut params = json!({
        "name": tool,
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn call(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn name_form() -> ElicitParams {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let schema = Raw::parse(schema.into(), &plexus_mcp_wire::Limits::default()).unwrap();
    ElicitParams::form("Your name?", schema)
}

/// A service that asks for a name, and greets.
fn greeter() -> LocalService {
    LocalService::builder("greeter", "1.0.0")
        .tool(
            Tool::new("greet"),
            async |_: Nothing, ctx: Context| -> Result<String, ToolError> {
                let answer = ctx.elicit_as(Some("name"), name_form()).await?;
                let content = answer.content.map(|content| content.as_str().to_owned());
                Ok(content.unwrap_or_else(|| "declined".to_owned()))
            },
        )
        .build()
        .unwrap()
}

fn answer() -> Value {
    json!({"name": {"action": "accept", "content": {"name": "Kim"}}})
}

/// TRANSLATION §5.4.14, §12.1, MRTR26-07, TRAP-19: an abandoned call ends, and its state with it.
#[tokio::test(start_paused = true)]
async fn parked_calls_expire() {
    let mut client = Client::connect(greeter(), Options::default());
    let first = client.ask(stateless_call(1, "greet", &json!({}))).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    let state = first["result"]["requestState"].clone();

    tokio::time::advance(Duration::from_secs(301)).await;
    let retry = json!({"requestState": state, "inputResponses": answer()});
    let late = client.ask(stateless_call(2, "greet", &retry)).await;
    assert_eq!(late["error"]["code"], -32602);
    assert_eq!(
        late["error"]["message"],
        "requestState is invalid or expired"
    );
}

/// MRTR26-08: a state is valid for one retry, until it expires.
#[tokio::test(start_paused = true)]
async fn a_state_is_used_once() {
    let mut client = Client::connect(greeter(), Options::default());
    let first = client.ask(stateless_call(1, "greet", &json!({}))).await;
    let state = first["result"]["requestState"].clone();
    tokio::time::advance(Duration::from_secs(290)).await;

    let retry = json!({"requestState": state, "inputResponses": answer()});
    let done = client.ask(stateless_call(2, "greet", &retry)).await;
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(done["result"]["content"][0]["text"], r#"{"name":"Kim"}"#);

    let again = client.ask(stateless_call(3, "greet", &retry)).await;
    assert_eq!(
        again["error"]["message"],
        "requestState is invalid or expired"
    );
}

/// The parking table is bounded. A call that finds it full fails, and nothing is parked.
#[tokio::test(start_paused = true)]
async fn a_full_parking_table_refuses() {
    let mut options = Options::default();
    options.max_parked = 1;
    let mut client = Client::connect(greeter(), options);
    client.ask(stateless_call(1, "greet", &json!({}))).await;
    let refused = client.ask(stateless_call(2, "greet", &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32603);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("try again later")
    );
}

/// If a legacy client does not answer in time, the question is cancelled and the call ends.
#[tokio::test(start_paused = true)]
async fn unanswered_questions_are_withdrawn() {
    let mut client = Client::connect(greeter(), Options::default());
    client
        .initialize("2025-06-18", json!({"elicitation": {}}))
        .await;
    let question = client.ask(call(1, "greet")).await;
    assert_eq!(question["method"], "elicitation/create");

    let withdrawn = client.receive().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let answer = client.receive().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32800))
    );
}

/// A cancelled call withdraws its question, and gets no answer itself (S002-26, CAN-03).
#[tokio::test(start_paused = true)]
async fn cancelling_a_call_withdraws_its_question() {
    let mut client = Client::connect(greeter(), Options::default());
    client
        .initialize("2025-11-25", json!({"elicitation": {}}))
        .await;
    let question = client.ask(call(1, "greet")).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let withdrawn = client.ask(cancel).await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let pong = client
        .ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        .await;
    assert_eq!(pong["id"], 2);
}

fn faulty() -> LocalService {
    LocalService::builder("faulty", "1.0.0")
        .tool(
            Tool::new("panics"),
            async |_: Nothing, _: Context| -> String {
                panic!("on purpose");
            },
        )
        .tool(Tool::new("works"), async |_: Nothing, _: Context| "fine")
        .tool(Tool::new("huge"), async |_: Nothing, _: Context| {
            "x".repeat(2000)
        })
        .build()
        .unwrap()
}

/// S000-44: one bad handler costs one call.
#[tokio::test]
async fn a_panic_is_an_error_of_one_call() {
    let mut client = Client::connect(faulty(), Options::default());
    client.initialize("2025-11-25", json!({})).await;
    let failed = client.ask(call(1, "panics")).await;
    assert_eq!(failed["error"]["code"], -32603);
    assert!(
        !failed.to_string().contains("on purpose"),
        "what went wrong inside stays inside"
    );
    let fine = client.ask(call(2, "works")).await;
    assert_eq!(fine["result"]["content"][0]["text"], "fine");
}

/// S000-46, C09: an answer beyond the limit is an error that says so.
#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let mut options = Options::default();
    options.max_answer = 1000;
    let mut client = Client::connect(faulty(), options);
    client.initialize("2025-11-25", json!({})).await;
    let refused = client.ask(call(1, "huge")).await;
    assert_eq!(refused["error"]["code"], -32801);
    assert_eq!(refused["error"]["data"]["limit"], 1000);
}

/// C09: a request beyond a limit is answered under its own id, and the next one is served.
#[tokio::test]
async fn a_request_beyond_a_limit_is_refused_under_its_id() {
    let mut options = Options::default();
    options.limits.max_bytes = 2000;
    options.limits.max_depth = 16;
    let mut client = Client::connect(faulty(), options);
    client.initialize("2025-11-25", json!({})).await;
    let arguments = json!({"x": "y".repeat(5000)});
    let refused = client
        .ask(json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "works", "arguments": arguments}, "id": "long"}))
        .await;
    assert_eq!(refused["id"], "long");
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["data"]["limit"], 2000);

    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let refused = client
        .ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "works", "arguments": {"x": deep}}}))
        .await;
    assert_eq!(refused["id"], 2);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("16 levels"), "{message}");

    let fine = client.ask(call(3, "works")).await;
    assert_eq!(fine["result"]["content"][0]["text"], "fine");
}

/// C09: a client's answer beyond the limit fails the question that it answers.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_client_beyond_the_limit_fails_its_question() {
    let mut options = Options::default();
    options.limits.max_bytes = 2000;
    let mut client = Client::connect(greeter(), options);
    client
        .initialize("2025-11-25", json!({"elicitation": {}}))
        .await;
    let question = client.ask(call(7, "greet")).await;
    let result = json!({"action": "accept", "content": {"name": "K".repeat(5000)}});
    let done = client
        .ask(json!({"jsonrpc": "2.0", "result": result, "id": question["id"]}))
        .await;
    assert_eq!(done["id"], 7);
    assert!(done.to_string().contains("2000 bytes"), "{done}");
}

/// S002-39, BASE-03: an id in flight cannot be used again; the first call is not disturbed.
#[tokio::test(start_paused = true)]
async fn ids_in_flight_are_not_reused() {
    let mut client = Client::connect(greeter(), Options::default());
    client
        .initialize("2025-11-25", json!({"elicitation": {}}))
        .await;
    let question = client.ask(call(7, "greet")).await;
    let refused = client.ask(call(7, "greet")).await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(7), &json!(-32600))
    );
    let result = json!({"action": "accept", "content": {"name": "Kim"}});
    let done = client
        .ask(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
        .await;
    assert_eq!(done["result"]["content"][0]["text"], r#"{"name":"Kim"}"#);
}

fn slow() -> LocalService {
    LocalService::builder("slow", "1.0.0")
        .tool(Tool::new("waits"), async |_: Nothing, _: Context| {
            tokio::time::sleep(Duration::from_secs(3)).await;
            "done"
        })
        .tool(Tool::new("hangs"), async |_: Nothing, ctx: Context| {
            ctx.cancelled().await;
            "never said"
        })
        .build()
        .unwrap()
}

/// S002-05: the end of input lets work in flight finish, up to the deadline.
#[tokio::test(start_paused = true)]
async fn the_end_of_input_drains() {
    let mut client = Client::connect(slow(), Options::default());
    client.initialize("2025-11-25", json!({})).await;
    client.send(call(1, "waits")).await;
    client.send(call(2, "hangs")).await;
    client.input.shutdown().await.unwrap();
    assert_eq!(
        client.receive().await["result"]["content"][0]["text"],
        "done"
    );
    assert!(
        client.output.next_line().await.unwrap().is_none(),
        "what hangs is not waited for"
    );
    client.server.await.unwrap().unwrap();
}

/// A client that has gone without reading its answers delays the end by a quarter of the drain time.
#[tokio::test(start_paused = true)]
async fn answers_that_are_not_read_hold_up_the_end_only_shortly() {
    let options = Options::default();
    let longest = options.drain + options.drain / 4;
    let edge = Edge::new(Arc::new(slow()), options).unwrap();
    let (_unread, output) = tokio::io::duplex(64);
    let requests = [
        call(1, "hangs"),
        json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
    ];
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    let messages = std::iter::once(&initialize).chain(&requests);
    let input = messages
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n";
    let began = tokio::time::Instant::now();
    stdio::serve_on(&edge, input.as_bytes(), output)
        .await
        .unwrap();
    assert_eq!(began.elapsed(), longest);
}

/// SUB26-11: a server that ends says so on every subscription.
#[tokio::test]
async fn shutting_down_closes_subscriptions_properly() {
    let mut client = Client::connect(faulty(), Options::default());
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let acknowledged = client.ask(listen).await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    client.edge.shut_down();
    let cancelled = client.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], "l");
    let result = client.receive().await;
    assert_eq!(
        result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "l"
    );
    client.server.await.unwrap().unwrap();
}

/// CACHE26-01: the cache hints of a service are on its lists. The result of a read must not be
/// cached unless it gives hints of its own.
#[tokio::test]
async fn cache_hints_are_the_services() {
    let service = LocalService::builder("cached", "1.0.0")
        .cache(CacheHints {
            ttl_ms: 60_000,
            public: true,
        })
        .resource(
            Resource::new("a://b", "b"),
            async |uri: String, _: Context| ResourceContents::text(uri, "text"),
        )
        .build()
        .unwrap();
    let mut client = Client::connect(service, Options::default());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": meta}});
    let list = client.ask(list).await;
    assert_eq!(
        (&list["result"]["ttlMs"], &list["result"]["cacheScope"]),
        (&json!(60_000), &json!("public"))
    );
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "a://b", "_meta": meta}});
    let read = client.ask(read).await;
    assert_eq!(
        (&read["result"]["ttlMs"], &read["result"]["cacheScope"]),
        (&json!(0), &json!("private"))
    );
}

/// C16, C18, S003-46, S003-49: with a progress token, the client gets streamed text piece by piece.
/// Every client gets it as one block of the result.
#[tokio::test]
async fn streamed_text_arrives_early_and_whole() {
    let service = LocalService::builder("streams", "1.0.0")
        .tool(Tool::new("stream"), async |_: Nothing, ctx: Context| {
            for word in ["Hello", " ", "world"] {
                ctx.stream(word).await;
                tokio::task::yield_now().await;
            }
            ContentBlock::text("end")
        })
        .build()
        .unwrap();
    let mut client = Client::connect(service, Options::default());
    client.initialize("2025-03-26", json!({})).await;
    let mut with_token = call(1, "stream");
    with_token["params"]["_meta"] = json!({"progressToken": "t"});
    client.send(with_token).await;
    let (mut text, mut last) = (String::new(), 0.0);
    let result = loop {
        let message = client.receive().await;
        if message["method"] != "notifications/progress" {
            break message;
        }
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "progress grows");
        last = progress;
        text += message["params"]["message"].as_str().unwrap();
    };
    assert_eq!(text, "Hello world");
    assert_eq!(result["result"]["content"][0]["text"], "Hello world");
    assert_eq!(result["result"]["content"][1]["text"], "end");

    let plain = client.ask(call(2, "stream")).await;
    assert_eq!(plain["id"], 2, "no token, no progress");
}

/// TRAP-08: the server identity in a result is replaced by ours.
#[tokio::test]
async fn results_have_the_server_info_of_plexus() {
    let spoofed =
        r#"{"kept":1,"io.modelcontextprotocol/serverInfo":{"name":"other","version":"9"}}"#;
    let spoofed = Raw::parse(spoofed.into(), &plexus_mcp_wire::Limits::default()).unwrap();
    let service = LocalService::builder("ours", "1.0.0")
        .tool(Tool::new("spoof"), move |_: Nothing, _: Context| {
            let result = CallToolResult::text("done").meta(spoofed.clone());
            async move { result }
        })
        .build()
        .unwrap();
    let mut client = Client::connect(service, Options::default());
    let answer = client.ask(stateless_call(1, "spoof", &json!({}))).await;
    let meta = &answer["result"]["_meta"];
    assert_eq!(meta["kept"], 1, "{answer}");
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "ours");
}

/// A client that does not read counts as gone after one stall, however many requests it has sent.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_stalls_the_server_once() {
    let service = LocalService::builder("s", "1.0.0").build().unwrap();
    let edge = Edge::new(Arc::new(service), Options::default()).unwrap();
    let (_unread, output) = tokio::io::duplex(64);
    let invalid = "x\n".repeat(30_000);
    let began = tokio::time::Instant::now();
    let served = stdio::serve_on(&edge, invalid.as_bytes(), output).await;
    drop(served);
    let elapsed = began.elapsed();
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
}
