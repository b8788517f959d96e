//! The hub as a library: servers by their names.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of a test end with its runtime"
)]

use std::sync::Arc;

use plexus_mcp_client::{Affinity, Definition, Era, HttpTarget, Program, ServerState};
use plexus_mcp_core::{
    Boxed, Context, ElicitParams, ElicitResult, Event, Fault, Implementation, LocalService,
    NoArguments, Progress, QuestionHandler, Raw, Resource, ResourceContents, Tool, ToolResult,
};
use plexus_mcp_hub::Hub;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use plexus_mcp_wire::{Limits, RpcError};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// A server over HTTP with tools that return its name, report progress, and ask a question.
async fn server(name: &'static str) -> Definition {
    let service = LocalService::builder(name, "1.2.3")
        .tool(
            Tool::new("who"),
            move |_: NoArguments, _: Context| async move { name },
        )
        .tool(Tool::new("count"), async |_: NoArguments, ctx: Context| {
            for step in [1.0, 2.0] {
                ctx.progress(step, Some(2.0), "counting").await;
            }
            "counted"
        })
        .tool(Tool::new("meet"), meet)
        .resource(
            Resource::new("about:it", "about"),
            move |uri: String, _: Context| async move { ResourceContents::text(uri, name) },
        )
        .build()
        .unwrap();
    serve(service).await
}

/// The service as a server over HTTP.
async fn serve(service: LocalService) -> Definition {
    let edge = Edge::new(Arc::new(service), Options::default()).unwrap();
    let address = ["127.0.0.1:0".parse().unwrap()];
    let server = HttpServer::bind(edge, &address, HttpOptions::default())
        .await
        .unwrap();
    let url = format!(
        "http://{}{}",
        server.addresses().first().unwrap(),
        server.path()
    );
    tokio::spawn(server.run());
    HttpTarget::new(url.parse().unwrap()).into()
}

async fn meet(_: NoArguments, ctx: Context) -> ToolResult<String> {
    Ok(match ctx.fill_in::<Name>("Who are you?").await? {
        Some(Name { name }) => format!("Hello, {name}!"),
        None => "No name.".to_owned(),
    })
}

fn hub() -> Hub {
    Hub::new(Implementation::new("test", "1.0.0"))
}

fn missing() -> Definition {
    Program::new("/nonexistent/server").into()
}

/// S004-13, S004-53: the servers that differ are added, removed or updated, and reported, with
/// the connections that failed.
#[tokio::test]
async fn set_servers_adds_removes_updates_and_tells_what_failed() {
    let hub = hub();
    let (a, b) = (server("a").await, server("b").await);
    let changes = hub
        .set_servers([("a", a.clone()), ("gone", missing())])
        .await;
    assert_eq!(changes.added, ["a", "gone"]);
    assert!(
        changes.errors["gone"].contains("/nonexistent/server"),
        "{changes:?}"
    );
    assert_eq!(changes.errors.len(), 1);

    let changes = hub.set_servers([("a", a.clone()), ("b", b.clone())]).await;
    assert_eq!(
        (changes.added, changes.removed),
        (vec!["b".to_owned()], vec!["gone".to_owned()])
    );
    assert!(changes.updated.is_empty() && changes.errors.is_empty());

    let changes = hub.set_servers([("a", b), ("b", a)]).await;
    assert_eq!(changes.updated, ["a", "b"]);
    let who = hub.call_tool("a", "who", ()).await.unwrap();
    assert_eq!(who.joined_text(), "b");
}

/// The client of one server goes on with the new definition, and says when the server is gone.
#[tokio::test]
async fn a_server_client_outlives_a_change_of_its_server() {
    let hub = hub();
    hub.set_servers([("s", server("before").await)]).await;
    let client = hub.server_client("s").unwrap();
    hub.set_servers([("s", server("after").await)]).await;
    let who = client.call_tool("who", ()).await.unwrap();
    assert_eq!(who.joined_text(), "after");
    let names: Vec<_> = client.list_tools().await.unwrap();
    assert_eq!(names.len(), 3);
    hub.set_servers([("other", server("other").await)]).await;
    let gone = client.call_tool("who", ()).await.unwrap_err();
    assert!(gone.to_string().contains("\"s\""), "{gone}");
}

/// S004-53: a change of any compared field reconnects the server.
#[tokio::test]
async fn set_servers_reconnects_a_server_whose_client_info_changed() {
    let hub = hub();
    let mut definition = server("a").await;
    hub.set_servers([("a", definition.clone())]).await;
    let changes = hub.set_servers([("a", definition.clone())]).await;
    assert!(changes.is_nothing(), "{changes:?}");
    definition.client_info = Implementation::new("other", "1.0.0");
    let changes = hub.set_servers([("a", definition)]).await;
    assert_eq!(changes.updated, ["a"]);
}

/// The capabilities in a definition are those that the server is told.
#[tokio::test]
async fn set_servers_keeps_the_capabilities_of_a_definition() {
    let service = LocalService::builder("a", "1.0.0")
        .tool(
            Tool::new("capabilities"),
            async |_: NoArguments, ctx: Context| {
                ctx.peer().capabilities.sampling.is_some().to_string()
            },
        )
        .build()
        .unwrap();
    let mut definition = serve(service).await;
    definition.era = Some(Era::Handshake);
    definition.affinity = Affinity::Shared;
    let hub = hub();
    for (capabilities, expected) in [
        (ClientCapabilities::everything(), "true"),
        (ClientCapabilities::none(), "false"),
    ] {
        definition.capabilities = capabilities;
        hub.set_servers([("a", definition.clone())]).await;
        let result = hub.call_tool("a", "capabilities", ()).await.unwrap();
        assert_eq!(result.joined_text(), expected);
    }
}

/// S004-54: name, state, server info, error, tools and scope, of all servers and of one.
#[tokio::test]
async fn status_tells_everything_about_a_server() {
    let hub = hub();
    hub.set_servers([("a", server("a").await), ("gone", missing())])
        .await;
    let names: Vec<_> = hub.status().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["a".into(), "gone".into()]);
    let a = hub.server_status("a").unwrap();
    assert_eq!(
        (a.state(), a.error(), a.scope),
        (ServerState::Connected, None, None)
    );
    assert_eq!(a.server_info().unwrap().version, "1.2.3");
    let tools: Vec<_> = a.tools.entries().iter().map(|tool| &*tool.key).collect();
    assert_eq!(tools, ["who", "count", "meet"]);
    let gone = hub.server_status("gone").unwrap();
    assert_eq!(gone.state(), ServerState::Failed);
    assert!(gone.error().unwrap().contains("/nonexistent/server"));
    assert!(gone.server_info().is_none());
}

/// S004-55: tools and resources by the server's own names, routed to that server.
#[tokio::test]
async fn calls_and_resources_are_routed_by_server_name() {
    let hub = hub();
    hub.set_servers([("a", server("a").await), ("b", server("b").await)])
        .await;
    for name in ["a", "b"] {
        let who = hub.call_tool(name, "who", json!({})).await.unwrap();
        assert_eq!(who.joined_text(), name);
        assert_eq!(who.flat()[0].kind, "text");
        let read = hub.read_resource(name, "about:it").await.unwrap();
        assert_eq!(read.contents, [ResourceContents::text("about:it", name)]);
        let resources = hub.list_resources(Some(name)).await.unwrap();
        assert_eq!(resources.len(), 1);
        assert_eq!(resources[0].uri, "about:it");
    }
    assert_eq!(hub.list_resources(None).await.unwrap().len(), 2);
    let tools = hub.client().list_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "b__who"), "{tools:?}");
}

/// An unknown server is an error of every operation.
#[tokio::test]
async fn an_unknown_server_is_an_error() {
    let hub = hub();
    let faults = [
        hub.connect("x").await.unwrap_err(),
        hub.disconnect("x").await.unwrap_err(),
        hub.reconnect("x").await.unwrap_err(),
        hub.toggle("x", true).unwrap_err(),
        hub.server_status("x").unwrap_err(),
        hub.call_tool("x", "who", ()).await.unwrap_err(),
        hub.list_resources(Some("x")).await.unwrap_err(),
        hub.read_resource("x", "about:it").await.unwrap_err(),
    ];
    for fault in faults {
        assert!(
            matches!(&fault, Fault::InvalidParams(text) if text.contains("\"x\"")),
            "{fault:?}"
        );
    }
}

/// S004-14, S004-51, S004-52: tools come and go with connections and switches.
#[tokio::test]
async fn tools_follow_connect_disconnect_and_toggle() {
    let hub = hub();
    hub.set_servers([("a", server("a").await)]).await;
    let count = async || hub.client().list_tools().await.unwrap().len();
    assert_eq!(count().await, 3);
    hub.disconnect("a").await.unwrap();
    assert_eq!(count().await, 0);
    hub.reconnect("a").await.unwrap();
    assert_eq!(count().await, 3);
    hub.toggle("a", false).unwrap();
    assert_eq!(count().await, 0);
    assert!(hub.call_tool("a", "who", ()).await.is_err());
    hub.toggle("a", true).unwrap();
    assert_eq!(count().await, 3);
    hub.close().await;
    assert!(hub.status().is_empty());
}

/// Progress is streamed, and the result follows.
#[tokio::test]
async fn progress_of_a_call_is_streamed() {
    let hub = hub();
    hub.set_servers([("a", server("a").await)]).await;
    let client = hub.client();
    let mut call = client.call_tool("a__count", ()).stream();
    let mut steps = Vec::new();
    while let Some(event) = call.next().await {
        let Event::Progress(Progress { progress, .. }) = event else {
            panic!("{event:?}");
        };
        steps.push(progress);
    }
    // Reports that come faster than they are read are replaced by the latest.
    assert_eq!(steps.last(), Some(&2.0));
    assert!(steps.is_sorted());
    assert_eq!(call.result().await.unwrap().joined_text(), "counted");
}

/// Fills in every form with one name.
struct Answering(&'static str);

impl QuestionHandler for Answering {
    fn capabilities(&self) -> ClientCapabilities {
        let form = Raw::parse(r#"{"elicitation":{"form":{}}}"#.into(), &Limits::default());
        ClientCapabilities::from_raw(&form.unwrap()).unwrap()
    }

    fn elicit(&self, params: ElicitParams) -> Boxed<Result<ElicitResult, RpcError>> {
        assert!(matches!(params, ElicitParams::Form(_)));
        let content = Raw::encode(&json!({"name": self.0})).unwrap();
        Box::pin(std::future::ready(Ok(ElicitResult::accept(content))))
    }
}

/// The handler that the caller passed in answers; without one, the server learns that it cannot ask.
#[tokio::test]
async fn questions_are_answered_by_the_handler() {
    let hub = hub();
    hub.set_servers([("a", server("a").await)]).await;
    let client = hub.client().with_handler(Answering("Ada"));
    let met = client.call_tool("a__meet", ()).await.unwrap();
    assert_eq!(met.joined_text(), "Hello, Ada!");
    let refused = hub.call_tool("a", "meet", ()).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("client capability elicitation"),
        "{refused:?}"
    );
}

/// Arguments must be a JSON object; anything else is refused before it is sent.
#[tokio::test]
async fn arguments_that_are_no_object_are_refused() {
    let hub = hub();
    hub.set_servers([("a", server("a").await)]).await;
    let refused = hub.call_tool("a", "who", [1, 2]).await.unwrap_err();
    assert!(
        matches!(&refused, Fault::InvalidParams(text) if text.contains("object")),
        "{refused:?}"
    );
}

/// The Rust code of docs/library.md is part of an example or a doctest, so it compiles.
#[test]
fn the_page_about_the_library_shows_code_that_compiles() {
    const PAGE: &str = include_str!("../../../docs/library.md");
    const SOURCES: [&str; 4] = [
        include_str!("../../client/src/lib.rs"),
        include_str!("../../client/examples/caller.rs"),
        include_str!("../src/lib.rs"),
        include_str!("../examples/joined.rs"),
    ];
    // Without indentation, and without the lines that a doctest hides.
    let plain = |text: &str| -> String {
        let lines = text.lines().map(str::trim);
        let shown = lines.filter(|line| !line.starts_with("//! # "));
        let plain = shown.map(|line| line.trim_start_matches("//!").trim());
        plain.collect::<Vec<_>>().join("\n")
    };
    let sources = SOURCES.map(plain);
    let blocks: Vec<_> = PAGE.split("```rust\n").skip(1).collect();
    assert!(blocks.len() > 5, "{}", blocks.len());
    for block in blocks {
        let (code, _) = block.split_once("```").unwrap();
        let shown = plain(code);
        let is_compiled = sources.iter().any(|source| source.contains(&shown));
        assert!(is_compiled, "not compiled:\n{code}");
    }
}
