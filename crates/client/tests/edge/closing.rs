//! The end of a connection.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{
    Era, Prepare, Program, ServerState, StartSlots, Supervision, Target, Upstream,
};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::support::{LEGACY, call, connected, during, minimal, status_becomes, stdio};

/// A descendant of the process, in a session of its own, keeps the full standard input open without
/// reading it.
#[tokio::test]
async fn an_input_that_a_descendant_keeps_open_does_not_hold_up_the_end() {
    const KEEP_INPUT_OPEN: &str =
        r#"exec 4<&0; setsid sleep 60 <&4 4<&- >/dev/null 2>&1 & echo $! >"$0"; exec "$@" 4<&-"#;
    let script = Script::from(&Offer::tools(LEGACY, [tool("a")])).on("tools/call", [Step::Hang]);
    let server = StdioServer::new(script).await;
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let program = Program::new("sh")
        .args(["-c", KEEP_INPUT_OPEN])
        .arg(pid_file.display().to_string())
        .arg(StdioServer::command())
        .args(server.arguments().iter().cloned());
    let mut definition = minimal(Target::Stdio(program));
    definition.era = Some(Era::Handshake);
    let upstream = connected(definition).await;
    let process = server.process().await;
    let padding = "x".repeat(1024 * 1024);
    let params = json!({"name": "a", "arguments": {"padding": padding}});
    let mut calling = call(&upstream, "tools/call", &params);
    during(&mut calling, process.received("tools/call")).await;
    let second = call(&upstream, "tools/call", &params);
    let ending = upstream.disconnect_within(Grace::new(Duration::ZERO, Duration::ZERO));
    let (outcome, ()) = within("the end", async { tokio::join!(second, ending) }).await;
    outcome.unwrap_err();
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).expect("the descendant is still there");
}

/// A server is disconnected while it is starting. Its process has ended when that returns, although
/// it ignores the end of its input.
#[tokio::test]
async fn the_process_of_an_abandoned_attempt_has_ended_afterwards() {
    let server = StdioServer::new(Script::silent().start([Step::Hang])).await;
    let upstream = Upstream::new(stdio(&server));
    upstream.start();
    let process = server.process().await;
    let grace = Grace::new(Duration::from_millis(1), Duration::from_millis(1));
    within("the end", upstream.disconnect_within(grace)).await;
    let pid = Pid::from_raw(process.pid().try_into().unwrap()).unwrap();
    assert_eq!(test_kill_process(pid), Err(Errno::SRCH), "it is gone");
}

/// Plexus begins to shut down while a server is starting that would be started a second time.
#[tokio::test]
async fn nothing_is_started_after_the_shutdown_has_begun() {
    let server = StdioServer::new(Script::silent()).await;
    let slots = StartSlots::default();
    let mut supervision = Supervision::default();
    supervision.slots = slots.clone();
    let upstream = Upstream::supervised(stdio(&server), supervision);
    upstream.start();
    let process = server.process().await;
    process.received("server/discover").await;
    slots.close();
    process.perform(Step::Exit(0)).await;
    let failed = status_becomes(&upstream, ServerState::Failed).await;
    let reason = failed.reason.unwrap();
    assert!(reason.contains("shutting down"), "{reason}");
    let secrets: Prepare = Arc::new(|| panic!("a program that fetches secrets was started"));
    let mut supervision = Supervision::default();
    supervision.slots = slots;
    let upstream = Upstream::deferred(secrets, supervision);
    let error = within("the refusal", upstream.connect()).await.unwrap_err();
    assert!(error.to_string().contains("shutting down"), "{error}");
}
