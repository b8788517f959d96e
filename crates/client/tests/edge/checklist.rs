//! Items of `docs/checklist.md` that the other files here do not cover.

use plexus_mcp_core::Section;
use plexus_mcp_protocol::messages::{ListCapability, ResourcesCapability, ServerCapabilities};
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    LEGACY, STATELESS, call, call_tool, catalogue, connected, http, stdio, tools, value,
};

/// S004-K010, S004-K011, S004-K012: the catalogue has exactly the declared capabilities.
#[tokio::test]
async fn capabilities_are_those_that_were_declared() {
    for revision in [LEGACY, STATELESS] {
        let full = Offer::new(revision)
            .declaring("tools", json!({"listChanged": true}))
            .declaring("resources", json!({"subscribe": true, "listChanged": true}))
            .declaring("prompts", json!({"listChanged": false}));
        let facts = facts_of(&full).await;
        let list = |list_changed| Some(ListCapability { list_changed });
        assert_eq!(facts.identity.name, "scripted");
        assert_eq!(facts.capabilities.tools, list(true));
        let resources = ResourcesCapability {
            subscribe: true,
            list_changed: true,
        };
        assert_eq!(facts.capabilities.resources, Some(resources));
        assert_eq!(facts.capabilities.prompts, list(false));

        let tools_only = Offer::new(revision).declaring("tools", json!({}));
        let facts = facts_of(&tools_only).await;
        assert_eq!(facts.capabilities.tools, list(false));
        assert_eq!(facts.capabilities.resources, None);
        assert_eq!(facts.capabilities.prompts, None);

        let facts = facts_of(&Offer::new(revision)).await;
        assert_eq!(facts.capabilities, ServerCapabilities::default());
    }
}

async fn facts_of(offer: &Offer) -> plexus_mcp_client::ServerFacts {
    let server = StdioServer::new(offer).await;
    connected(stdio(&server)).await.report().unwrap().facts
}

/// S004-K024, S004-K029, S004-K031, S004-K036, S004-K037, S004-K048, S004-K052: every request has the
/// protocol's name for it and an id of its own, and notifications have none and are not waited for.
#[tokio::test]
async fn a_conversation_over_stdio() {
    let mut offer = Offer::tools(LEGACY, [tool("echo")]).declaring("resources", json!({}));
    offer.resources = vec![json!({"uri": "a://b", "name": "r"})];
    let script = Script::from(&offer)
        .on("tools/call", [Step::Echo])
        .on("resources/read", [Step::Echo]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(tools(&upstream), ["echo"]);
    let called = call_tool(&upstream, "echo").await;
    assert_eq!(called["echo"]["name"], "echo");
    let read = call(&upstream, "resources/read", &json!({"uri": "a://b"}));
    let read = within("the contents", read).await.unwrap();
    assert_eq!(value(&read)["echo"]["uri"], "a://b");

    let process = server.process().await;
    let mut messages = process.all().await;
    // Lists are asked for in any order.
    messages[3..6].sort_by_key(|message| message["method"].to_string());
    let methods: Vec<_> = messages
        .iter()
        .map(|message| message["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        methods,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "resources/list",
            "resources/templates/list",
            "tools/list",
            "tools/call",
            "resources/read",
        ]
    );
    let mut ids: Vec<_> = messages
        .iter()
        .filter_map(|message| message.get("id")?.as_i64())
        .collect();
    assert_eq!(ids.len(), 7, "all but the notification");
    assert!(messages[2].get("id").is_none());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7, "each has its own");
}

/// S004-K018, S004-K022: all members of a listed resource are kept.
#[tokio::test]
async fn resources_are_listed_as_they_are() {
    let given = json!({"uri": "file:///project/readme.md", "name": "readme",
        "description": "Project readme", "mimeType": "text/markdown", "size": 12, "vendor/x": [1]});
    for revision in [LEGACY, STATELESS] {
        let mut offer = Offer::new(revision).declaring("resources", json!({}));
        offer.resources = vec![given.clone(), json!({"uri": "file:///a", "name": "a"})];
        let server = StdioServer::new(&offer).await;
        let upstream = connected(stdio(&server)).await;
        let catalogue = catalogue(&upstream);
        let entries = catalogue.list(Section::Resources).entries();
        assert_eq!(entries.len(), 2);
        assert_eq!(value(&entries[0].definition), given);
    }
}

/// S004-K019, S004-K020, S004-K023, S004-K054: text and bytes are read as the server gives them.
#[tokio::test]
async fn resources_are_read_as_they_are() {
    let contents = json!({"contents": [
        {"uri": "file:///test", "mimeType": "text/plain", "text": "content here"},
        {"uri": "file:///image.png", "mimeType": "image/png", "blob": "aGVsbG8="},
    ]});
    for revision in [LEGACY, STATELESS] {
        let script = Script::from(&Offer::new(revision).declaring("resources", json!({})));
        let script = script.on("resources/read", [Step::Result(contents.clone())]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        let read = call(&upstream, "resources/read", &json!({"uri": "file:///test"}));
        let read = within("the contents", read).await.unwrap();
        assert_eq!(value(&read), contents);
    }
}

/// S004-K046: large answers arrive whole, in both forms.
#[tokio::test]
async fn large_answers_arrive_whole() {
    const LENGTH: usize = 4 * 1024 * 1024;
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| {
        let large = || request.result(&json!({"content": [], "large": "x".repeat(LENGTH)}));
        match request.body["params"]["name"].as_str() {
            Some("json") => Reply::json(&large()),
            Some("stream") => Reply::events(&[large()]),
            _ => request.reply_from(&offer),
        }
    })
    .await;
    let upstream = connected(http(&server)).await;
    for form in ["json", "stream"] {
        let result = call_tool(&upstream, form).await;
        let arrived = result["large"].as_str().map(str::len);
        assert_eq!(arrived, Some(LENGTH), "{form}");
    }
}

/// S004-K047: on a stream, a response is matched by its id, not by its position.
#[tokio::test]
async fn responses_on_a_stream_are_matched_by_id() {
    for revision in [LEGACY, STATELESS] {
        let offer = Offer::tools(revision, [tool("a")]);
        let server = HttpServer::start(move |request| match request.mcp() {
            "tools/call" => {
                let mut others: Vec<Value> = [
                    json!(999_999),
                    request.body["id"].to_string().into(),
                ]
                .into_iter()
                .map(|id| json!({"jsonrpc": "2.0", "id": id, "result": {"whose": "another's"}}))
                .collect();
                others.push(request.result(&json!({"content": [], "whose": "ours"})));
                Reply::events(&others)
            }
            _ => request.reply_from(&offer),
        })
        .await;
        let upstream = connected(http(&server)).await;
        assert_eq!(call_tool(&upstream, "a").await["whose"], "ours");
        assert_eq!(upstream.report().unwrap().violations.unknown_answers, 2);
    }
}

/// S004-K053: calls of a disconnected server fail with the reason.
#[tokio::test]
async fn without_a_connection_there_is_no_call() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = plexus_mcp_client::Upstream::new(stdio(&server));
    upstream.disconnect().await;
    for method in ["tools/call", "resources/read"] {
        let outcome = call(&upstream, method, &json!({"name": "a", "uri": "a://b"}));
        let fault = within("the refusal", outcome).await.unwrap_err();
        assert!(fault.to_string().contains("disconnected"), "{fault}");
    }
    server.assert_not_started_again().await;
}
