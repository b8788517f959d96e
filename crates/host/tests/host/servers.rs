//! Tools of servers: their names, registration, results and management tools.

use std::sync::Arc;

use plexus_mcp_client::{Definition, HttpTarget};
use plexus_mcp_config::{self as config, Action, Rule};
use plexus_mcp_core::{
    CallToolResult, Context, Implementation, LocalService, NoArguments, QuestionHandler, Resource,
    ResourceContents, Tool,
};
use plexus_mcp_host::observer::{AgentId, NoObserver};
use plexus_mcp_host::permission::{Mode, PermissionAnswer, Prompter};
use plexus_mcp_host::servers::Servers;
use plexus_mcp_host::{Registry, ToolContext, ToolOutput};
use plexus_mcp_hub::Hub;
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use plexus_mcp_wire::Raw;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::{Answers, permissive, registry};

struct Silent;

impl QuestionHandler for Silent {}

/// A server over HTTP with the tools `read.file`, `fail` and `crash`, and one resource.
async fn server() -> Definition {
    let service = LocalService::builder("files", "1.0.0")
        .instructions("Ask before you delete.")
        .tool(
            Tool::new("read.file"),
            async |_: NoArguments, _: Context| "the text",
        )
        .tool(Tool::new("fail"), async |_: NoArguments, _: Context| {
            CallToolResult::error("No such file: x")
        })
        .resource(
            Resource::new("file:///a", "a"),
            async |uri: String, _: Context| {
                Ok::<_, plexus_mcp_core::Fault>(ResourceContents::text(uri, "contents"))
            },
        )
        .build()
        .unwrap();
    let edge = Edge::new(Arc::new(service), Options::default()).unwrap();
    let any = ["127.0.0.1:0".parse().unwrap()];
    let server = HttpServer::bind(edge, &any, HttpOptions::default())
        .await
        .unwrap();
    let url = format!("http://{}{}", server.addresses()[0], server.path());
    TaskTracker::new().spawn(server.run());
    HttpTarget::new(url.parse().unwrap()).into()
}

fn identity() -> Implementation {
    Implementation::new("test", "1.0.0")
}

async fn connected(registry: &Arc<Registry>, definitions: Vec<(&str, Definition)>) -> Arc<Servers> {
    let hub = Hub::new(identity());
    hub.set_servers(definitions).await;
    let servers = Servers::new(hub, registry, Silent, &identity(), []);
    servers.settle().await;
    servers.register_tools();
    let servers = Arc::new(servers);
    servers.register_management_tools().unwrap();
    servers
}

fn names(registry: &Registry) -> Vec<String> {
    let definitions = registry.definitions().into_iter();
    definitions.map(|definition| definition.name).collect()
}

async fn call(registry: &Registry, tool: &str, input: &Value) -> ToolOutput {
    let context = ToolContext::new(
        AgentId::main(),
        "1",
        Arc::new(NoObserver),
        CancellationToken::new(),
    );
    registry
        .execute(context, tool, Raw::encode(input).unwrap())
        .await
}

/// S001-02, C11, C58: tools of servers have their names, and the tools for resources come after them.
#[tokio::test]
async fn tools_of_servers_are_registered() {
    let registry = permissive();
    let servers = connected(&registry, vec![("my files", server().await)]).await;
    assert_eq!(
        names(&registry),
        [
            "mcp__my_files__read_file",
            "mcp__my_files__fail",
            "ListMcpResources",
            "ReadMcpResource",
            "SubscribeMcpResource",
            "UnsubscribeMcpResource",
            "SubscribePolling",
            "UnsubscribePolling",
        ]
    );
    let read = call(&registry, "mcp__my_files__read_file", &json!({})).await;
    assert_eq!((read.text.as_str(), read.is_error), ("the text", false));
    let failed = call(&registry, "mcp__my_files__fail", &json!({})).await;
    assert_eq!(
        (failed.text.as_str(), failed.is_error),
        ("No such file: x", true)
    );
    let listed = call(&registry, "ListMcpResources", &json!({})).await;
    assert!(listed.text.contains("file:///a"), "{listed:?}");
    let prompt = servers.for_prompt();
    assert_eq!(
        prompt[0].instructions.as_deref(),
        Some("Ask before you delete.")
    );
}

/// S004-06: without servers, the two tools for resources say so.
#[tokio::test]
async fn without_servers_two_tools_are_left() {
    let registry = permissive();
    let _servers = connected(&registry, vec![]).await;
    assert_eq!(names(&registry), ["ListMcpResources", "ReadMcpResource"]);
    for (tool, input) in [
        ("ListMcpResources", json!({})),
        (
            "ReadMcpResource",
            json!({"server": "x", "uri": "file:///a"}),
        ),
    ] {
        let output = call(&registry, tool, &input).await;
        assert_eq!(output.text, "No MCP servers are configured.");
    }
}

/// C39: the tools of a server that is disabled or removed vanish, and come back.
#[tokio::test]
async fn tools_follow_their_servers() {
    let registry = permissive();
    let servers = connected(&registry, vec![("files", server().await)]).await;
    let has_tools = || {
        names(&registry)
            .iter()
            .any(|name| name.starts_with("mcp__"))
    };
    assert!(has_tools());
    servers.hub().toggle("files", false).unwrap();
    servers.register_tools();
    assert!(!has_tools());
    let gone = call(&registry, "mcp__files__fail", &json!({})).await;
    assert!(gone.is_error && gone.text.contains("no longer"), "{gone:?}");
    servers.hub().toggle("files", true).unwrap();
    servers.register_tools();
    assert!(has_tools());
}

/// S001-58, C27: managing resources needs no permission, but polling a tool needs the tool's.
#[tokio::test]
async fn polling_a_tool_needs_its_permission() {
    let user = Answers::always(Some(PermissionAnswer::No(None)));
    let prompter = Arc::clone(&user) as Arc<dyn Prompter>;
    let registry = registry(&config::Policy::default(), Mode::Default, Some(prompter));
    let _servers = connected(&registry, vec![("files", server().await)]).await;
    let read = json!({"server": "files", "uri": "file:///a"});
    for (tool, input) in [
        ("ListMcpResources", json!({})),
        ("ReadMcpResource", read.clone()),
        ("SubscribeMcpResource", read),
        (
            "SubscribePolling",
            json!({"type": "resource", "server": "files", "uri": "file:///a", "intervalMs": 1000}),
        ),
    ] {
        let output = call(&registry, tool, &input).await;
        assert!(!output.is_error, "{tool}: {output:?}");
    }
    assert!(user.questions().is_empty());
    let poll =
        json!({"type": "tool", "server": "files", "toolName": "read.file", "intervalMs": 1000});
    let output = call(&registry, "SubscribePolling", &poll).await;
    assert!(output.is_error, "{output:?}");
    let question = &user.questions()[0];
    assert_eq!(question.subject.tool, "mcp__files__read_file");
}

/// However a call names the tool to poll, it needs permission; a rule that denies polling holds.
#[tokio::test]
async fn polling_cannot_get_around_permissions() {
    let polls = [
        json!({"type": "tool", "server_name": "files", "toolName": "fail", "intervalMs": 1000}),
        json!({"type": "tool", "server": "files", "tool_name": "fail", "intervalMs": 1000}),
        json!({"type": "tool", "server": "files", "toolName": "unknown", "intervalMs": 1000}),
        json!({"server": "files", "toolName": "fail", "intervalMs": 1000}),
        json!({"type": 1, "server": "files", "toolName": "fail"}),
    ];
    for mode in [Mode::Plan, Mode::DontAsk, Mode::Default] {
        let registry = registry(&config::Policy::default(), mode, None);
        let _servers = connected(&registry, vec![("files", server().await)]).await;
        for poll in &polls {
            let output = call(&registry, "SubscribePolling", poll).await;
            assert!(output.is_refused, "{mode}: {poll}: {output:?}");
        }
    }
    let mut policy = config::Policy::default();
    policy.rules = vec![Rule::new("SubscribePolling", Action::Deny, "settings.json")];
    let registry = registry(&policy, Mode::BypassPermissions, None);
    let _servers = connected(&registry, vec![("files", server().await)]).await;
    let output = call(&registry, "SubscribePolling", &polls[1]).await;
    assert!(
        output.is_refused && output.text.contains("denied by"),
        "{output:?}"
    );
}

/// A rule matches the name that the model sees, also where it was shortened.
#[tokio::test]
async fn rules_match_shortened_names() {
    let long = "a_server_with_a_name_that_is_as_long_as_a_name_may_be_here";
    let registry = permissive();
    let _servers = connected(&registry, vec![(long, server().await)]).await;
    let shown = names(&registry).remove(0);
    assert!(shown.len() <= 64 && !shown.contains("read_file"), "{shown}");
    let mut policy = config::Policy::default();
    policy.rules = vec![Rule::new(shown.as_str(), Action::Deny, "settings.json")];
    let registry = crate::support::registry(&policy, Mode::BypassPermissions, None);
    let _servers = connected(&registry, vec![(long, server().await)]).await;
    let output = call(&registry, &shown, &json!({})).await;
    assert!(output.is_refused, "{output:?}");
}

/// Rules name tools of servers as the model sees them, or by the other names that the gateway knows.
#[tokio::test]
async fn rules_match_tools_of_servers() {
    for glob in [
        "mcp__files__*",
        "mcp__*",
        "files__read_file",
        "files.read.file",
    ] {
        let mut policy = config::Policy::default();
        policy.rules = vec![Rule::new(glob, Action::Allow, "settings.json")];
        let registry = registry(&policy, Mode::DontAsk, None);
        let _servers = connected(&registry, vec![("files", server().await)]).await;
        let output = call(&registry, "mcp__files__read_file", &json!({})).await;
        assert!(!output.is_error, "{glob}: {output:?}");
    }
}
