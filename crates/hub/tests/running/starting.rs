//! Servers that are starting: lists and calls wait for them, up to a limit.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{Fault, Section, Service};
use plexus_mcp_hub::{MemberKind, MemberSpec, Prepare};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::json;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::servers::{
    TEST_TIMEOUT, call, echoing, greeted, hub, keys, never, server, settled, state, tool_params,
    until, with_cache,
};

/// Lists wait for a member with an unknown offer, up to its `startup_wait`.
#[tokio::test(start_paused = true)]
async fn lists_wait_for_members_of_which_nothing_is_known() {
    let hub = hub();
    let wait = Duration::from_secs(3);
    let mut slow = never("slow", 1);
    slow.startup_wait = wait;
    hub.set_members(vec![slow]).await;
    hub.connect_in_background();
    let began = Instant::now();
    settled(&hub).await;
    assert_eq!(began.elapsed(), wait);
    assert!(
        hub.settling().is_none(),
        "there is one deadline for all lists"
    );
    assert_eq!(state(&hub, "slow"), ServerState::Pending);
    // Lists do not wait for a disabled member.
    let hub = self::hub();
    let mut off = never("off", 1);
    off.disabled = true;
    hub.set_members(vec![off]).await;
    assert!(hub.settling().is_none());
}

/// Lists do not wait for a member that fails, or that did not answer in an earlier process.
#[tokio::test(start_paused = true)]
async fn lists_do_not_wait_for_members_that_are_known_to_fail() {
    let hub = hub();
    let failing: Prepare = Arc::new(|| Box::pin(std::future::ready(Err("no key".to_owned()))));
    let failing = MemberSpec::new("failing", MemberKind::Deferred(failing), [7; 32]);
    hub.set_members(vec![failing]).await;
    assert!(hub.settling().is_some(), "nothing is known of it yet");
    hub.connect_in_background();
    let began = Instant::now();
    settled(&hub).await;
    assert!(began.elapsed() < plexus_mcp_hub::LIST_STARTUP_TIMEOUT);
    assert_eq!(state(&hub, "failing"), ServerState::Failed);

    let directory = tempfile::tempdir().unwrap();
    for is_waited_for in [true, false] {
        let hub = with_cache(&directory);
        hub.set_members(vec![never("silent", 8)]).await;
        hub.connect_in_background();
        assert_eq!(hub.settling().is_some(), is_waited_for);
        // It is recorded even if no client waits for a list.
        tokio::time::sleep(2 * plexus_mcp_hub::LIST_STARTUP_TIMEOUT).await;
        hub.close().await;
    }
}

/// A server that waited for its start has its own startup wait before it counts as silent.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_late_is_not_yet_silent() {
    let wait = plexus_mcp_hub::LIST_STARTUP_TIMEOUT;
    let directory = tempfile::tempdir().unwrap();
    for (own_time, is_silent) in [(wait / 2, false), (2 * wait, true)] {
        let hub = with_cache(&directory);
        hub.set_members(vec![never("late", 8)]).await;
        tokio::time::sleep(wait / 2 + Duration::from_secs(1)).await;
        hub.connect_in_background();
        tokio::time::sleep(own_time).await;
        hub.close().await;
        let next = with_cache(&directory);
        next.set_members(vec![never("late", 8)]).await;
        assert_eq!(next.settling().is_none(), is_silent);
        next.close().await;
    }
}

/// Plexus may end right after the lists have stopped waiting. A server that was started a moment after
/// it was added is recorded by then.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_recorded_when_lists_stop_waiting() {
    let moment = Duration::from_millis(100);
    let directory = tempfile::tempdir().unwrap();
    let hub = with_cache(&directory);
    hub.set_members(vec![never("silent", 8)]).await;
    tokio::time::sleep(moment).await;
    hub.connect_in_background();
    settled(&hub).await;
    tokio::time::sleep(moment / 2).await;
    hub.close().await;
    let next = with_cache(&directory);
    next.set_members(vec![never("silent", 8)]).await;
    assert!(next.settling().is_none());
    next.close().await;
}

/// A server that ends during its first listing was not connected, and its successor inherits nothing.
#[tokio::test]
async fn a_server_that_was_never_listed_leaves_no_offer() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let ending = Script::from(&offer).on("tools/list", [Step::Exit(4)]);
    let (ending, good) = (StdioServer::new(ending).await, echoing().await);
    let hub = hub();
    hub.set_members(vec![server("a", &ending, 1)]).await;
    let failure = hub.connect("a").await.unwrap_err().to_string();
    assert!(failure.contains("code 4"), "{failure}");
    let failure = call(&hub, "tools/call", &tool_params("a__work", 1)).await;
    let failure = failure.unwrap_err().to_string();
    for part in ["\"a\" cannot be connected", "code 4"] {
        assert!(failure.contains(part), "{part}: {failure}");
    }
    hub.set_members(vec![server("a", &good, 2)]).await;
    assert!(hub.settling().is_some(), "nothing is known of it");
    hub.connect_unknown_in_background();
    until(&hub, "it is connected", |hub| {
        state(hub, "a") == ServerState::Connected
    })
    .await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    hub.close().await;
}

/// A call that waits for a server whose definition is corrected meanwhile goes to the successor,
/// whether the hub knows the server's tools or not: nothing of it was sent.
#[tokio::test]
async fn a_waiting_call_goes_to_the_successor() {
    let hub = hub();
    let good = echoing().await;
    for (name, is_known) in [("fresh", false), ("known", true)] {
        let silent = StdioServer::new(Script::silent()).await;
        if is_known {
            hub.set_members(vec![server(name, &good, 1)]).await;
            hub.connect(name).await.unwrap();
            good.process().await;
        }
        hub.set_members(vec![server(name, &silent, 2)]).await;
        let calling = {
            let (hub, params) = (hub.clone(), tool_params(&format!("{name}__work"), 1));
            TaskTracker::new().spawn(async move { call(&hub, "tools/call", &params).await })
        };
        silent.process().await;
        hub.set_members(vec![server(name, &good, 3)]).await;
        let outcome = timeout(TEST_TIMEOUT, calling).await.unwrap().unwrap();
        outcome.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        good.process().await.received("tools/call").await;
    }
    hub.close().await;
}

/// A call that names a server which is still starting waits for it; a tool of a configured server
/// is never unknown.
#[tokio::test]
async fn a_call_waits_for_the_server_that_it_names() {
    let silent = StdioServer::new(Script::silent()).await;
    let hub = hub();
    let mut gone = server("gone", &echoing().await, 2);
    gone.disabled = true;
    hub.set_members(vec![server("slow", &silent, 1), gone])
        .await;
    hub.connect_in_background();
    let calling = {
        let hub = hub.clone();
        let params = tool_params("slow__work", 1);
        TaskTracker::new().spawn(async move { call(&hub, "tools/call", &params).await })
    };
    let process = silent.process().await;
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    greeted(&process, &offer).await;
    let called = process.received("tools/call").await;
    process.reply(&called, json!({"content": []})).await;
    timeout(TEST_TIMEOUT, calling)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let unknown = call(&hub, "tools/call", &tool_params("slow__rest", 1)).await;
    assert_eq!(unknown, Err(Fault::UnknownTool("slow__rest".to_owned())));
    let off = call(&hub, "tools/call", &tool_params("gone__work", 1)).await;
    assert!(off.unwrap_err().to_string().contains("is disabled"));
    // The same if it is disabled while it is connected.
    hub.toggle("slow", false).unwrap();
    let off = call(&hub, "tools/call", &tool_params("slow__work", 1)).await;
    assert!(off.unwrap_err().to_string().contains("is disabled"));
    hub.close().await;
}

#[tokio::test]
async fn a_call_of_a_server_that_cannot_be_connected_says_so() {
    let start = [
        Step::Complain("the password is wrong".to_owned()),
        Step::Exit(4),
    ];
    let failing = StdioServer::new(Script::silent().start(start)).await;
    let hub = hub();
    hub.set_members(vec![server("failing", &failing, 1)]).await;
    for (method, params) in [
        ("tools/call", tool_params("failing__work", 1)),
        ("prompts/get", r#"{"name":"failing__ask"}"#.to_owned()),
    ] {
        let failure = call(&hub, method, &params).await.unwrap_err().to_string();
        for part in ["\"failing\" cannot be connected", "code 4"] {
            assert!(failure.contains(part), "{part}: {failure}");
        }
        assert!(
            !failure.contains("password"),
            "only for its operator: {failure}"
        );
    }
    hub.close().await;
}

/// A tool of a connected server that cannot be listed is not unknown: the call says what is wrong.
#[tokio::test]
async fn a_call_of_a_server_that_cannot_be_listed_says_so() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let refusal = Step::Error(json!({"code": -32603, "message": "out of order"}));
    let unlisted = StdioServer::new(Script::from(&offer).on("tools/list", [refusal])).await;
    let hub = hub();
    hub.set_members(vec![server("el", &unlisted, 1)]).await;
    hub.connect("el").await.unwrap();
    for name in ["el__work", "el.work", "mcp__el__work"] {
        let failure = call(&hub, "tools/call", &tool_params(name, 1)).await;
        let failure = failure.unwrap_err().to_string();
        for part in [name, "\"el\" is connected", "out of order"] {
            assert!(failure.contains(part), "{part}: {failure}");
        }
    }
    let other = call(&hub, "tools/call", &tool_params("work", 1)).await;
    assert_eq!(other, Err(Fault::UnknownTool("work".to_owned())));
    let prompt = call(&hub, "prompts/get", r#"{"name":"el__ask"}"#).await;
    assert_eq!(prompt, Err(Fault::UnknownPrompt("el__ask".to_owned())));
    hub.close().await;
}

/// Built-in tools with plain names come last in a list, whatever the order of the members.
#[tokio::test]
async fn servers_come_first_in_lists() {
    let program = echoing().await;
    let local = plexus_mcp_core::LocalService::builder("own", "1.0.0")
        .tool(
            plexus_mcp_core::Tool::new("own"),
            async |_: plexus_mcp_core::NoArguments, _: plexus_mcp_core::Context| "done",
        )
        .build()
        .unwrap();
    let mut own = MemberSpec::new("own", MemberKind::Local(Arc::new(local)), [9; 32]);
    own.plain_names = true;
    let hub = hub();
    hub.set_members(vec![own, server("a", &program, 1)]).await;
    hub.connect_all().await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work", "own"]);
    hub.close().await;
}

/// Lists are answered from the catalogue cache while the servers hang, and clients are notified
/// only of real changes.
#[tokio::test]
async fn lists_are_answered_before_servers_are_connected() {
    let directory = tempfile::tempdir().unwrap();
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    // The first process answers; the second answers the handshake only when it is told to.
    let program = StdioServer::new(Script::from(&offer)).await;
    let hub = with_cache(&directory);
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    hub.close().await;

    let silent = StdioServer::new(Script::silent()).await;
    let hub = with_cache(&directory);
    hub.set_members(vec![server("a", &silent, 1)]).await;
    let mut catalogue = hub.catalogue();
    catalogue.mark_unchanged();
    hub.connect_in_background();
    settled(&hub).await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    assert_eq!(state(&hub, "a"), ServerState::Pending, "it hangs");

    let process = silent.process().await;
    greeted(&process, &offer).await;
    until(&hub, "it is connected", |hub| {
        state(hub, "a") == ServerState::Connected
    })
    .await;
    assert!(!catalogue.has_changed().unwrap(), "nothing changed");

    let changed = Offer::tools(Revision::V2025_06_18, [tool("work"), tool("rest")]);
    process
        .say(serde_json::json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        .await;
    let request = process.received("tools/list").await;
    process
        .reply(&request, changed.answer("tools/list").unwrap())
        .await;
    timeout(TEST_TIMEOUT, catalogue.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(keys(&hub, Section::Tools), ["a__work", "a__rest"]);
    hub.close().await;
}
