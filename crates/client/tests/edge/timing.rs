//! Timeouts (C56). Each timeout also sends the protocol's cancellation.

use std::time::Duration;

use plexus_mcp_client::{ConnectError, ListProblem, ServerState};
use plexus_mcp_core::Section;
use plexus_testkit::server::{HttpServer, Offer, Process, Reply, Script, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    LEGACY, SHORT, STATELESS, call, call_fails, connected, during, http, refused, status, stdio,
    tools,
};

const CANCELLED: &str = "notifications/cancelled";

fn script(offer: &Offer) -> Script {
    Script::from(offer)
}

fn progress(request: &Value, progress: u32) -> Value {
    let token = &request["params"]["_meta"]["progressToken"];
    assert!(!token.is_null(), "each call has a progress token");
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": progress}})
}

async fn cancelled(process: &Process, request: &Value) {
    let cancelled = process.received(CANCELLED).await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

/// S004-34, LIFE-14
#[tokio::test]
async fn a_request_that_is_not_answered_is_cancelled() {
    let server = StdioServer::new(script(&Offer::tools(LEGACY, [tool("a")]))).await;
    let mut definition = stdio(&server);
    definition.timeouts.request = SHORT;
    let upstream = connected(definition).await;
    let process = server.process().await;
    let outcome = within(
        "the timeout",
        call(&upstream, "resources/read", &json!({"uri": "a://b"})),
    );
    let fault = outcome.await.unwrap_err().to_string();
    assert!(
        fault.contains("resources/read") && fault.contains("in time"),
        "{fault}"
    );
    let request = process.received("resources/read").await;
    cancelled(&process, &request).await;
    assert_eq!(status(&upstream).state, ServerState::Connected);
}

#[tokio::test]
async fn a_call_without_a_sign_of_life_is_cancelled() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(script(&Offer::tools(revision, [tool("a")]))).await;
        let mut definition = stdio(&server);
        definition.timeouts.call = SHORT;
        let upstream = connected(definition).await;
        let fault = call_fails(&upstream, "a").await;
        assert!(fault.contains("in time"), "{fault}");
        let process = server.process().await;
        let request = process.received("tools/call").await;
        cancelled(&process, &request).await;
    }
}

/// CAN-10, CAN-14
#[tokio::test]
async fn a_stateless_call_over_http_is_cancelled_by_closing_its_stream() {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" => Reply::never(),
        _ => request.reply_from(&offer),
    })
    .await;
    let mut definition = http(&server);
    definition.timeouts.call = SHORT;
    let upstream = connected(definition).await;
    call_fails(&upstream, "a").await;
    server.received("tools/call").await.given_up().await;
    assert!(!server.methods().contains(&CANCELLED.to_owned()));
}

/// TRAP-22: progress extends the timeout, although the caller did not ask for progress.
#[tokio::test]
async fn progress_extends_a_call() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(script(&Offer::tools(revision, [tool("a")]))).await;
        let mut definition = stdio(&server);
        definition.timeouts.call = Duration::from_millis(1500);
        let upstream = connected(definition).await;
        let process = server.process().await;
        let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
        let started = Instant::now();
        let working = async {
            let request = process.received("tools/call").await;
            for step in 0..5 {
                // Simulates work.
                tokio::time::sleep(SHORT).await;
                process.say(progress(&request, step)).await;
            }
            request
        };
        let request = during(&mut calling, working).await;
        process.reply(&request, json!({})).await;
        within("the result", calling).await.unwrap();
        assert!(started.elapsed() > Duration::from_millis(1500));
    }
}

/// LIFE-15
#[tokio::test]
async fn no_progress_extends_a_call_for_ever() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(script(&Offer::tools(revision, [tool("a")]))).await;
        let mut definition = stdio(&server);
        definition.timeouts.call_total = SHORT;
        let upstream = connected(definition).await;
        let process = server.process().await;
        let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
        let request = during(&mut calling, process.received("tools/call")).await;
        let working = async {
            for step in 0.. {
                process.say(progress(&request, step)).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let outcome = tokio::select! {
            outcome = within("the hard cap", calling) => outcome,
            () = working => panic!("the call was not ended"),
        };
        outcome.unwrap_err();
        cancelled(&process, &request).await;
    }
}

/// TRAP-25.
#[tokio::test]
async fn a_server_that_does_not_answer_the_greeting_fails_in_time() {
    let server = StdioServer::new(Script::silent()).await;
    let mut definition = stdio(&server);
    definition.timeouts.probe = SHORT;
    definition.timeouts.connect = SHORT;
    let (upstream, error) = refused(definition).await;
    assert!(
        matches!(
            error,
            ConnectError::Timeout {
                method: "initialize",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(status(&upstream).state, ServerState::Failed);
    server.process().await.ended().await;

    let server = HttpServer::start(|_| Reply::never()).await;
    let mut definition = http(&server);
    definition.timeouts.connect = SHORT;
    let (upstream, error) = refused(definition).await;
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert_eq!(status(&upstream).state, ServerState::Failed);
}

/// C37: listing has a timeout of its own, as long as the connect timeout. A list that times out is
/// empty, and does not fail the connect.
#[tokio::test]
async fn a_list_that_does_not_come_does_not_hold_up_the_connection() {
    let offer = Offer::tools(LEGACY, [tool("a")])
        .declaring("prompts", json!({}))
        .declaring("resources", json!({}));
    let script = script(&offer)
        .ignoring("tools/list")
        .ignoring("prompts/list")
        .ignoring("resources/list");
    let server = StdioServer::new(script).await;
    let mut definition = stdio(&server);
    definition.timeouts.connect = Duration::from_secs(2);
    let started = Instant::now();
    let upstream = connected(definition).await;
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
    assert!(tools(&upstream).is_empty());
    let list_problems = upstream.report().unwrap().list_problems;
    assert!(
        list_problems.iter().any(|problem| matches!(
            problem,
            ListProblem::Failed {
                section: Section::Tools,
                ..
            }
        )),
        "{list_problems:?}"
    );
}
