//! Lists that change, and unsolicited notifications.

use std::time::Duration;

use plexus_mcp_client::ServerState;
use plexus_mcp_core::Service;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    LEGACY, STATELESS, call_tool, connected, http, status, stdio, tools, tools_become,
};

fn changed(list: &str) -> Value {
    let method = format!("notifications/{list}/list_changed");
    json!({"jsonrpc": "2.0", "method": method})
}

fn listed(names: &[&str]) -> Step {
    let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
    Step::Result(json!({"tools": tools}))
}

/// A server whose first list has one tool, and whose next list has another.
fn changing() -> Script {
    Script::from(&Offer::tools(LEGACY, []))
        .on("tools/list", [listed(&["a"])])
        .then("tools/list", [listed(&["b"])])
}

/// C36
#[tokio::test]
async fn a_changed_list_is_fetched_anew() {
    let server = StdioServer::new(changing()).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(tools(&upstream), ["a"]);
    let process = server.process().await;
    process.say(changed("tools")).await;
    tools_become(&upstream, &["b"]).await;
}

/// TRAP-13: a change notification counts even if the server did not declare `listChanged`.
#[tokio::test]
async fn a_change_counts_that_was_not_advertised() {
    let script = changing();
    let offer = Offer::new(LEGACY).declaring("tools", json!({}));
    let script = script.on("initialize", [Step::Result(offer.initialized())]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    process.say(changed("tools")).await;
    tools_become(&upstream, &["b"]).await;
}

/// TRAP-14: many change notifications in a short time lead to few requests.
#[tokio::test]
async fn a_storm_of_changes_is_one_change() {
    let server = StdioServer::new(changing()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    for _ in 0..100 {
        process.say(changed("tools")).await;
    }
    tools_become(&upstream, &["b"]).await;
    let methods = process.methods().await;
    let lists = methods.iter().filter(|method| *method == "tools/list");
    assert!((2..=5).contains(&lists.count()), "{methods:?}");
}

/// S004-D05: a change notification before or right after the response to `initialize` is not lost.
#[tokio::test]
async fn a_change_during_the_greeting_is_not_lost() {
    let initialized = Offer::tools(LEGACY, []).initialized();
    let orders = [
        vec![
            Step::Say(changed("tools")),
            Step::Result(initialized.clone()),
        ],
        vec![Step::Result(initialized), Step::Say(changed("tools"))],
    ];
    for steps in orders {
        let server = StdioServer::new(changing().on("initialize", steps)).await;
        let upstream = connected(stdio(&server)).await;
        tools_become(&upstream, &["b"]).await;
    }
}

/// Nor is a change notification while the lists are fetched.
#[tokio::test]
async fn a_change_during_the_listing_is_not_lost() {
    let script = changing().on("tools/list", [Step::Say(changed("tools")), listed(&["a"])]);
    let script = script.then("tools/list", [listed(&["b"])]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    tools_become(&upstream, &["b"]).await;
}

/// S004-D12: resources and prompts are fetched again after each change notification.
#[tokio::test]
async fn every_list_is_fetched_anew_when_it_changes() {
    let offer = Offer::new(LEGACY)
        .declaring("resources", json!({}))
        .declaring("prompts", json!({}));
    let server = StdioServer::new(&offer).await;
    let _upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let lists = [
        (
            "resources",
            &["resources/list", "resources/templates/list"][..],
        ),
        ("prompts", &["prompts/list"]),
    ];
    for (list, methods) in lists {
        for method in methods {
            process.received(method).await;
        }
        process.say(changed(list)).await;
        for method in methods {
            process.received(method).await;
        }
    }
}

/// S004-12: a change notification for an undeclared list is ignored.
#[tokio::test]
async fn a_change_of_what_is_not_offered_is_ignored() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    process.say(changed("prompts")).await;
    process.say(changed("tools")).await;
    process.received("tools/list").await;
    process.received("tools/list").await;
    tools_become(&upstream, &["a"]).await;
    assert!(!process.methods().await.contains(&"prompts/list".to_owned()));
}

/// An unchanged list that is fetched again does not wake those who watch the catalogue.
#[tokio::test]
async fn a_list_that_is_the_same_is_no_change() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    process.received("tools/list").await;
    let mut catalogues = upstream.catalogue();
    catalogues.mark_unchanged();
    for _ in 0..2 {
        // The second request is sent only after the first response was processed.
        process.say(changed("tools")).await;
        process.received("tools/list").await;
    }
    assert!(!catalogues.has_changed().unwrap());
}

/// SUB26-13: Plexus subscribes to the list changes that a stateless server declares.
#[tokio::test]
async fn a_stateless_server_is_asked_to_tell_of_changes() {
    for transport in ["stdio", "http"] {
        let offer = Offer::tools(STATELESS, []).declaring("prompts", json!({"listChanged": false}));
        let ack = |id: &Value| {
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true},
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
        };
        let change = |id: &Value| {
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
        };
        let check = |filter: &Value| {
            assert_eq!(filter["toolsListChanged"], true, "{filter}");
            assert_ne!(filter["promptsListChanged"], true, "{filter}");
        };
        if transport == "stdio" {
            let script = Script::from(&offer)
                .on("tools/list", [listed(&["a"])])
                .then("tools/list", [listed(&["b"])]);
            let server = StdioServer::new(script).await;
            let upstream = connected(stdio(&server)).await;
            let process = server.process().await;
            let listen = process.received("subscriptions/listen").await;
            check(&listen["params"]["notifications"]);
            process.say(ack(&listen["id"])).await;
            process.say(change(&listen["id"])).await;
            tools_become(&upstream, &["b"]).await;
        } else {
            let lists = std::sync::atomic::AtomicUsize::new(0);
            let (streams, mut opened) = tokio::sync::mpsc::channel(1);
            let server = HttpServer::start(move |request| match request.mcp() {
                "subscriptions/listen" => {
                    let (reply, stream) = Reply::stream();
                    streams.try_send(stream).unwrap();
                    reply
                }
                "tools/list" => {
                    let first = lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
                    let tools = [tool(if first { "a" } else { "b" })];
                    Reply::json(&request.result(&json!({"tools": tools})))
                }
                _ => request.reply_from(&offer),
            })
            .await;
            let upstream = connected(http(&server)).await;
            let listen = server.received("subscriptions/listen").await;
            check(&listen.body["params"]["notifications"]);
            let stream = within("the stream", opened.recv()).await.unwrap();
            stream.say(&ack(&listen.body["id"])).await;
            stream.say(&change(&listen.body["id"])).await;
            tools_become(&upstream, &["b"]).await;
            upstream.disconnect().await;
            stream.closed().await;
        }
    }
}

/// The resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.unwrap_or(0)
}

/// Acceptance 5: a flood of notifications does not starve calls, does not use much memory, and does
/// not affect other connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_notifications_drowns_neither_calls_nor_memory() {
    let floods = [
        json!({"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {"x": "y".repeat(2000)}}),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "z".repeat(2000)}}),
        changed("tools"),
    ];
    let quiet = Script::from(&Offer::tools(LEGACY, [tool("a")])).on("tools/call", [Step::Echo]);
    let bystander = StdioServer::new(quiet.clone()).await;
    let bystander = connected(stdio(&bystander)).await;
    for flood in floods {
        let server = StdioServer::new(quiet.clone()).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        let before = resident();
        process.perform(Step::Flood(flood)).await;
        let end = Instant::now() + Duration::from_secs(2);
        let mut calls = 0;
        while Instant::now() < end {
            call_tool(&upstream, "a").await;
            call_tool(&bystander, "a").await;
            calls += 1;
        }
        assert!(calls > 3, "only {calls} calls in two seconds");
        let grown = resident().saturating_sub(before);
        // Far less than the flood itself; other tests of this process allocate memory, too.
        assert!(grown < 128 * 1024, "grew by {grown} KiB");
        assert_eq!(status(&upstream).state, ServerState::Connected);
        within("the end", upstream.disconnect()).await;
        process.ended().await;
    }
}
