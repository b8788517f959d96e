//! Questions of a service that passes them on as they came, like a relay, to clients of older
//! revisions on an in-memory pipe.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::Arc;

use plexus_mcp_core::{
    Boxed, Call, CallToolResult, Catalogue, Context, Fault, LocalService, NoArguments, Outcome,
    Peer, Question, Raw, Service, Tool, Updates,
};
use plexus_mcp_server::{Edge, Options, stdio};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split,
};
use tokio::sync::watch;

/// A tool that asks one question, and returns the answer, or why there is none, as text.
struct Relay {
    tools: LocalService,
    question: Question,
}

impl Relay {
    /// Asks with a form that has these fields.
    fn asking(fields: &Value) -> Self {
        let params = json!({"mode": "form", "message": "Which?",
            "requestedSchema": {"type": "object", "properties": fields}});
        Self::with(Question::Elicit(Raw::encode(&params).unwrap()))
    }

    fn with(question: Question) -> Self {
        let tool = async |_: NoArguments, _: Context| "is not called";
        let builder = LocalService::builder("relay", "1.0.0").tool(Tool::new("ask"), tool);
        let tools = builder.build().unwrap();
        Self { tools, question }
    }
}

impl Service for Relay {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.tools.catalogue()
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        let question = self.question.clone();
        Box::pin(async move {
            let answer = call.events.ask(None, question).await;
            let text = answer.map_or_else(|error| error.to_string(), |raw| raw.as_str().to_owned());
            Ok(CallToolResult::text(text).to_raw())
        })
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.tools.subscribe(peer, uri)
    }
}

/// A client that has called the tool.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    async fn calling(relay: Relay, revision: &str, capabilities: Value) -> Self {
        let edge = Edge::new(Arc::new(relay), Options::default()).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        let _ends_with_the_pipe = tokio::spawn(async move {
            let (input, output) = split(far);
            stdio::serve_on(&edge, input, output).await
        });
        let (output, input) = split(near);
        let output = BufReader::new(output).lines();
        let mut client = Self { input, output };
        let params = json!({"protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"}});
        client
            .send(
                json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}),
            )
            .await;
        client.receive().await;
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        let params = json!({"name": "ask", "arguments": {}});
        client
            .send(json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params}))
            .await;
        client
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap();
        serde_json::from_str(&line.expect("the server closed the pipe")).unwrap()
    }

    /// Fills in the form of the next question; returns the question.
    async fn fill_in(&mut self, content: Value) -> Value {
        let question = self.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let result = json!({"action": "accept", "content": content});
        self.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
            .await;
        question
    }

    /// The text of the tool's result, which repeats the answer to its question.
    async fn told(&mut self) -> String {
        let answer = self.receive().await;
        assert_eq!(answer["id"], "call", "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        text.expect("a text").to_owned()
    }
}

fn tags() -> Value {
    json!({"tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}})
}

fn elicitation() -> Value {
    json!({"elicitation": {}})
}

/// TRANSLATION §6.4. A declared capability counts, whatever the revision.
#[tokio::test]
async fn a_relayed_answer_has_the_types_of_the_original_form() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut client = Client::calling(Relay::asking(&tags()), revision, elicitation()).await;
        let question = client.fill_in(json!({"tags": "b, A"})).await;
        let field = &question["params"]["requestedSchema"]["properties"]["tags"];
        assert_eq!(field["type"], "string", "{revision}");
        assert_eq!(question["params"].get("mode"), None, "{revision}");
        let told = client.told().await;
        assert_eq!(told, r#"{"action":"accept","content":{"tags":["b","a"]}}"#);
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_never_reach_the_asker() {
    let mut client = Client::calling(Relay::asking(&tags()), "2025-06-18", elicitation()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let question = client.fill_in(json!({"tags": "z"})).await;
        ids.push(question["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "every request has an id of its own");
    assert_eq!(client.told().await, r#"{"action":"cancel"}"#);
}

/// A field that has no counterpart is named to the asking service, with the reason.
#[tokio::test]
async fn questions_without_a_counterpart_are_refused_with_the_reason() {
    let address = json!({"address": {"type": "object"}});
    let mut client = Client::calling(Relay::asking(&address), "2025-06-18", elicitation()).await;
    let told = client.told().await;
    assert_eq!(
        told,
        "the client refused: the client's revision cannot ask for the form field \"address\": \
         it is an object, and a form has flat fields only"
    );

    let content = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    let sampling = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 1});
    let question = Question::Sample(Raw::encode(&sampling).unwrap());
    let mut client =
        Client::calling(Relay::with(question), "2024-11-05", json!({"sampling": {}})).await;
    assert_eq!(
        client.told().await,
        "the client refused: the client's revision has no \"audio\" content in sampling"
    );
}

/// A repeated question is given up like the first one, by its own id.
#[tokio::test(start_paused = true)]
async fn a_repeated_question_is_not_waited_for_without_end() {
    let mut client = Client::calling(Relay::asking(&tags()), "2025-06-18", elicitation()).await;
    client.fill_in(json!({"tags": "z"})).await;
    let repeated = client.receive().await;
    let cancelled = client.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], repeated["id"]);
    assert_eq!(
        client.told().await,
        "the client went away before it answered"
    );
}
