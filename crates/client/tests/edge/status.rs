//! The status of a server, and the end of its processes.

use plexus_mcp_client::{Program, ServerState, Target, Upstream};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::json;

use crate::support::{
    LEGACY, SHORT, STATELESS, call, call_fails, call_tool, connected, connected_once, during,
    minimal, refused, status, status_becomes, stdio, tools,
};

fn script() -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")])).on("tools/call", [Step::Echo])
}

/// S004-48, S004-20, S004-K028: each state with its reason and since when.
#[tokio::test]
async fn a_server_is_pending_then_connected_then_pending() {
    let server = StdioServer::new(script()).await;
    let upstream = Upstream::new(stdio(&server));
    let first = status(&upstream);
    assert_eq!((first.state, first.reason), (ServerState::Pending, None));
    upstream.connect().await.unwrap();
    let second = status(&upstream);
    assert_eq!(
        (second.state, second.reason),
        (ServerState::Connected, None)
    );
    assert!(second.since >= first.since);
    // Connecting again has no effect.
    upstream.connect().await.unwrap();
    assert_eq!(status(&upstream).since, second.since);
    server.process().await;
    server.assert_not_started_again().await;
    upstream.disconnect().await;
    assert_eq!(status(&upstream).state, ServerState::Pending);
    let states = [
        (ServerState::Pending, "pending"),
        (ServerState::Connected, "connected"),
        (ServerState::Failed, "failed"),
        (ServerState::NeedsAuth, "needs-auth"),
        (ServerState::Disabled, "disabled"),
    ];
    for (state, name) in states {
        assert_eq!(state.to_string(), name);
    }
}

/// S004-31, S001-D09: the reason of a failure has the last lines of standard error, up to a limit.
#[tokio::test]
async fn the_stderr_tail_is_in_the_reason_of_a_failure() {
    let words = (0..5000).map(|number| Step::Complain(format!("word {number}")));
    let words = words.chain([
        Step::Complain("fatal: no database".to_owned()),
        Step::Exit(3),
    ]);
    let server = StdioServer::new(Script::silent().start(words)).await;
    let (upstream, error) = refused(stdio(&server)).await;
    let reason = error.to_string();
    assert!(reason.contains("code 3"), "{reason}");
    assert!(reason.contains("fatal: no database"), "{reason}");
    assert!(!reason.contains("word 10\n"), "{reason}");
    assert_eq!(status(&upstream).state, ServerState::Failed);
}

/// S001-61, S001-75
#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let program = Program::new("no-such-mcp-server").env("TOKEN", "secret");
    let (upstream, error) = refused(minimal(Target::Stdio(program))).await;
    let reason = error.to_string();
    assert!(reason.contains("no-such-mcp-server"), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("no-such-mcp-server"), "{failure}");
}

/// C35, S001-65, S004-K034: without automatic restarts, a crash fails the calls in flight, and only
/// a user reconnects the server.
#[tokio::test]
async fn a_crash_is_shown_and_nothing_is_done_twice() {
    let server = StdioServer::new(script().ignoring("tools/call")).await;
    let upstream = connected_once(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, process.received("tools/call")).await;
    process
        .perform(Step::Complain("out of memory".to_owned()))
        .await;
    process.perform(Step::Exit(9)).await;
    let fault = within("the failure", calling)
        .await
        .unwrap_err()
        .to_string();
    assert!(fault.contains("code 9"), "{fault}");
    let failed = status_becomes(&upstream, ServerState::Failed).await;
    let reason = failed.reason.unwrap();
    assert!(
        reason.contains("code 9") && reason.contains("out of memory"),
        "{reason}"
    );
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("code 9"), "{failure}");
    server.assert_not_started_again().await;

    upstream.reconnect().await.unwrap();
    let process = server.process().await;
    assert!(!process.methods().await.contains(&"tools/call".to_owned()));
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, process.received("tools/call")).await;
    process.reply(&request, json!({})).await;
    within("the result", calling).await.unwrap();
}

/// S004-14, S004-29, S004-50, S004-51, S004-K033, S004-K055: after a disconnect, the tools and the
/// process are gone.
#[tokio::test]
async fn a_disconnected_server_leaves_nothing_behind() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        assert_eq!(tools(&upstream), ["a"]);
        within("the end", upstream.disconnect()).await;
        process.ended().await;
        assert!(tools(&upstream).is_empty());
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("disconnected"), "{failure}");
        assert!(upstream.report().is_none());
        // Disconnecting again has no effect.
        within("the end", upstream.disconnect()).await;
        upstream.connect().await.unwrap();
        assert_eq!(tools(&upstream), ["a"]);
    }
}

#[tokio::test]
async fn calls_under_way_end_with_the_connection() {
    let server = StdioServer::new(script().ignoring("tools/call")).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, process.received("tools/call")).await;
    let (outcome, ()) = within("the end", async {
        tokio::join!(calling, upstream.disconnect())
    })
    .await;
    outcome.unwrap_err();
}

/// S001-33.
#[tokio::test]
async fn a_dropped_upstream_leaves_no_process() {
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let clone = upstream.clone();
    drop(upstream);
    call_tool(&clone, "a").await;
    drop(clone);
    process.ended().await;
}

/// A process that does not read or does not exit is killed.
#[tokio::test]
async fn a_stubborn_process_ends_all_the_same() {
    let steps = [Step::Hang, Step::CloseInput, Step::CloseOutput];
    let cases = steps.iter().flat_map(|step| [(step, false), (step, true)]);
    let endings = cases.map(async |(step, dropped)| {
        let server = StdioServer::new(script().on("tools/call", [step.clone()])).await;
        let mut definition = stdio(&server);
        definition.timeouts.call = SHORT;
        let upstream = connected(definition).await;
        let process = server.process().await;
        call_fails(&upstream, "a").await;
        if dropped {
            drop(upstream);
        } else {
            within("the end", upstream.disconnect()).await;
        }
        process.ended().await;
    });
    futures_util::future::join_all(endings).await;
}

/// The same with more queued requests than the pipe can hold: the writer must not block.
#[tokio::test]
async fn a_process_that_does_not_read_holds_nothing_up() {
    for dropped in [false, true] {
        let server = StdioServer::new(script().on("tools/call", [Step::Hang])).await;
        let mut definition = stdio(&server);
        definition.timeouts.call = SHORT;
        let upstream = connected(definition).await;
        let process = server.process().await;
        let params = json!({"name": "a", "arguments": {"x": "y".repeat(20_000)}});
        let calls = (0..600).map(|_| call(&upstream, "tools/call", &params));
        let calls = within("the failures", futures_util::future::join_all(calls)).await;
        assert!(calls.iter().all(Result::is_err));
        if dropped {
            drop(upstream);
        } else {
            within("the end", upstream.disconnect()).await;
        }
        process.ended().await;
    }
}

/// If a connect is dropped with its upstream, or disconnected, its process ends.
#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_no_process() {
    for dropped in [false, true] {
        let server = StdioServer::new(Script::silent()).await;
        let upstream = Upstream::new(stdio(&server));
        let mut connecting = Box::pin(upstream.connect());
        let process = tokio::select! {
            process = server.process() => process,
            _ = &mut connecting => panic!("the silent server answered"),
        };
        drop(connecting);
        if dropped {
            drop(upstream);
        } else {
            within("the end", upstream.disconnect()).await;
        }
        process.ended().await;
    }
}

/// S001-50, TRAP-30: processes that the server started end with it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_whole_tree_ends() {
    let server = StdioServer::new(script()).await;
    let command = StdioServer::command();
    // Like npx: a parent process that does not forward signals.
    let wrapper = Program::new("sh")
        .arg("-c")
        .arg(r#""$0" "$@"; true"#)
        .arg(command)
        .args(server.arguments().iter().cloned());
    let mut definition = stdio(&server);
    definition.target = Target::Stdio(wrapper);
    let upstream = connected(definition).await;
    let process = server.process().await;
    process.perform(Step::Hang).await;
    within("the end", upstream.disconnect()).await;
    process.ended().await;
}
