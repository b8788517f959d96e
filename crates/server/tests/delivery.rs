//! One service on a pipe: what a client gets of a call with and without a progress token.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::Arc;

use plexus_mcp_core::{Context, LocalService, NoArguments, Tool};
use plexus_mcp_server::{Edge, Options, stdio};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The number and the size of the pieces that `long` streams: together more than a result may hold.
const PIECES: usize = 100;
const PIECE: usize = 64 * 1024;

struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    async fn connect(revision: &str) -> Self {
        let edge = Edge::new(Arc::new(service()), Options::default()).unwrap();
        let (near, far) = tokio::io::duplex(1024 * 1024);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        let _ends_with_the_pipe = tokio::spawn(async move {
            let (input, output) = tokio::io::split(far);
            stdio::serve_on(&edge, input, output).await
        });
        let (output, input) = tokio::io::split(near);
        let output = BufReader::new(output).lines();
        let mut client = Self { input, output };
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        client.send(&hello).await;
        client.receive().await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&ready).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap();
        serde_json::from_str(&line.expect("the server closed the pipe")).unwrap()
    }

    /// Calls a tool, and gives the messages before its answer, and its answer.
    async fn call(&mut self, tool: &str, token: Option<&str>) -> (Vec<Value>, Value) {
        let mut params = json!({"name": tool, "arguments": {}});
        if let Some(token) = token {
            params["_meta"] = json!({"progressToken": token});
        }
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.send(&call).await;
        let mut before = Vec::new();
        loop {
            let message = self.receive().await;
            if message.get("id").is_some() {
                return (before, message);
            }
            before.push(message);
        }
    }
}

fn service() -> LocalService {
    LocalService::builder("talker", "1.0.0")
        .tool(Tool::new("short"), async |_: NoArguments, ctx: Context| {
            for piece in ["Hello", " ", "world"] {
                ctx.stream(piece).await;
                ctx.recovered("stumbled").await;
            }
        })
        .tool(Tool::new("long"), async |_: NoArguments, ctx: Context| {
            ctx.stream("the beginning").await;
            for _ in 0..PIECES {
                ctx.stream("\n".repeat(PIECE)).await;
            }
            ctx.stream("the end").await;
        })
        .tool(
            Tool::new("soon"),
            async |Soon { turns }: Soon, _: Context| {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            },
        )
        .build()
        .unwrap()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Soon {
    turns: usize,
}

fn of<'a>(messages: &'a [Value], method: &str) -> Vec<&'a Value> {
    let messages = messages
        .iter()
        .filter(|message| message["method"] == method);
    messages.map(|message| &message["params"]).collect()
}

/// S003-03, S003-45, S003-46, S003-49, C16, C17, C18, C19: with a progress token, text is streamed
/// and progress grows. Without a token, only the result is sent. The result is the same.
#[tokio::test]
async fn streamed_or_buffered_the_result_is_one() {
    for revision in ["2024-11-05", "2025-03-26", "2025-11-25"] {
        let mut client = Client::connect(revision).await;
        let (told, streamed) = client.call("short", Some("t")).await;
        let progress = of(&told, "notifications/progress");
        let numbers: Vec<_> = progress
            .iter()
            .map(|p| p["progress"].as_f64().unwrap())
            .collect();
        assert!(numbers.is_sorted() && !numbers.is_empty(), "{numbers:?}");
        assert!(
            progress
                .iter()
                .all(|p| p["progressToken"] == "t" && p.get("total").is_none())
        );
        let text: String = progress
            .iter()
            .filter_map(|p| p["message"].as_str())
            .collect();
        // In 2024-11-05, progress has no `message`.
        let expected = if revision == "2024-11-05" {
            ""
        } else {
            "Hello world"
        };
        assert_eq!(text, expected, "{revision}");
        // C17: a recovered error is logged, and does not end the stream.
        let logged = of(&told, "notifications/message");
        assert_eq!(logged[0]["level"], "warning");
        assert_eq!(logged[0]["data"], "stumbled");

        let (told, buffered) = client.call("short", None).await;
        assert_eq!(of(&told, "notifications/progress").len(), 0);
        assert_eq!(buffered["result"], streamed["result"]);
        assert_eq!(buffered["result"]["content"][0]["text"], "Hello world");
        assert_eq!(buffered["result"]["isError"], false);
    }
}

/// C57, S003-50: a text that is too long for a result is cut to its head and tail. The stream has
/// all of it.
#[tokio::test]
async fn text_too_long_for_a_result_is_streamed_in_full() {
    let mut client = Client::connect("2025-11-25").await;
    let (told, streamed) = client.call("long", Some("t")).await;
    let progress = of(&told, "notifications/progress");
    let lengths = progress
        .iter()
        .map(|p| p["message"].as_str().unwrap().len());
    let all = "the beginning".len() + PIECES * PIECE + "the end".len();
    assert_eq!(lengths.sum::<usize>(), all);
    let longest = progress
        .iter()
        .map(|p| p["message"].as_str().unwrap().len())
        .max();
    assert!(longest.unwrap() <= 2 * PIECE, "{longest:?}");

    let (_, buffered) = client.call("long", None).await;
    assert_eq!(buffered["result"], streamed["result"]);
    let text = buffered["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("the beginning\n") && text.ends_with("\nthe end"));
    assert!(text.contains(" bytes omitted]"));
    assert!(text.len() < 5 * 1024 * 1024, "{}", text.len());
}

/// S002-27, S002-26, S002-25: a cancellation may arrive before, with or after the answer. There is
/// at most one answer, and later requests are served, even with the same id.
#[tokio::test]
async fn a_cancellation_may_meet_the_answer() {
    let mut client = Client::connect("2025-03-26").await;
    let (mut answered, mut silent) = (0, 0);
    for turns in 0..300 {
        let params = json!({"name": "soon", "arguments": {"turns": turns % 30}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let params = json!({"requestId": 1});
        let method = "notifications/cancelled";
        let cancel = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let ping = json!({"jsonrpc": "2.0", "id": "next", "method": "ping"});
        client.send(&call).await;
        for _ in 0..turns % 7 {
            tokio::task::yield_now().await;
        }
        client.send(&cancel).await;
        client.send(&ping).await;
        let first = client.receive().await;
        if first["id"] == 1 {
            answered += 1;
            assert_eq!(first["result"]["isError"], false);
            assert_eq!(client.receive().await["id"], "next");
        } else {
            silent += 1;
            assert_eq!(first["id"], "next");
        }
    }
    assert!(
        answered > 0 && silent > 0,
        "{answered} answered, {silent} silent"
    );
}
