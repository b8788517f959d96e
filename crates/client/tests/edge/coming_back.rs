//! Reconnection of lost servers; no call is sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plexus_mcp_client::{Program, ServerState, StartSlots, Supervision, Target, Upstream};
use plexus_mcp_core::Service;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::support::{
    LEGACY, SHORT, STATELESS, call, call_fails, call_tool, connected, during, http, minimal,
    status_becomes, stdio, target, tools, tools_become,
};

fn named(auto_restart: bool) -> Supervision {
    let mut supervision = Supervision::default();
    supervision.name = Some("files".into());
    supervision.auto_restart = auto_restart;
    supervision
}

fn echoing() -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")])).on("tools/call", [Step::Echo])
}

/// C35: a server that crashed is reconnected without any call.
#[tokio::test]
async fn a_server_that_crashed_is_connected_again_in_the_background() {
    let server = StdioServer::new(echoing()).await;
    let upstream = connected(stdio(&server)).await;
    server.process().await.perform(Step::Exit(3)).await;
    let failed = status_becomes(&upstream, ServerState::Failed).await;
    assert!(failed.reason.unwrap().contains("code 3"));
    assert_eq!(tools(&upstream), ["a"], "its tools are still listed");
    status_becomes(&upstream, ServerState::Connected).await;
    let process = server.process().await;
    call_tool(&upstream, "a").await;
    assert!(process.methods().await.contains(&"tools/call".to_owned()));
    let last = upstream.history().last_error.unwrap().1;
    assert!(last.contains("code 3"), "{last}");
}

/// C35: a call to a lost server reconnects it at once, without waiting for the backoff. A call that
/// was in flight is not retried.
#[tokio::test]
async fn a_call_brings_its_server_back_at_once() {
    let server = StdioServer::new(echoing().ignoring("tools/call")).await;
    let upstream = connected(stdio(&server)).await;
    for _ in 0..3 {
        let process = server.process().await;
        let mut calling = call(
            &upstream,
            "tools/call",
            &json!({"name": "a", "arguments": {}}),
        );
        let answered = during(&mut calling, process.received("tools/call")).await;
        process.reply(&answered, json!({"content": []})).await;
        within("the result", calling).await.unwrap();
        // An answered call resets the backoff, so each round has one.
        let mut calling = call(
            &upstream,
            "tools/call",
            &json!({"name": "a", "arguments": {}}),
        );
        during(&mut calling, process.received("tools/call")).await;
        process.perform(Step::Exit(9)).await;
        let fault = within("the failure", calling).await.unwrap_err();
        assert!(fault.to_string().contains("code 9"), "{fault}");
        let next = call(
            &upstream,
            "tools/call",
            &json!({"name": "a", "arguments": {"n": 1}}),
        );
        let next = TaskTracker::new().spawn(next);
        let process = server.process().await;
        let sent = process.received("tools/call").await;
        assert_eq!(
            sent["params"]["arguments"]["n"], 1,
            "only the new call is made"
        );
        process.reply(&sent, json!({"content": []})).await;
        within("the result", next).await.unwrap().unwrap();
        process.perform(Step::Exit(0)).await;
        status_becomes(&upstream, ServerState::Connected).await;
    }
}

/// A server that exits right after each start is in a crash loop. After five starts it is not
/// started again, until a user reconnects it.
#[tokio::test]
async fn a_server_that_is_crash_looping_is_left_alone() {
    let server = StdioServer::new(Script::silent().start([Step::Exit(7)])).await;
    let mut definition = stdio(&server);
    definition.era = Some(plexus_mcp_client::Era::Handshake);
    let upstream = Upstream::supervised(definition, named(true));
    for _ in 0..5 {
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("code 7"), "{failure}");
        server.process().await;
    }
    let began = Instant::now();
    let failure = call_fails(&upstream, "a").await;
    assert!(began.elapsed() < Duration::from_millis(500), "at once");
    for part in ["code 7", "last 5 starts", "plexus servers reconnect files"] {
        assert!(failure.contains(part), "{part}: {failure}");
    }
    server.assert_not_started_again().await;
    within("the attempt", upstream.connect()).await.unwrap_err();
    server.process().await;
}

/// An attempt to detect the era starts a server twice that ends on `server/discover`. The two starts
/// count as one, so the server has as many attempts as one whose era is known.
#[tokio::test]
async fn two_starts_that_detect_the_era_count_as_one() {
    let server = StdioServer::new(Script::silent().start([Step::Exit(7)])).await;
    let upstream = Upstream::supervised(stdio(&server), named(true));
    for _ in 0..5 {
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("code 7"), "{failure}");
        server.process().await;
        server.process().await;
    }
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("last 5 starts"), "{failure}");
    server.assert_not_started_again().await;
}

/// A server that was connected once and crashes at its next starts is started once for each attempt:
/// its era is known.
#[tokio::test]
async fn a_crash_does_not_make_the_era_doubtful() {
    let server = StdioServer::new(echoing()).await;
    let upstream = connected(stdio(&server)).await;
    call_tool(&upstream, "a").await;
    server.process().await.perform(Step::Exit(3)).await;
    for _ in 0..2 {
        let process = server.process().await;
        process.received("initialize").await;
        let first = process.methods().await.into_iter().next();
        assert_eq!(first.as_deref(), Some("initialize"));
        process.perform(Step::Exit(3)).await;
    }
}

#[tokio::test]
async fn without_auto_restart_the_failure_names_what_brings_it_back() {
    let server = StdioServer::new(echoing()).await;
    let upstream = Upstream::supervised(stdio(&server), named(false));
    call_tool(&upstream, "a").await;
    server.process().await.perform(Step::Exit(3)).await;
    let reason = status_becomes(&upstream, ServerState::Failed)
        .await
        .reason
        .unwrap();
    let failure = call_fails(&upstream, "a").await;
    for text in [reason, failure] {
        for part in ["code 3", "plexus servers reconnect files"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    server.assert_not_started_again().await;
    within("the connection", upstream.reconnect())
        .await
        .unwrap();
    call_tool(&upstream, "a").await;
}

/// An HTTP server that was down at the start is connected by the next call.
#[tokio::test]
async fn a_web_server_that_was_down_is_reached_by_the_next_call() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let mut definition = minimal(Target::Http(target(&format!("http://{address}/mcp"))));
    definition.timeouts.linger = Duration::ZERO;
    let upstream = Upstream::supervised(definition, named(true));
    upstream.start();
    status_becomes(&upstream, ServerState::Failed).await;
    // A server without a process has no crash loop, so every call tries again.
    for _ in 0..8 {
        let failure = call_fails(&upstream, "a").await;
        assert!(
            failure.contains("the server \"files\" cannot be connected"),
            "{failure}"
        );
    }
    let answer = |request: &plexus_testkit::server::Received| match request.mcp() {
        "tools/call" => {
            plexus_testkit::server::Reply::json(&request.result(&json!({"content": []})))
        }
        _ => request.reply_from(&Offer::tools(LEGACY, [tool("a")])),
    };
    let _server = HttpServer::start_at(address, answer).await;
    call_tool(&upstream, "a").await;
}

/// A call that could not be sent is retried on the next connection.
#[tokio::test]
async fn a_call_that_reached_nothing_is_made_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let answer = move |request: &plexus_testkit::server::Received| match request.mcp() {
        "tools/call" => {
            counted.fetch_add(1, Ordering::Relaxed);
            plexus_testkit::server::Reply::json(&request.result(&json!({"content": []})))
        }
        _ => request.reply_from(&Offer::tools(STATELESS, [tool("a")])),
    };
    let server = HttpServer::start(answer.clone()).await;
    let address = server.address();
    let upstream = connected(http(&server)).await;
    call_tool(&upstream, "a").await;
    drop(server);
    call_fails(&upstream, "a").await;
    let _server = HttpServer::start_at(address, answer).await;
    call_tool(&upstream, "a").await;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

/// The number of programs that start at once is limited; waiting does not count as start-up time.
#[tokio::test]
async fn programs_start_a_few_at_a_time() {
    let slots = StartSlots::new(1);
    let slow = StdioServer::new(Script::silent()).await;
    let quick = StdioServer::new(echoing()).await;
    let supervised = |server: &StdioServer| {
        let mut supervision = Supervision::default();
        supervision.slots = slots.clone();
        Upstream::supervised(stdio(server), supervision)
    };
    let (first, second) = (supervised(&slow), supervised(&quick));
    first.start();
    let process = slow.process().await;
    second.start();
    quick.assert_not_started_again().await;
    assert!(second.started_at().borrow().is_none(), "it waits");
    // The first server frees its start slot after its handshake, before its lists are complete.
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let asked = process.received("server/discover").await;
    process
        .refuse(&asked, json!({"code": -32601, "message": "what?"}))
        .await;
    let greeted = process.received("initialize").await;
    process.reply(&greeted, offer.initialized()).await;
    status_becomes(&second, ServerState::Connected).await;
    assert_eq!(first.status().borrow().state, ServerState::Pending);
    assert!(second.started_at().borrow().is_some());

    slots.close();
    let third = supervised(&quick);
    let failure = call_fails(&third, "a").await;
    assert!(failure.contains("shutting down"), "{failure}");
}

/// If a list fails on a new connection, the known list is kept, and fetched again later.
#[tokio::test]
async fn a_list_that_fails_after_a_restart_is_shown_as_it_was() {
    let error = json!({"code": -32000, "message": "the database is starting"});
    let offer = Offer::tools(LEGACY, [tool("b")]);
    let listed = offer.answer("tools/list").unwrap();
    let script = Script::from(&offer)
        .on("tools/list", [Step::Error(error)])
        .then("tools/list", [Step::Result(listed)]);
    let server = StdioServer::new(script).await;
    let before = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let known = connected(stdio(&before)).await.catalogue().borrow().clone();
    let mut supervision = Supervision::default();
    supervision.known = Some((known, None));
    let upstream = Upstream::supervised(stdio(&server), supervision);
    within("the connection", upstream.connect()).await.unwrap();
    assert_eq!(tools(&upstream), ["a"], "as it was");
    let reason = upstream.status().borrow().reason.clone().unwrap();
    assert!(reason.contains("the database is starting"), "{reason}");
    tools_become(&upstream, &["b"]).await;
    let mut status = upstream.status();
    let cleared = status.wait_for(|status| status.reason.is_none());
    within("the status without a reason", cleared)
        .await
        .unwrap();
}

/// A call of a program that does not exist fails with the reason.
#[tokio::test]
async fn a_call_of_a_program_that_cannot_be_started_says_why() {
    let definition = minimal(Target::Stdio(Program::new("no-such-mcp-server")));
    let upstream = Upstream::supervised(definition, named(true));
    let failure = call_fails(&upstream, "a").await;
    for part in [
        "the server \"files\" cannot be connected",
        "no-such-mcp-server",
    ] {
        assert!(failure.contains(part), "{failure}");
    }
}

/// A server that ends the subscription at once stays connected; Plexus subscribes again later.
#[tokio::test]
async fn a_subscription_that_ends_at_once_does_not_end_the_connection() {
    let offer =
        Offer::tools(STATELESS, [tool("a")]).declaring("tools", json!({"listChanged": true}));
    let server = HttpServer::start(move |request| match request.mcp() {
        "subscriptions/listen" => Reply::json(&request.result(&json!({"resultType": "complete"}))),
        "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    for _ in 0..2 {
        server.received("subscriptions/listen").await;
        call_tool(&upstream, "a").await;
    }
    assert_eq!(upstream.status().borrow().state, ServerState::Connected);
}

/// If a process closes its input but does not exit, its calls fail, and it is replaced.
#[tokio::test]
async fn a_process_that_closes_its_input_is_replaced() {
    let script = echoing().on("tools/call", [Step::CloseInput]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    // Requests that were written before the input was closed fail, too.
    let mut calls = JoinSet::new();
    let failure = loop {
        let upstream = upstream.clone();
        calls.spawn(async move { call_fails(&upstream, "a").await });
        if let Ok(Some(failed)) = timeout(SHORT, calls.join_next()).await {
            break failed.unwrap();
        }
    };
    assert!(failure.contains("closed its input"), "{failure}");
    for failure in calls.join_all().await {
        assert!(failure.contains("closed its input"), "{failure}");
    }
    process.ended().await;
    status_becomes(&upstream, ServerState::Connected).await;
}
