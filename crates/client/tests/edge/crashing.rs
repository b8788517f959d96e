//! Servers whose process ends by itself while it is being connected.

use std::sync::mpsc;
use std::time::Duration;

use plexus_mcp_client::{ServerState, Supervision, Upstream};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use tokio::task::JoinSet;

use crate::support::{LEGACY, call_fails, status, stdio, tools};

/// Stops the paused clock of a test while this value exists. Otherwise it runs on whenever the test
/// waits for a process.
struct StoppedClock {
    _resume: mpsc::Sender<()>,
    _stopping: JoinSet<()>,
}

impl StoppedClock {
    fn new() -> Self {
        let (resume, resumed) = mpsc::channel();
        let mut stopping = JoinSet::new();
        // The runtime does not advance a paused clock while a blocking task runs.
        stopping.spawn_blocking(move || resumed.recv().unwrap_or(()));
        Self {
            _resume: resume,
            _stopping: stopping,
        }
    }
}

/// A server that needs 6 s to crash is started twice by an attempt that detects its era, and the
/// attempt takes 12 s. It is crash-looping all the same, because its last start was too short.
#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_slowly_is_crash_looping() {
    const LIFETIME: Duration = Duration::from_secs(6);
    let clock = StoppedClock::new();
    let server = StdioServer::new(Script::silent()).await;
    let upstream = Upstream::new(stdio(&server));
    for _ in 0..5 {
        let calling = call_fails(&upstream, "a");
        let crashing = async {
            for method in ["server/discover", "initialize"] {
                let process = server.process().await;
                process.received(method).await;
                tokio::time::advance(LIFETIME).await;
                process.perform(Step::Exit(7)).await;
            }
        };
        let (failure, ()) = tokio::join!(calling, crashing);
        assert!(failure.contains("code 7"), "{failure}");
    }
    let failure = tokio::select! {
        failure = call_fails(&upstream, "a") => failure,
        _ = server.process() => panic!("the server was started once more"),
    };
    assert!(failure.contains("last 5 starts"), "{failure}");
    drop(clock);
}

/// A server that ends before its lists are complete was not connected, and nothing is known of it.
#[tokio::test]
async fn a_server_that_ends_during_its_first_listing_is_not_connected() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = StdioServer::new(Script::from(&offer).on("tools/list", [Step::Exit(4)])).await;
    let upstream = Upstream::supervised(stdio(&server), Supervision::once());
    let connected = within("the attempt", upstream.connect()).await;
    let error = connected.expect_err("it has ended").to_string();
    assert!(error.contains("code 4"), "{error}");
    assert_eq!(status(&upstream).state, ServerState::Failed);
    assert!(!upstream.is_known(), "lists wait for it");
    assert!(tools(&upstream).is_empty());
}

/// Ends during the first listing count as crashes.
#[tokio::test]
async fn a_server_that_always_ends_during_its_first_listing_is_crash_looping() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = StdioServer::new(Script::from(&offer).on("tools/list", [Step::Exit(4)])).await;
    let upstream = Upstream::new(stdio(&server));
    for _ in 0..5 {
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("code 4"), "{failure}");
        server.process().await;
    }
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("last 5 starts"), "{failure}");
    server.assert_not_started_again().await;
}
