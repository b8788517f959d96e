//! Questions to legacy clients that can be asked, but have no open GET stream (TRAP-16).

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::{Context, ElicitParams, LocalService, NoArguments, Raw, Tool, ToolError};
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use plexus_testkit::{HttpClient, HttpResponse};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{ANY_PORT, call, code, notification, request, text};

const REVISION: Revision = Revision::V2025_06_18;

/// Serves a tool that asks for a name, until the returned set is dropped.
async fn greeter(answer_time: Duration) -> (String, JoinSet<()>) {
    let form = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let form = Raw::parse(form.into(), &plexus_mcp_wire::Limits::default()).unwrap();
    let service = LocalService::builder("greeter", "1.0.0").tool(
        Tool::new("greet"),
        move |_: NoArguments, ctx: Context| {
            let form = ElicitParams::form("Your name?", form.clone());
            async move {
                let answer = ctx.elicit(form).await?;
                let content = answer.content.map(|content| content.as_str().to_owned());
                Ok::<_, ToolError>(content.unwrap_or_else(|| "nobody".to_owned()))
            }
        },
    );
    let mut options = Options::default();
    options.answer_time = answer_time;
    let edge = Edge::new(Arc::new(service.build().unwrap()), options).unwrap();
    let address = [ANY_PORT.parse().unwrap()];
    let server = HttpServer::bind(edge, &address, HttpOptions::default()).await;
    let server = server.unwrap();
    let url = format!("http://{}{}", server.addresses()[0], server.path());
    let mut running = JoinSet::new();
    running.spawn(server.run());
    (url, running)
}

/// A session of a client that can be asked, and has opened no stream.
async fn askable(url: &str) -> HttpClient {
    let client = HttpClient::new(url, REVISION);
    let params = json!({
        "protocolVersion": REVISION.as_str(),
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "scripted", "version": "1.0.0"},
    });
    let greeting = client.post(&request(0, "initialize", params)).send().await;
    let id = greeting.header("mcp-session-id").unwrap().to_owned();
    greeting.message().await;
    let client = client
        .with_header("mcp-session-id", &id)
        .with_header("mcp-protocol-version", REVISION.as_str());
    let initialized = notification("notifications/initialized");
    assert_eq!(client.post(&initialized).send().await.status(), 202);
    client
}

fn greet() -> Value {
    request(1, "tools/call", call("greet", json!({})))
}

/// Calls the tool, as a client that accepts only JSON.
async fn call_for_json(client: &HttpClient) -> HttpResponse {
    let post = client.post(&greet()).header("accept", "application/json");
    post.send().await
}

/// Waits for the question on a stream, and answers it.
async fn answer_on(client: &HttpClient, stream: &mut HttpResponse) {
    let question = stream.next_message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let accepted = json!({"action": "accept", "content": {"name": "Kim"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted});
    assert_eq!(client.post(&answer).send().await.status(), 202);
}

/// TRAP-16: the response to the call is an event stream, on which the question is sent.
#[tokio::test]
async fn the_calls_own_stream_carries_its_question() {
    let (url, _running) = greeter(Duration::from_mins(5)).await;
    let client = askable(&url).await;
    let mut stream = client.post(&greet()).send().await;
    answer_on(&client, &mut stream).await;
    let result = stream.next_message().await.unwrap();
    assert_eq!(text(&result["result"]), r#"{"name":"Kim"}"#);
}

/// TRAP-16: a client that accepts only JSON is asked on its GET stream, once it opens one.
#[tokio::test]
async fn a_question_waits_for_a_stream() {
    let (url, _running) = greeter(Duration::from_mins(5)).await;
    let client = askable(&url).await;
    let asking = async {
        let mut stream = client.get().send().await;
        answer_on(&client, &mut stream).await;
    };
    let calling = Box::pin(call_for_json(&client));
    let (answer, ()) = tokio::join!(calling, asking);
    let answer = answer.message().await;
    assert_eq!(text(&answer["result"]), r#"{"name":"Kim"}"#);
}

/// TRAP-16: if the client opens no stream, the call ends after the usual answer timeout.
#[tokio::test]
async fn without_any_stream_the_call_ends_in_time() {
    let (url, _running) = greeter(Duration::from_millis(300)).await;
    let client = askable(&url).await;
    let answer = call_for_json(&client).await.message().await;
    assert_eq!(code(&answer), -32800, "{answer}");
    let unknown = request(2, "no/such/method", json!({}));
    let next = client.post(&unknown).send().await.message().await;
    assert_eq!(code(&next), -32601, "the session goes on");
}
