//! The hub with servers that are processes: connecting, leaving, remembering.

use std::sync::Arc;

use plexus_client::State;
use plexus_hub::remembered::Remembered;
use plexus_hub::{Hub, HubEvent, MemberKind, MemberSpec, Prepare};
use plexus_mcp::Revision;
use plexus_service::{Fault, Implementation, Section, Service};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::servers::{PATIENCE, anybody, call, echoing, hub, keys, server, tool_params};

fn remembering(directory: &tempfile::TempDir) -> Hub {
    let remembered = Remembered::in_directory(directory.path());
    Hub::remembering(Implementation::new("hub", "1.0.0"), remembered)
}

async fn until(hub: &Hub, what: &str, is_so: impl Fn(&Hub) -> bool) {
    let mut events = hub.events();
    let waiting = async {
        while !is_so(hub) {
            // Several events may be missed; what counts is how things are then.
            drop(events.recv().await);
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

fn state(hub: &Hub, name: &str) -> State {
    hub.status_of(name).unwrap().state()
}

/// S004-51, S004-57, S004-50, S004-56, S004-49: connecting registers tools, disconnecting takes
/// them away and ends the process, reconnecting brings them back.
#[tokio::test]
async fn connect_disconnect_and_reconnect() {
    let program = echoing().await;
    let hub = hub();
    hub.set_members(vec![server("a", &program, 1)]).await;
    assert_eq!(state(&hub, "a"), State::Pending);
    hub.connect("a").await.unwrap();
    assert_eq!(state(&hub, "a"), State::Connected);
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    let first = program.process().await;

    hub.disconnect("a").await.unwrap();
    first.ended().await;
    assert_eq!(state(&hub, "a"), State::Pending);
    assert_eq!(keys(&hub, Section::Tools), [""; 0]);

    hub.reconnect("a").await.unwrap();
    let second = program.process().await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    hub.reconnect("a").await.unwrap();
    second.ended().await;
    let third = program.process().await;

    assert!(hub.connect("nobody").await.is_err(), "S004-57");
    assert!(hub.reconnect("nobody").await.is_err());
    assert!(hub.disconnect("nobody").await.is_err());
    hub.close().await;
    third.ended().await;
    assert_eq!(keys(&hub, Section::Tools), [""; 0]);
}

/// S004-54, S004-48: what is known of a server.
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
    assert_eq!((status.tools, status.resources, status.prompts), (1, 0, 0));
    assert!(status.latency.is_some() && status.connected_in.is_some());
    assert_eq!(status.report.unwrap().facts.identity.name, "scripted");
    hub.close().await;
}

/// S004-56: a server that refuses the handshake has failed, says why, and costs others nothing.
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
    hub.set_members(vec![
        server("bad", &refusing, 1),
        server("good", &echoing, 2),
    ])
    .await;
    hub.connect_all().await;
    let bad = hub.status_of("bad").unwrap();
    assert_eq!(bad.state(), State::Failed);
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

/// The first call of a server that nobody connected connects it; C39: unless it is turned off.
#[tokio::test]
async fn a_call_connects_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let program = echoing().await;
    let before = remembering(&directory);
    before.set_members(vec![server("a", &program, 1)]).await;
    before.connect("a").await.unwrap();
    before.close().await;
    program.process().await.ended().await;

    let hub = remembering(&directory);
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_unknown_in_background();
    program.assert_not_started_again().await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"], "from before");
    assert_eq!(
        hub.status_of("a").unwrap().revision.as_deref(),
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

/// A member of whom nothing is known is waited for once; one that did not come is not waited for
/// again, by this process or the next.
#[tokio::test(start_paused = true)]
async fn who_came_late_is_not_waited_for_again() {
    let directory = tempfile::tempdir().unwrap();
    for is_waited_for in [true, false, false] {
        let hub = remembering(&directory);
        let never: Prepare = Arc::new(|| Box::pin(std::future::pending()));
        let slow = MemberSpec::new("slow", MemberKind::Deferred(never), [7; 32]);
        hub.set_members(vec![slow]).await;
        hub.connect_in_background();
        let began = Instant::now();
        hub.settle(PATIENCE).await;
        assert_eq!(began.elapsed() >= PATIENCE, is_waited_for);
        assert_eq!(state(&hub, "slow"), State::Pending);
        hub.close().await;
    }
}

/// TRANSLATION §4, TRAP-17: that a program asks is remembered, too, so that after the next start its
/// first question is clear: calls of different callers do not overlap.
#[tokio::test]
async fn a_server_that_asked_is_called_by_one_at_a_time_after_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let program = StdioServer::new(&Offer::tools(Revision::V2025_06_18, [tool("work")])).await;
    let calling = |hub: &Hub, n| {
        let hub = hub.clone();
        async move { call(&hub, "tools/call", &tool_params("a__work", n)).await }
    };
    let done = json!({"content": []});
    let mut calls = JoinSet::new();

    let before = remembering(&directory);
    before.set_members(vec![server("a", &program, 1)]).await;
    before.connect("a").await.unwrap();
    let process = program.process().await;
    calls.spawn(calling(&before, 1));
    let called = process.received("tools/call").await;
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "Who?", "requestedSchema": {"type": "object", "properties": {}},
    }});
    process.say(question).await;
    process.answer(&json!("q")).await;
    process.reply(&called, done.clone()).await;
    calls.join_next().await.unwrap().unwrap().unwrap();
    before.close().await;
    process.ended().await;

    let hub = remembering(&directory);
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect("a").await.unwrap();
    let process = program.process().await;
    calls.spawn(calling(&hub, 1));
    calls.spawn(calling(&hub, 2));
    let first = process.received("tools/call").await;
    // By the time that the program has told all it was sent, the other call would have come.
    let sent = process.all().await;
    let sent = sent.iter().filter(|sent| sent["method"] == "tools/call");
    assert_eq!(sent.count(), 1, "the other call waits");
    process.reply(&first, done.clone()).await;
    let second = process.received("tools/call").await;
    process.reply(&second, done).await;
    assert!(calls.join_all().await.iter().all(Result::is_ok));
    hub.close().await;
}

/// Lists come from what is remembered while the servers hang, and clients hear of a change only if
/// there is one.
#[tokio::test]
async fn lists_are_answered_before_servers_are_connected() {
    let directory = tempfile::tempdir().unwrap();
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    // The first process answers; the second answers the handshake only when it is told to.
    let program = StdioServer::new(Script::from(&offer)).await;
    let hub = remembering(&directory);
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    hub.close().await;

    let silent = StdioServer::new(Script::silent()).await;
    let hub = remembering(&directory);
    hub.set_members(vec![server("a", &silent, 1)]).await;
    let mut catalogue = hub.catalogue();
    catalogue.mark_unchanged();
    hub.connect_in_background();
    hub.settle(PATIENCE).await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    assert_eq!(state(&hub, "a"), State::Pending, "it hangs");

    let process = silent.process().await;
    let discover = process.received("server/discover").await;
    process
        .refuse(&discover, offer.answer("server/discover").unwrap_err())
        .await;
    for method in ["initialize", "tools/list"] {
        let request = process.received(method).await;
        process.reply(&request, offer.answer(method).unwrap()).await;
    }
    until(&hub, "it is connected", |hub| {
        state(hub, "a") == State::Connected
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
    timeout(PATIENCE, catalogue.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(keys(&hub, Section::Tools), ["a__work", "a__rest"]);
    hub.close().await;
}

/// C35: only a server that is to be restarted is, and only its connection.
#[tokio::test]
async fn a_lost_server_comes_back_if_it_is_to() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let ending = Script::from(&offer).on("tools/call", [Step::Exit(3)]);
    let program = StdioServer::new(ending).await;
    let hub = hub();
    let mut spec = server("a", &program, 1);
    spec.auto_restart = true;
    hub.set_members(vec![spec]).await;
    hub.connect_in_background();
    until(&hub, "connected", |hub| state(hub, "a") == State::Connected).await;
    let first = program.process().await;
    let lost = call(&hub, "tools/call", &tool_params("a__work", 1)).await;
    assert!(lost.is_err(), "{lost:?}");
    first.ended().await;
    let second = program.process().await;
    until(&hub, "connected", |hub| state(hub, "a") == State::Connected).await;
    let methods = second.methods().await;
    assert!(!methods.contains(&"tools/call".to_owned()), "{methods:?}");
    let last = hub.status_of("a").unwrap().last_error.unwrap().1;
    assert!(last.contains("code 3"), "{last}");
    hub.close().await;
}

/// A subscription outlives the connection it was made on, and whoever has it hears of the gap.
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
    timeout(PATIENCE, updates.next()).await.unwrap().unwrap();

    hub.reconnect("a").await.unwrap();
    let second = program.process().await;
    second.received("resources/subscribe").await;
    timeout(PATIENCE, updates.next()).await.unwrap().unwrap();
    second.say(changed.clone()).await;
    timeout(PATIENCE, updates.next()).await.unwrap().unwrap();

    hub.set_members(vec![server("a", &program, 2)]).await;
    let third = program.process().await;
    third.received("resources/subscribe").await;
    timeout(PATIENCE, updates.next()).await.unwrap().unwrap();
    third.say(changed).await;
    timeout(PATIENCE, updates.next()).await.unwrap().unwrap();
    drop(updates);
    third.received("resources/unsubscribe").await;
    hub.close().await;
}

/// S004-53, C38: a changed server takes over where the old one was, and the calls that the old one
/// had finish.
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

/// What can change without a new connection does; S004-53: names that differ only in case are told.
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
    assert_eq!(state(&hub, "a"), State::Disabled);
    hub.set_members(vec![server("a", &program, 1)]).await;
    assert_eq!(keys(&hub, Section::Tools), ["a__work"]);
    program.process().await;
    program.assert_not_started_again().await;
    hub.close().await;
}

/// Whoever cannot be connected as things are says what to do, and nothing is started.
#[tokio::test]
async fn what_is_unavailable_says_why() {
    let hub = hub();
    let withheld = MemberKind::Unavailable {
        state: State::Pending,
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
    let withheld = hub.status_of("withheld").unwrap();
    assert_eq!(
        (withheld.state(), withheld.reason()),
        (State::Pending, Some("ask first"))
    );
    let failing = hub.status_of("failing").unwrap();
    assert_eq!(
        (failing.state(), failing.reason()),
        (State::Failed, Some("no secret"))
    );
    let refused = hub.connect("withheld").await.unwrap_err();
    assert!(refused.to_string().contains("ask first"), "{refused}");
}

/// Every change is told.
#[tokio::test]
async fn events_tell_what_happens() {
    let program = echoing().await;
    let hub = hub();
    let mut events = hub.events();
    hub.set_members(vec![server("a", &program, 1)]).await;
    hub.connect_all().await;
    let mut told = Vec::new();
    while told.len() < 3 {
        match timeout(PATIENCE, events.recv()).await.unwrap().unwrap() {
            HubEvent::Members(changes) => told.push(format!("added {}", changes.added.join(" "))),
            HubEvent::Catalogue { name } => told.push(format!("catalogue {name}")),
            HubEvent::Status { name, status, .. } => {
                let status = status.unwrap();
                if status.state == State::Connected {
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
