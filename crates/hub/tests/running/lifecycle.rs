//! The hub with servers that are processes: connecting, leaving, the catalogue cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{Fault, Section, Service};
use plexus_mcp_hub::{HubEvent, MemberKind, MemberSpec, Prepare};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::servers::{
    TEST_TIMEOUT, anybody, call, echoing, hub, keys, server, state, tool_params, until, with_cache,
};

/// S004-51, S004-57, S004-50, S004-56, S004-49: connecting lists tools, disconnecting removes them
/// and ends the process, reconnecting lists them again.
#[tokio::test]
async fn connect_disconnect_and_reconnect() {
    let program = echoing().await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    assert_eq!(state(&hub, "a"), ServerState::Pending);
    hub.connect("a").await.unwrap();
    assert_eq!(state(&hub, "a"), ServerState::Connected);
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    let first = program.process().await;

    hub.disconnect("a").await.unwrap();
    first.ended().await;
    assert_eq!(state(&hub, "a"), ServerState::Pending);
    assert_eq!(keys(&hub, Section::Tools), [""; 0]);

    hub.reconnect("a").await.unwrap();
    let second = program.process().await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    hub.reconnect("a").await.unwrap();
    second.ended().await;
    let third = program.process().await;

    assert!(hub.connect("missing").await.is_err(), "S004-57");
    assert!(hub.reconnect("missing").await.is_err());
    assert!(hub.disconnect("missing").await.is_err());
    hub.close().await;
    third.ended().await;
    assert_eq!(keys(&hub, Section::Tools), [""; 0]);
}

/// S004-54, S004-48: the status of a server.
#[tokio::test]
async fn status_says_what_is_known() {
    let program = echoing().await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect("a").await.unwrap();
    call(&hub, "tools/call", &tool_params("a__work", 1))
        .await
        .unwrap();
    let process = program.process().await;
    let status = hub.examine().await.remove(0);
    assert_eq!(status.process.as_ref().unwrap().pid, process.pid());
    assert_eq!(status.revision.as_deref(), Some("2025-06-18"));
    assert_eq!(
        (
            status.tools.entries().len(),
            status.resources,
            status.prompts
        ),
        (1, 0, 0)
    );
    assert!(status.latency.is_some() && status.connected_in.is_some());
    assert_eq!(status.report.unwrap().facts.identity.name, "scripted");
    hub.close().await;
}

/// The latency is that of answered calls, without the time until the server is connected.
#[tokio::test]
async fn latency_is_that_of_responses() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let ending = Script::from(&offer).on("tools/call", [Step::Exit(3)]);
    let (ending, echoing) = (StdioServer::new(ending).await, echoing().await);
    let directory = tempfile::tempdir().unwrap();
    let before = with_cache(&directory);
    before.set_members(vec![server("a", &echoing, 1)]).await;
    before.connect("a").await.unwrap();
    before.close().await;

    let hub = with_cache(&directory);
    let members = vec![server("a", &echoing, 1), server("ending", &ending, 2)];
    hub.set_members(members).await;
    let latency = |name: &str| hub.server_status(name).unwrap().latency;
    let called = async |tool: &str| call(&hub, "tools/call", &tool_params(tool, 1)).await;
    assert_eq!(latency("a"), None, "it was not called");
    called("a__work").await.unwrap();
    assert!(latency("a").is_some());
    hub.connect("ending").await.unwrap();
    called("ending__work").await.unwrap_err();
    assert_eq!(latency("ending"), None, "there was no response");
    hub.close().await;
}

/// A reconnect that does not happen is an error that says why.
#[tokio::test]
async fn what_cannot_be_reconnected_says_why() {
    let program = echoing().await;
    let hub = hub();
    let mut off = server("off", &program, 1);
    off.disabled = true;
    let withheld = MemberKind::Unavailable {
        state: ServerState::Pending,
        reason: "ask first".to_owned(),
    };
    let withheld = MemberSpec::new("withheld", withheld, [2; 32]);
    hub.set_members(vec![off, withheld]).await;
    for (name, why) in [
        (
            "off",
            "is disabled; to enable it: plexus servers toggle off --on",
        ),
        ("withheld", "ask first"),
    ] {
        let refused = hub.reconnect(name).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    program.assert_not_started_again().await;
    hub.close().await;
}

/// A server that is started again after a failure keeps saying why it failed.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_again_says_why_it_failed() {
    let attempts = AtomicUsize::new(0);
    let prepare: Prepare = Arc::new(move || match attempts.fetch_add(1, Ordering::Relaxed) {
        0 => Box::pin(std::future::ready(Err("no key".to_owned()))),
        _ => Box::pin(std::future::pending()),
    });
    let hub = hub();
    let failing = MemberSpec::new("failing", MemberKind::Deferred(prepare), [1; 32]);
    hub.set_members(vec![failing]).await;
    let status = || hub.server_status("failing").unwrap();
    assert_eq!(
        (status().state(), status().reason()),
        (ServerState::Pending, None)
    );
    hub.connect("failing").await.unwrap_err();
    until(&hub, "it is started again", |hub| {
        state(hub, "failing") == ServerState::Pending
    })
    .await;
    assert_eq!(status().reason(), Some("starting again; before: no key"));
}

/// S004-56: a server that refuses the handshake has failed, its status says why, and others are not
/// affected.
#[tokio::test]
async fn a_refused_handshake_is_a_failure() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let refusing = Script::from(&offer).on(
        "initialize",
        [Step::Error(
            serde_json::json!({"code": -32000, "message": "not today"}),
        )],
    );
    let (refusing, echoing) = (StdioServer::new(refusing).await, echoing().await);
    let hub = hub();
    let mut bad = server("bad", &refusing, 1);
    bad.auto_restart = false;
    hub.set_members(vec![bad, server("good", &echoing, 2)])
        .await;
    hub.connect_all().await;
    let bad = hub.server_status("bad").unwrap();
    assert_eq!(bad.state(), ServerState::Failed);
    assert!(bad.last_error.unwrap().1.contains("not today"));
    let refused = hub.connect("bad").await.unwrap_err().to_string();
    assert!(
        refused.contains("not today"),
        "it is tried again: {refused}"
    );
    for _ in 0..2 {
        refusing.process().await.ended().await;
    }
    refusing.assert_not_started_again().await;
    assert_eq!(keys(&hub, Section::Tools), ["good__work"]);
    hub.close().await;
}

/// The first call connects its server; C39: unless it is disabled.
#[tokio::test]
async fn a_call_connects_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let program = echoing().await;
    let before = with_cache(&directory);
    before.set_members(vec![server("a", &program, 1)]).await;
    before.connect("a").await.unwrap();
    before.close().await;
    program.process().await.ended().await;

    let hub = with_cache(&directory);
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_unknown_in_background();
    program.assert_not_started_again().await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"], "from before");
    assert_eq!(
        hub.server_status("a").unwrap().revision.as_deref(),
        Some("2025-06-18")
    );
    hub.toggle("a", false).unwrap();
    assert!(
        call(&hub, "tools/call", &tool_params("a__work", 1))
            .await
            .is_err()
    );
    hub.toggle("a", true).unwrap();
    let said = call(&hub, "tools/call", &tool_params("a__work", 7))
        .await
        .unwrap();
    assert!(said.contains("\"n\":7"), "{said}");
    hub.close().await;
}

/// C35: a lost server is reconnected; no call is repeated.
#[tokio::test]
async fn a_lost_server_comes_back() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let ending = Script::from(&offer).on("tools/call", [Step::Exit(3)]);
    let program = StdioServer::new(ending).await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_in_background();
    until(&hub, "connected", |hub| {
        state(hub, "a") == ServerState::Connected
    })
    .await;
    let first = program.process().await;
    let lost = call(&hub, "tools/call", &tool_params("a__work", 1)).await;
    assert!(lost.is_err(), "{lost:?}");
    first.ended().await;
    let second = program.process().await;
    until(&hub, "connected", |hub| {
        state(hub, "a") == ServerState::Connected
    })
    .await;
    let methods = second.methods().await;
    assert!(!methods.contains(&"tools/call".to_owned()), "{methods:?}");
    let last = hub.server_status("a").unwrap().last_error.unwrap().1;
    assert!(last.contains("code 3"), "{last}");
    hub.close().await;
}

/// A subscription survives a reconnect, and its subscriber is notified because an update may have
/// been missed.
#[tokio::test]
async fn subscriptions_are_renewed_with_the_connection() {
    let mut offer = Offer::new(Revision::V2025_06_18)
        .declaring("resources", serde_json::json!({"subscribe": true}));
    offer.resources = vec![serde_json::json!({"uri": "log://x", "name": "x"})];
    let script = Script::from(&offer);
    let script = script.on("resources/subscribe", [Step::Result(serde_json::json!({}))]);
    let script = script.on(
        "resources/unsubscribe",
        [Step::Result(serde_json::json!({}))],
    );
    let program = StdioServer::new(script).await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    let mut updates = hub.subscribe(&anybody(), "log://x").await.unwrap();
    let first = program.process().await;
    first.received("resources/subscribe").await;
    let changed = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": {"uri": "log://x"}});
    first.say(changed.clone()).await;
    timeout(TEST_TIMEOUT, updates.next())
        .await
        .unwrap()
        .unwrap();

    hub.reconnect("a").await.unwrap();
    let second = program.process().await;
    second.received("resources/subscribe").await;
    timeout(TEST_TIMEOUT, updates.next())
        .await
        .unwrap()
        .unwrap();
    second.say(changed.clone()).await;
    timeout(TEST_TIMEOUT, updates.next())
        .await
        .unwrap()
        .unwrap();

    hub.set_members(vec![server("a", &program, 2)]).await;
    let third = program.process().await;
    third.received("resources/subscribe").await;
    timeout(TEST_TIMEOUT, updates.next())
        .await
        .unwrap()
        .unwrap();
    third.say(changed).await;
    timeout(TEST_TIMEOUT, updates.next())
        .await
        .unwrap()
        .unwrap();
    drop(updates);
    third.received("resources/unsubscribe").await;
    hub.close().await;
}

/// S004-53, C38: a changed server replaces the old one, and the calls in flight on the old one
/// finish.
#[tokio::test]
async fn calls_of_a_member_that_leaves_finish() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let slow = StdioServer::new(Script::from(&offer).ignoring("tools/call")).await;
    let quick = echoing().await;
    let hub = hub();
    hub.set_members(vec![server("a", &slow, 1)]).await;
    hub.connect_all().await;
    let old = slow.process().await;
    let mut calling = JoinSet::new();
    let same = hub.clone();
    calling.spawn(async move { call(&same, "tools/call", &tool_params("a__work", 1)).await });
    let request = old.received("tools/call").await;

    let changes = hub.set_members(vec![server("a", &quick, 2)]).await;
    assert_eq!(changes.updated, ["a"]);
    let said = call(&hub, "tools/call", &tool_params("a__work", 2))
        .await
        .unwrap();
    assert!(said.contains("\"n\":2"), "{said}");
    old.reply(&request, serde_json::json!({"content": [], "late": true}))
        .await;
    let finished = calling.join_next().await.unwrap().unwrap();
    assert!(finished.unwrap().contains("late"));
    old.ended().await;
    hub.close().await;
    quick.process().await.ended().await;
}

/// Settings that need no new connection are applied; S004-53: names that differ only in case are
/// reported.
#[tokio::test]
async fn small_changes_touch_no_connection() {
    let program = echoing().await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    let mut hidden = server("a", &program, 1);
    hidden.shows_tool = Arc::new(|_| false);
    let changes = hub
        .set_members(vec![hidden, server("A", &program, 2)])
        .await;
    assert!(
        changes.updated.is_empty() && changes.added.is_empty(),
        "{changes:?}"
    );
    assert!(
        changes.errors["A"].contains("differs only in case"),
        "{changes:?}"
    );
    assert_eq!(keys(&hub, Section::Tools), [""; 0]);

    let mut off = server("a", &program, 1);
    off.disabled = true;
    hub.set_members(vec![off]).await;
    assert_eq!(state(&hub, "a"), ServerState::Disabled);
    hub.set_members(vec![server("a", &program, 1)]).await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    program.process().await;
    program.assert_not_started_again().await;
    hub.close().await;
}

/// A member that cannot be connected at present says what to do, and nothing is started.
#[tokio::test]
async fn an_unavailable_member_has_a_reason() {
    let hub = hub();
    let withheld = MemberKind::Unavailable {
        state: ServerState::Pending,
        reason: "ask first".to_owned(),
    };
    let failing = MemberKind::Deferred(Arc::new(|| {
        Box::pin(std::future::ready(Err("no secret".to_owned())))
    }));
    hub.set_members(vec![
        MemberSpec::new("withheld", withheld, [1; 32]),
        MemberSpec::new("failing", failing, [2; 32]),
    ])
    .await;
    hub.connect_all().await;
    let withheld = hub.server_status("withheld").unwrap();
    assert_eq!(
        (withheld.state(), withheld.reason()),
        (ServerState::Pending, Some("ask first"))
    );
    let failing = hub.server_status("failing").unwrap();
    assert_eq!(
        (failing.state(), failing.reason()),
        (ServerState::Failed, Some("no secret"))
    );
    let refused = hub.connect("withheld").await.unwrap_err();
    assert!(refused.to_string().contains("ask first"), "{refused}");
}

/// Every change is published as an event.
#[tokio::test]
async fn events_tell_what_happens() {
    let program = echoing().await;
    let hub = hub();
    let mut events = hub.events();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    let mut told = Vec::new();
    while told.len() < 3 {
        match timeout(TEST_TIMEOUT, events.recv()).await.unwrap().unwrap() {
            HubEvent::Members(changes) => told.push(format!("added {}", changes.added.join(" "))),
            HubEvent::Catalogue { name } => told.push(format!("catalogue {name}")),
            HubEvent::Status { name, status, .. } => {
                let status = status.unwrap();
                if status.state == ServerState::Connected {
                    told.push(format!("connected {name}"));
                }
            }
            other => panic!("{other:?}"),
        }
    }
    told.sort();
    assert_eq!(told, ["added a", "catalogue a", "connected a"]);
    hub.close().await;
}

/// An unknown name is refused as before, with a resolver too.
#[tokio::test]
async fn a_resolver_finds_only_what_is_shown() {
    let program = echoing().await;
    let hub = hub();
    let mut spec = server("a", &program, 1);
    spec.plain_names = true;
    spec.shows_tool = Arc::new(|tool| tool != "hidden");
    spec.resolve_tool = Some(Arc::new(|name| match name {
        "labour" => Ok("work".to_owned()),
        "secret" => Ok("hidden".to_owned()),
        other => Err(Fault::InvalidParams(format!("never heard of {other}"))),
    }));
    hub.set_members(vec![spec]).await;
    hub.connect_all().await;
    assert!(
        call(&hub, "tools/call", &tool_params("labour", 1))
            .await
            .is_ok()
    );
    let hidden = call(&hub, "tools/call", &tool_params("secret", 1)).await;
    assert_eq!(hidden, Err(Fault::UnknownTool("secret".to_owned())));
    let unknown = call(&hub, "tools/call", &tool_params("x", 1)).await;
    assert_eq!(
        unknown,
        Err(Fault::InvalidParams("never heard of x".to_owned()))
    );
    hub.close().await;
}
