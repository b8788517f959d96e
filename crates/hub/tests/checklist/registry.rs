//! Which tools are listed, and which server a call reaches.

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{Fault, Section};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    LEGACY, call, call_tool, catalogue, changed, connect, definition_of, echoing, empty_hub,
    hub_of, member, missing, resources_become, state, status, tool_fails, tools, tools_become,
    try_tool,
};

fn described(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// S004-K058, S004-K095, S004-K099: a tool is listed from the moment its server is connected, with
/// its server's name as prefix.
#[tokio::test]
async fn connecting_shows_tools() {
    let offered = [
        described("search", "Search for things"),
        described("read", "Read a file"),
    ];
    let script = Script::from(&Offer::tools(LEGACY, offered)).on("tools/call", [Step::Echo]);
    let server = StdioServer::new(script).await;
    let hub = empty_hub();
    hub.set_members(vec![member("my_server", &server)]).await;
    assert_eq!(tools(&hub), [""; 0]);
    connect(&hub).await;
    assert_eq!(tools(&hub), ["my_server__search", "my_server__read"]);
    let shown: Value = definition_of(&hub, "my_server__search").decode().unwrap();
    assert_eq!(shown["description"], "Search for things");
    let result = call_tool(&hub, "mcp__my_server__search").await;
    assert_eq!(result["echo"]["name"], "search");
}

/// S004-K059, S004-K098: removing a server removes its tools and ends its process.
#[tokio::test]
async fn removing_hides_tools() {
    let (one, other) = (
        StdioServer::new(echoing(&["a", "b"])).await,
        StdioServer::new(echoing(&["c"])).await,
    );
    let hub = hub_of(vec![member("one", &one), member("other", &other)]).await;
    let process = one.process().await;
    assert_eq!(tools(&hub), ["one__a", "one__b", "other__c"]);
    let changes = hub.set_members(vec![member("other", &other)]).await;
    assert_eq!(changes.removed, ["one"]);
    assert_eq!(tools(&hub), ["other__c"]);
    let gone = try_tool(&hub, "one__a").await;
    assert_eq!(gone, Err(Fault::UnknownTool("one__a".to_owned())));
    process.ended().await;
    call_tool(&hub, "other__c").await;
}

/// S004-K060, S004-K064, S004-K066, S004-K074: an unknown server is an error that names it.
#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("there", &server)]).await;
    let told = "there is no server \"missing\"";
    for outcome in [hub.reconnect("missing").await, hub.toggle("missing", true)] {
        let fault = outcome.unwrap_err().to_string();
        assert!(fault.contains(told), "{fault}");
    }
    let unknown = try_tool(&hub, "nobody__a").await;
    assert_eq!(unknown, Err(Fault::UnknownTool("nobody__a".to_owned())));
    assert!(status(&hub, "missing").is_none());
    call_tool(&hub, "there__a").await;
}

/// S004-K061: after a reconnect there is a new process with the same tools, and calls go to it.
#[tokio::test]
async fn reconnecting_shows_tools_again() {
    let server = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    let first = server.process().await;
    within("the reconnection", Box::pin(hub.reconnect("s")))
        .await
        .unwrap();
    first.ended().await;
    tools_become(&hub, &["s__a"]).await;
    assert_eq!(state(&hub, "s"), ServerState::Connected);
    call_tool(&hub, "s__a").await;
    server.process().await.received("tools/call").await;
}

/// S004-K062, S004-K063, S004-K087: disabling hides tools, enabling shows them; both are
/// idempotent, and the connection stays open.
#[tokio::test]
async fn turning_off_and_on() {
    let server = StdioServer::new(echoing(&["a"])).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    let process = server.process().await;
    for _ in 0..2 {
        hub.toggle("s", true).unwrap();
        assert_eq!(tools(&hub), ["s__a"]);
    }
    for _ in 0..2 {
        hub.toggle("s", false).unwrap();
        assert_eq!(tools(&hub), [""; 0]);
        assert!(!status(&hub, "s").unwrap().enabled);
    }
    tool_fails(&hub, "s__a").await;
    hub.toggle("s", true).unwrap();
    assert!(status(&hub, "s").unwrap().enabled);
    assert_eq!(state(&hub, "s"), ServerState::Connected);
    assert_eq!(
        call_tool(&hub, "s__a").await["echo"]["name"],
        "a",
        "it works as before"
    );
    process.received("tools/call").await;
    server.assert_not_started_again().await;
}

/// S004-K065, S004-K096: each call reaches its own server, under the server's own name for the
/// tool.
#[tokio::test]
async fn calls_reach_their_servers() {
    let (one, other) = (
        StdioServer::new(echoing(&["search"])).await,
        StdioServer::new(echoing(&["search"])).await,
    );
    let hub = hub_of(vec![member("one", &one), member("other", &other)]).await;
    for (server, called) in [(&one, "one__search"), (&other, "other__search")] {
        let params = json!({"name": called, "arguments": {"for": called}});
        call(&hub, "tools/call", params).await.unwrap();
        let process = server.process().await;
        let received = process.received("tools/call").await;
        assert_eq!(received["params"]["name"], "search");
        assert_eq!(received["params"]["arguments"], json!({"for": called}));
        let methods = process.methods().await;
        let calls = methods.iter().filter(|method| *method == "tools/call");
        assert_eq!(calls.count(), 1);
    }
}

/// S004-K067, S004-K069: resources are listed and read, with all metadata of their server.
#[tokio::test]
async fn resources_are_listed_and_read() {
    let resource = json!({"uri": "file:///readme.md", "name": "readme", "mimeType": "text/markdown",
        "description": "About this", "size": 7});
    let contents = json!({"contents": [{"uri": "file:///readme.md", "text": "# Hello"}]});
    let mut offer = Offer::new(LEGACY).declaring("resources", json!({}));
    offer.resources = vec![resource.clone()];
    let script = Script::from(&offer).on("resources/read", [Step::Result(contents.clone())]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    resources_become(&hub, &["file:///readme.md"]).await;
    let listed = catalogue(&hub);
    let [listed] = listed.list(Section::Resources).entries() else {
        panic!("one resource was expected");
    };
    assert_eq!(listed.definition.decode::<Value>().unwrap(), resource);
    let params = json!({"uri": "file:///readme.md"});
    let read = call(&hub, "resources/read", params).await;
    assert_eq!(read, Ok(contents));
    // A server need not list every resource: the only server that lists URIs of a scheme is asked
    // for others.
    let process = server.process().await;
    process.received("resources/read").await;
    let unlisted = call(&hub, "resources/read", json!({"uri": "file:///other"})).await;
    assert!(unlisted.is_ok(), "{unlisted:?}");
    let asked = process.received("resources/read").await;
    assert_eq!(asked["params"]["uri"], "file:///other");
    let unknown = call(&hub, "resources/read", json!({"uri": "other://x"})).await;
    let expected = Fault::ResourceNotFound("other://x".to_owned());
    assert_eq!(unknown, Err(expected));
}

/// S004-K070, S004-K071, S004-K086: one member is unchanged, one removed, one changed, one added,
/// and one cannot be connected.
#[tokio::test]
async fn set_members_changes_only_members_that_differ() {
    let servers = [
        StdioServer::new(echoing(&["a"])).await,
        StdioServer::new(echoing(&["a"])).await,
        StdioServer::new(echoing(&["old"])).await,
        StdioServer::new(echoing(&["new"])).await,
        StdioServer::new(echoing(&["a"])).await,
    ];
    let [kept, removed, updated, successor, added] = &servers;
    let hub = hub_of(vec![
        member("kept", kept),
        member("removed", removed),
        member("updated", updated),
    ])
    .await;
    let (kept_process, gone, old) = (
        kept.process().await,
        removed.process().await,
        updated.process().await,
    );
    let changes = hub
        .set_members(vec![
            member("kept", kept),
            changed("updated", successor, 2),
            member("added", added),
            missing("broken"),
        ])
        .await;
    assert_eq!(changes.added, ["added", "broken"]);
    assert_eq!(changes.removed, ["removed"]);
    assert_eq!(changes.updated, ["updated"]);
    connect(&hub).await;
    gone.ended().await;
    old.ended().await;
    tools_become(&hub, &["kept__a", "updated__new", "added__a"]).await;
    call_tool(&hub, "kept__a").await;
    kept_process.received("tools/call").await;
    kept.assert_not_started_again().await;
    call_tool(&hub, "updated__new").await;
    successor.process().await.received("tools/call").await;
    assert_eq!(state(&hub, "broken"), ServerState::Failed);
    let broken = status(&hub, "broken").unwrap().status.unwrap();
    let reason = broken.reason.unwrap();
    assert!(reason.contains("no-such-mcp-server"), "{reason}");
}

/// S004-K056, S004-K073, S001-D07: the status has name, state, server information and number of
/// tools.
#[tokio::test]
async fn status_tells_how_members_are() {
    let (one, none) = (
        StdioServer::new(echoing(&["a", "b"])).await,
        StdioServer::new(&Offer::new(LEGACY)).await,
    );
    let hub = hub_of(vec![
        member("one", &one),
        missing("broken"),
        member("none", &none),
    ])
    .await;
    let told: Vec<_> = hub
        .status()
        .into_iter()
        .map(|member| {
            let state = member.status.unwrap().state;
            let identity = member.report.map(|report| report.facts.identity.name);
            (
                member.name.to_string(),
                state,
                identity,
                member.tools.entries().len(),
            )
        })
        .collect();
    let scripted = || Some("scripted".to_owned());
    assert_eq!(
        told,
        [
            ("one".to_owned(), ServerState::Connected, scripted(), 2),
            ("broken".to_owned(), ServerState::Failed, None, 0),
            ("none".to_owned(), ServerState::Connected, scripted(), 0),
        ]
    );
    hub.set_members(vec![member("none", &none)]).await;
    assert!(status(&hub, "one").is_none());
}

/// S004-K075: after closing, neither tools nor processes are left.
#[tokio::test]
async fn closing_ends_all() {
    let (one, other) = (
        StdioServer::new(echoing(&["a"])).await,
        StdioServer::new(echoing(&["a"])).await,
    );
    let hub = hub_of(vec![member("one", &one), member("other", &other)]).await;
    let processes = [one.process().await, other.process().await];
    within("the end", hub.close()).await;
    for process in processes {
        process.ended().await;
    }
    assert_eq!(tools(&hub), [""; 0]);
    assert!(hub.status().is_empty());
}

/// S004-K076, S004-D04: concurrent calls, status queries, member changes and toggles do not
/// interfere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_may_happen_at_once() {
    let steady = StdioServer::new(echoing(&["a"])).await;
    let other = StdioServer::new(echoing(&["b"])).await;
    let hub = hub_of(vec![member("steady", &steady), member("other", &other)]).await;
    let calls = async {
        for number in 0..100 {
            let params = json!({"name": "steady__a", "arguments": {"number": number}});
            let result = call(&hub, "tools/call", params).await.unwrap();
            assert_eq!(result["echo"]["arguments"]["number"], number);
        }
    };
    let looks = async {
        for _ in 0..100 {
            assert!(tools(&hub).contains(&"steady__a".to_owned()));
            assert_eq!(state(&hub, "steady"), ServerState::Connected);
            tokio::task::yield_now().await;
        }
    };
    let switches = async {
        for number in 0..100 {
            hub.toggle("other", number % 2 == 1).unwrap();
            tokio::task::yield_now().await;
        }
    };
    let changes = async {
        for _ in 0..20 {
            let members = vec![member("steady", &steady), member("other", &other)];
            hub.set_members(members).await;
        }
    };
    within("all of it", async {
        tokio::join!(calls, looks, switches, changes)
    })
    .await;
    assert_eq!(tools(&hub), ["steady__a", "other__b"]);
    for server in [&steady, &other] {
        server.process().await;
        server.assert_not_started_again().await;
    }
}

/// S004-K026, S004-K077, S004-K081, S004-K083, S004-K104: annotations and schemas are shown as the
/// server gave them, and nothing is added.
#[tokio::test]
async fn definitions_are_shown_as_they_are() {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string","minLength":1.0}},"required":["query"]}"#;
    let schema: Value = serde_json::from_str(schema).unwrap();
    let given = [
        json!({"name": "safe", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "destructiveHint": false}}),
        json!({"name": "dangerous", "inputSchema": schema,
            "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}}),
        tool("plain"),
    ];
    let server = StdioServer::new(&Offer::tools(LEGACY, given.clone())).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    for mut expected in given {
        let name = format!("s__{}", expected["name"].as_str().unwrap());
        expected["name"] = json!(name);
        let shown: Value = definition_of(&hub, &name).decode().unwrap();
        assert_eq!(shown, expected);
    }
}

/// S004-K078, S004-K080: a list change replaces the old tools by the new ones, and other
/// notifications do not disturb calls.
#[tokio::test]
async fn changes_of_servers_are_shown() {
    let listed = |name| Step::Result(json!({"tools": [tool(name)]}));
    let script = echoing(&[])
        .on("tools/list", [listed("old")])
        .then("tools/list", [listed("new")]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    assert_eq!(tools(&hub), ["s__old"]);
    let process = server.process().await;
    let log = json!({"level": "info", "data": "hello"});
    let notifications = [
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}),
        json!({"jsonrpc": "2.0", "method": "notifications/vendor/odd"}),
    ];
    for notification in &notifications {
        process.say(notification.clone()).await;
        assert_eq!(call_tool(&hub, "s__old").await["echo"]["name"], "old");
    }
    process
        .say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        .await;
    tools_become(&hub, &["s__new"]).await;
    let gone = try_tool(&hub, "s__old").await;
    assert_eq!(gone, Err(Fault::UnknownTool("s__old".to_owned())));
    call_tool(&hub, "s__new").await;
}

/// S004-K079: a lost connection is reopened if configured, and calls use the new one; an invalid
/// response does not end a connection.
#[tokio::test]
async fn a_lost_server_is_connected_again() {
    let script = echoing(&["a"])
        .on("tools/call", [Step::Result(json!("nonsense"))])
        .then("tools/call", [Step::Echo]);
    let server = StdioServer::new(script).await;
    let hub = empty_hub();
    hub.set_members(vec![member("s", &server)]).await;
    hub.connect_in_background();
    tools_become(&hub, &["s__a"]).await;
    let first = server.process().await;
    drop(try_tool(&hub, "s__a").await);
    first.received("tools/call").await;
    call_tool(&hub, "s__a").await;
    first.received("tools/call").await;
    server.assert_not_started_again().await;

    first.perform(Step::Exit(9)).await;
    first.ended().await;
    let second = server.process().await;
    second.received("tools/list").await;
    tools_become(&hub, &["s__a"]).await;
    // A call that the first connection did not complete is not sent again.
    assert!(!second.methods().await.contains(&"tools/call".to_owned()));
    drop(try_tool(&hub, "s__a").await);
    second.received("tools/call").await;
}

/// S004-K082: a connected server answers a ping, a disconnected one does not.
#[tokio::test]
async fn a_ping_reaches_a_connected_server_only() {
    let script = echoing(&["a"]).on("ping", [Step::Result(json!({}))]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    assert_eq!(call(&hub, "ping", json!({})).await, Ok(json!({})));
    server.process().await.received("ping").await;
    hub.close().await;
    let refused = call(&hub, "ping", json!({})).await;
    assert_eq!(refused, Err(Fault::MethodNotFound("ping".to_owned())));
    let broken = hub_of(vec![missing("s")]).await;
    let fault = call(&broken, "ping", json!({})).await.unwrap_err();
    assert!(fault.to_string().contains("no-such-mcp-server"), "{fault}");
}

/// S004-K022: resources of all members, in their order.
#[tokio::test]
async fn resources_of_all_members_are_one_list() {
    let mut servers = Vec::new();
    for uri in ["a://1", "b://2"] {
        let mut offer = Offer::new(LEGACY).declaring("resources", json!({}));
        offer.resources = vec![json!({"uri": uri, "name": "r"})];
        servers.push(StdioServer::new(&offer).await);
    }
    let hub = hub_of(vec![member("a", &servers[0]), member("b", &servers[1])]).await;
    resources_become(&hub, &["a://1", "b://2"]).await;
}
