//! Regression tests for defects of the earlier systems: Substrate, Ghost and Bossman.

use plexus_mcp_client::ServerState;
use plexus_mcp_core::Service;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::json;

use crate::support::{
    LEGACY, call_tool, changed, connect, echoing, hub_of, member, peer, resources_become, state,
    status, tools, tools_become,
};

/// S004-D02: a disabled server is not reconnected, and stays disabled when its definition changes.
#[tokio::test]
async fn reconnecting_turns_nothing_on() {
    let server = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    hub.toggle("s", false).unwrap();
    let refused = within("the reconnection", Box::pin(hub.reconnect("s"))).await;
    assert!(refused.unwrap_err().to_string().contains("is disabled"));
    assert_eq!(state(&hub, "s"), ServerState::Connected);
    assert!(!status(&hub, "s").unwrap().enabled);
    assert_eq!(tools(&hub), [""; 0]);

    let changes = hub.set_members(vec![changed("s", &server, 2)]).await;
    assert_eq!(changes.updated, ["s"]);
    connect(&hub).await;
    assert!(!status(&hub, "s").unwrap().enabled);
    assert_eq!(tools(&hub), [""; 0]);
    hub.toggle("s", true).unwrap();
    connect(&hub).await;
    assert_eq!(call_tool(&hub, "s__a").await["echo"]["name"], "a");
}

/// S004-D03: a server whose name is a prefix of another's does not affect the other, whether it is
/// removed, disabled, or both have a tool of the same name.
#[tokio::test]
async fn a_server_takes_only_its_own_tools_along() {
    let (a, a_b) = (
        StdioServer::new(echoing(&["x", "b__c"])).await,
        StdioServer::new(echoing(&["x", "c"])).await,
    );
    let hub = hub_of(vec![member("a", &a), member("a__b", &a_b)]).await;
    let shown = tools(&hub);
    let [ax, a_b_c, abx, ab_c] = &shown[..] else {
        panic!("{shown:?}");
    };
    assert_eq!([&**ax, &**a_b_c, &**abx], ["a__x", "a__b__c", "a__b__x"]);
    assert_ne!(ab_c, a_b_c);
    let (a, a_b_process) = (a.process().await, a_b.process().await);
    call_tool(&hub, a_b_c).await;
    let called = a.received("tools/call").await;
    assert_eq!(called["params"]["name"], "b__c");
    call_tool(&hub, ab_c).await;
    let called = a_b_process.received("tools/call").await;
    assert_eq!(called["params"]["name"], "c");

    hub.toggle("a", false).unwrap();
    assert_eq!(tools(&hub), ["a__b__x", "a__b__c"]);
    hub.toggle("a", true).unwrap();
    hub.set_members(vec![member("a__b", &a_b)]).await;
    assert_eq!(tools(&hub), ["a__b__x", "a__b__c"]);
    call_tool(&hub, "a__b__x").await;
}

/// S001-D08: a subscriber of a resource is notified through the hub.
#[tokio::test]
async fn updates_of_resources_arrive() {
    let mut offer = Offer::new(LEGACY).declaring("resources", json!({"subscribe": true}));
    offer.resources = vec![json!({"uri": "file:///watched", "name": "w"})];
    let script = Script::from(&offer).on("resources/subscribe", [Step::Result(json!({}))]);
    let server = StdioServer::new(script).await;
    let bystander = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("other", &bystander), member("s", &server)]).await;
    resources_become(&hub, &["file:///watched"]).await;
    let process = server.process().await;
    let subscribing = hub.subscribe(&peer(), "file:///watched");
    let mut updates = within("the subscription", subscribing).await.unwrap();
    process.received("resources/subscribe").await;
    let params = json!({"uri": "file:///watched"});
    process
        .say(json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}))
        .await;
    let update = within("the update", updates.next()).await;
    assert!(update.is_some());
}

/// S004-D12: the current resources are listed, not those of the first connection.
#[tokio::test]
async fn changed_resources_are_shown() {
    let listed = |uri: &str| Step::Result(json!({"resources": [{"uri": uri, "name": "r"}]}));
    let offer = Offer::new(LEGACY).declaring("resources", json!({"listChanged": true}));
    let script = Script::from(&offer)
        .on("resources/list", [listed("file:///old")])
        .then("resources/list", [listed("file:///new")]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    let process = server.process().await;
    process
        .say(json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}))
        .await;
    resources_become(&hub, &["file:///new"]).await;
}

/// S004-D01: after a reconnection nothing goes to the old connection.
#[tokio::test]
async fn calls_after_a_reconnection_use_the_new_connection() {
    let server = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    let first = server.process().await;
    first.perform(Step::Exit(1)).await;
    first.ended().await;
    within("the reconnection", Box::pin(hub.reconnect("s")))
        .await
        .unwrap();
    tools_become(&hub, &["s__a"]).await;
    for _ in 0..3 {
        call_tool(&hub, "s__a").await;
    }
    let second = server.process().await;
    for _ in 0..3 {
        second.received("tools/call").await;
    }
    server.assert_not_started_again().await;
}

/// S004-D05: a change that is announced before the lists are fetched is not lost.
#[tokio::test]
async fn an_early_change_is_not_lost() {
    let initialized = Offer::tools(LEGACY, []).initialized();
    let early = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let listed = |name| Step::Result(json!({"tools": [tool(name)]}));
    let script = echoing(&[])
        .on("initialize", [Step::Result(initialized), Step::Say(early)])
        .on("tools/list", [listed("old")])
        .then("tools/list", [listed("new")]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    tools_become(&hub, &["s__new"]).await;
}
