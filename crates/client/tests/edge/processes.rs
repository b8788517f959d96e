//! The processes of a server: their end, and those that are started once for each principal.

use std::time::Duration;

use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{
    Affinity, Definition, Program, ServerState, StartSlots, Supervision, Target, Upstream,
};
use plexus_mcp_protocol::Era;
use plexus_testkit::server::{Offer, Process, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::support::{
    Caller, LEGACY, asked, connected, connected_once, during, for_clients, raw, status_becomes,
    stdio,
};

fn script(step: Step) -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")])).on("tools/call", [step])
}

fn for_each_principal(server: &StdioServer) -> Definition {
    let mut definition = for_clients(stdio(server));
    definition.affinity = Affinity::Principal;
    definition
}

async fn failure(upstream: &Upstream, principal: &str) -> String {
    let caller = Caller {
        principal: Some(principal.to_owned()),
        ..Caller::default()
    };
    let (calling, _events) = caller.call(upstream, "tools/call", &json!({"name": "a"}));
    let outcome = within("the failure", calling).await;
    outcome.unwrap_err().to_string()
}

/// A program that crashes with each call is not started with each call.
#[tokio::test]
async fn a_crashing_program_of_a_principal_is_started_with_backoff() {
    const MANY_STARTS: usize = 10;
    let server = StdioServer::new(script(Step::Exit(7))).await;
    let upstream = connected(for_each_principal(&server)).await;
    let _own = server.process().await;
    for starts in 0.. {
        assert!(starts < MANY_STARTS, "each call started the program");
        let failure = failure(&upstream, "one").await;
        assert!(failure.contains("code 7"), "{failure}");
        if failure.contains("the next start is in") {
            break;
        }
        server.process().await;
    }
    server.assert_not_started_again().await;
    // The process of another principal is not held up.
    assert!(!failure(&upstream, "other").await.contains("the next start"));
    server.process().await;
}

/// A program that is killed after each answered call is started by the next call, without backoff.
#[tokio::test]
async fn a_program_of_a_principal_that_has_answered_is_started_at_once() {
    const KILLS: usize = 5;
    let server = StdioServer::new(script(Step::Echo)).await;
    let upstream = connected(for_each_principal(&server)).await;
    let _own = server.process().await;
    let caller = Caller {
        principal: Some("one".to_owned()),
        ..Caller::default()
    };
    for _ in 0..KILLS {
        loop {
            let (calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
            let Err(fault) = within("the outcome", calling).await else {
                break;
            };
            // A call that was sent before the end was noticed fails, and is not sent again.
            let failure = fault.to_string();
            assert!(!failure.contains("the next start is in"), "{failure}");
            assert!(failure.contains("code 9"), "{failure}");
        }
        let process = server.process().await;
        process.perform(Step::Exit(9)).await;
        process.ended().await;
    }
}

/// The programs of principals count against the limit of programs that start at once, and none is
/// started after Plexus began to end.
#[tokio::test]
async fn no_program_of_a_principal_is_started_at_the_end() {
    let server = StdioServer::new(script(Step::Echo)).await;
    let slots = StartSlots::new(1);
    let mut supervision = Supervision::default();
    supervision.slots = slots.clone();
    let upstream = Upstream::supervised(for_each_principal(&server), supervision);
    within("the connection", upstream.connect()).await.unwrap();
    let _own = server.process().await;
    slots.close();
    let failure = failure(&upstream, "one").await;
    assert!(failure.contains("Plexus is shutting down"), "{failure}");
    server.assert_not_started_again().await;
}

/// A disconnect waits until the programs of principals have ended, too, even those that take long.
#[tokio::test]
async fn a_disconnect_waits_for_the_programs_of_principals() {
    let server = StdioServer::new(script(Step::Hang)).await;
    let upstream = connected(for_each_principal(&server)).await;
    let _own = server.process().await;
    let caller = Caller {
        principal: Some("one".to_owned()),
        ..Caller::default()
    };
    let (calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let mut calling = calling;
    let process = crate::support::during(&mut calling, async {
        let process = server.process().await;
        process.received("tools/call").await;
        process
    })
    .await;
    let grace = Grace::new(Duration::from_millis(200), Duration::from_secs(10));
    within("the end", upstream.disconnect_within(grace)).await;
    let pid = Pid::from_raw(i32::try_from(process.pid()).unwrap()).unwrap();
    test_kill_process(pid).expect_err("the process has ended");
}

fn is_running(process: &Process) -> bool {
    let pid = Pid::from_raw(i32::try_from(process.pid()).unwrap()).unwrap();
    test_kill_process(pid).is_ok()
}

/// The end of a program is noticed at once, although a process that it has started still has its
/// output open, and nothing is sent.
#[tokio::test]
async fn the_end_of_a_program_is_noticed_although_its_helper_lives_on() {
    let server = StdioServer::new(script(Step::Echo)).await;
    let mut definition = stdio(&server);
    let with_helper = [
        "-c",
        "sleep 1000 & exec \"$0\" \"$@\"",
        &StdioServer::command(),
    ]
    .map(str::to_owned)
    .into_iter();
    let arguments = with_helper.chain(server.arguments().iter().cloned());
    definition.target = Target::Stdio(Program::new("sh").args(arguments));
    let upstream = connected_once(definition).await;
    server.process().await.perform(Step::Exit(7)).await;
    let reason = status_becomes(&upstream, ServerState::Failed).await.reason;
    assert!(reason.clone().unwrap().contains("code 7"), "{reason:?}");
}

/// A server that is replaced is started when its old process has ended: both may need the same port
/// or lock.
#[tokio::test]
async fn a_process_is_started_when_its_predecessor_has_ended() {
    let server = StdioServer::new(script(Step::Echo)).await;
    let mut definition = stdio(&server);
    definition.timeouts.call = Duration::from_secs(20);
    let upstream = connected(definition).await;
    let first = server.process().await;
    first.perform(Step::CloseOutput).await;
    // It ends only when it is terminated.
    first.perform(Step::Hang).await;
    let calling = async {
        loop {
            let (calling, _events) =
                Caller::default().call(&upstream, "tools/call", &json!({"name": "a"}));
            if within("the outcome", calling).await.is_ok() {
                return;
            }
        }
    };
    let started = async {
        let second = server.process().await;
        assert!(!is_running(&first), "two processes at once");
        second
    };
    let _answered_by = tokio::join!(calling, started);
}

/// The end of one principal's process concerns the calls of that principal only, also if a call finds
/// out when it is to be sent.
#[tokio::test]
async fn the_end_of_a_principals_process_leaves_the_others_alone() {
    let server = StdioServer::new(script(Step::Echo)).await;
    let mut definition = for_each_principal(&server);
    definition.prime_roots = true;
    let upstream = connected(definition).await;
    let own = server.process().await;
    let caller = Caller {
        principal: Some("one".to_owned()),
        ..Caller::able(json!({"roots": {}}))
    };
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let ask = asked(&mut calling, &mut events).await;
    let process = server.process().await;
    process.perform(Step::Exit(0)).await;
    process.ended().await;
    let mut status = upstream.status();
    status.mark_unchanged();
    ask.answer(Ok(raw(&json!({"roots": []}))));
    let failure = within("the failure", calling)
        .await
        .unwrap_err()
        .to_string();
    assert!(failure.contains("code 0"), "{failure}");
    server.assert_not_started_again().await;
    assert!(is_running(&own));
    let is_unchanged = !status.has_changed().unwrap();
    assert!(is_unchanged, "{:?}", status.borrow_and_update());
}

/// A call that is cancelled while its process starts does not delay the start for the next call.
#[tokio::test]
async fn a_cancelled_start_does_not_delay_the_next_one() {
    let server = StdioServer::new(script(Step::Echo).ignoring("initialize")).await;
    let mut definition = for_each_principal(&server);
    definition.era = Some(Era::Handshake);
    let upstream = Upstream::new(definition);
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let greeted = async || {
        let process = server.process().await;
        let request = process.received("initialize").await;
        process.reply(&request, offer.initialized()).await;
    };
    let (connected, ()) = tokio::join!(upstream.connect(), greeted());
    connected.unwrap();
    let caller = Caller {
        principal: Some("one".to_owned()),
        ..Caller::default()
    };
    let call = || caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let (mut cancelled, _events) = call();
    let process = during(&mut cancelled, server.process()).await;
    during(&mut cancelled, process.received("initialize")).await;
    drop(cancelled);
    let (calling, _events) = call();
    let (outcome, ()) = tokio::join!(within("the answer", calling), greeted());
    outcome.unwrap();
}
