//! A client made with `rmcp`, the official Rust SDK, uses every feature of the fixture server: in
//! every handshake revision and in the stateless one, over stdio and HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]
#![expect(
    deprecated,
    reason = "the SDK deprecates what 2026-07-28 does; clients still use it"
)]

mod peer;

use plexus_testkit::{ListeningServer, within};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock,
    GetPromptRequestParams, LoggingLevel, ProtocolVersion, ReadResourceRequestParams,
    RequestMetaObject, ServerNotification, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Value, json};

use peer::{Heard, Inbox, Peer};

type Client = RunningService<RoleClient, Peer>;

const WATCHED: &str = "test://watched-resource";

macro_rules! walks {
    ($($stdio:ident $http:ident $version:ident,)*) => {
        $(
            #[tokio::test]
            async fn $stdio() {
                let version = ProtocolVersion::$version;
                let (peer, inbox) = Peer::new(version.clone());
                let transport = TokioChildProcess::new(server_on_a_pipe()).unwrap();
                let handshake = peer.serve_with_lifecycle(transport, lifecycle(&version));
                let client = within("the handshake", Box::pin(handshake)).await.unwrap();
                walk(client, version, inbox).await;
            }

            #[tokio::test]
            async fn $http() {
                let version = ProtocolVersion::$version;
                let (peer, inbox) = Peer::new(version.clone());
                let server = ListeningServer::start(server(), &["--http", "127.0.0.1:0"]).await;
                let transport = StreamableHttpClientTransport::from_uri(server.url());
                let handshake = peer.serve_with_lifecycle(transport, lifecycle(&version));
                let client = within("the handshake", Box::pin(handshake)).await.unwrap();
                walk(client, version, inbox).await;
            }
        )*
    };
}

walks! {
    stdio_2024_11_05 http_2024_11_05 V_2024_11_05,
    stdio_2025_03_26 http_2025_03_26 V_2025_03_26,
    stdio_2025_06_18 http_2025_06_18 V_2025_06_18,
    stdio_2025_11_25 http_2025_11_25 V_2025_11_25,
    stdio_2026_07_28 http_2026_07_28 V_2026_07_28,
}

/// A client without a configured era detects the newest one.
#[tokio::test]
async fn the_newest_era_is_found() {
    let (peer, _inbox) = Peer::new(ProtocolVersion::V_2025_11_25);
    let transport = TokioChildProcess::new(server_on_a_pipe()).unwrap();
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let probe = Box::pin(peer.serve_with_lifecycle(transport, auto));
    let client = within("the probe", probe).await.unwrap();
    let found = client.peer_info().unwrap().protocol_version.clone();
    assert_eq!(found, ProtocolVersion::V_2026_07_28);
    client.cancel().await.unwrap();
}

async fn walk(client: Client, version: ProtocolVersion, mut inbox: Inbox) {
    let is_stateless = version == ProtocolVersion::V_2026_07_28;
    assert_eq!(client.peer_info().unwrap().protocol_version, version);
    lists(&client).await;
    calls(&client).await;
    reports_progress(&client, &mut inbox).await;
    cancels(&client, &mut inbox).await;
    logs(&client, &mut inbox, is_stateless).await;
    if is_stateless {
        listens(&client).await;
    } else {
        subscribes(&client, &mut inbox).await;
    }
    asks(&client, &version).await;
    within("the end", client.cancel()).await.unwrap();
}

async fn lists(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.first().unwrap().name, "test_simple_text");
    let resources = client.list_all_resources().await.unwrap();
    assert!(resources.iter().any(|resource| resource.uri == WATCHED));
    let templates = client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates.len(), 1);
    let prompts = client.list_all_prompts().await.unwrap();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.name == "test_simple_prompt")
    );
}

async fn calls(client: &Client) {
    let result = call(client, "test_simple_text", json!({})).await;
    assert_eq!(text(&result), "This is a simple text response for testing.");
    let failed = call(client, "test_error_handling", json!({})).await;
    assert_eq!(failed.is_error, Some(true));
    let unknown = client.call_tool(CallToolRequestParams::new("nope")).await;
    let Err(ServiceError::McpError(error)) = unknown else {
        panic!("an error was expected: {unknown:?}")
    };
    assert_eq!(error.code.0, -32602);

    let read = ReadResourceRequestParams::new("test://static-text");
    let read = client.read_resource(read).await.unwrap();
    assert_eq!(read.contents.len(), 1);
    let prompt = GetPromptRequestParams::new("test_simple_prompt");
    let prompt = client.get_prompt(prompt).await.unwrap();
    assert_eq!(prompt.messages.len(), 1);
    let completed = client
        .complete_prompt_simple("test_prompt_with_arguments", "arg1", "par")
        .await
        .unwrap();
    assert_eq!(completed, ["paris", "park", "party"]);
}

/// The SDK gives every request a progress token.
async fn reports_progress(client: &Client, inbox: &mut Inbox) {
    call(client, "test_tool_with_progress", json!({})).await;
    for expected in [0.0, 50.0, 100.0] {
        assert_eq!(inbox.next().await, Heard::Progress(expected));
    }
}

async fn cancels(client: &Client, inbox: &mut Inbox) {
    let waiting = CallToolRequestParams::new("test_wait_for_cancel");
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(waiting));
    let options = PeerRequestOptions::no_options();
    let running = client
        .send_cancellable_request(request, options)
        .await
        .unwrap();
    assert_eq!(inbox.next().await, Heard::Progress(0.0));
    running
        .cancel(Some("no longer wanted".to_owned()))
        .await
        .unwrap();
    within("the work to stop", async {
        while text(&call(client, "test_cancelled_count", json!({})).await) != "1" {}
    })
    .await;
}

async fn logs(client: &Client, inbox: &mut Inbox, is_stateless: bool) {
    let mut params = CallToolRequestParams::new("test_logging_tool");
    if is_stateless {
        let mut meta = RequestMetaObject::default();
        meta.set_log_level(LoggingLevel::Critical);
        params.meta = Some(meta);
    } else {
        let level = SetLevelRequestParams::new(LoggingLevel::Critical);
        client.set_level(level).await.unwrap();
    }
    client.call_tool(params).await.unwrap();
    for expected in [
        LoggingLevel::Critical,
        LoggingLevel::Alert,
        LoggingLevel::Emergency,
    ] {
        assert_eq!(inbox.next().await, Heard::Log(expected));
    }
}

async fn subscribes(client: &Client, inbox: &mut Inbox) {
    client
        .subscribe(SubscribeRequestParams::new(WATCHED))
        .await
        .unwrap();
    call(client, "test_touch_watched_resource", json!({})).await;
    assert_eq!(inbox.next().await, Heard::Updated(WATCHED.to_owned()));
    call(client, "test_trigger_tool_change", json!({})).await;
    assert_eq!(inbox.next().await, Heard::ToolsChanged);
    let watched = UnsubscribeRequestParams::new(WATCHED);
    client.unsubscribe(watched).await.unwrap();
}

async fn listens(client: &Client) {
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .resource_subscription(WATCHED)
        .build();
    let mut subscription = client.listen(filter.clone()).await.unwrap();
    assert_eq!(*subscription.acknowledged(), filter);
    call(client, "test_touch_watched_resource", json!({})).await;
    let update = within("an update", subscription.next()).await.unwrap();
    let Some(ServerNotification::ResourceUpdatedNotification(update)) = update else {
        panic!("an update was expected: {update:?}")
    };
    assert_eq!(update.params.uri, WATCHED);
    call(client, "test_trigger_tool_change", json!({})).await;
    let change = within("a change", subscription.next()).await.unwrap();
    assert!(
        matches!(
            change,
            Some(ServerNotification::ToolListChangedNotification(_))
        ),
        "{change:?}"
    );
    subscription.cancel().await.unwrap();
}

/// Questions during a call. The SDK answers them as the era requires.
async fn asks(client: &Client, version: &ProtocolVersion) {
    let sampled = call(
        client,
        "test_sampling",
        json!({"prompt": "Capital of France?"}),
    )
    .await;
    assert_eq!(text(&sampled), "LLM response: Paris");
    let roots = call(client, "test_roots", json!({})).await;
    assert_eq!(text(&roots), "Roots: file:///one, file:///two");
    let elicits = ![ProtocolVersion::V_2024_11_05, ProtocolVersion::V_2025_03_26].contains(version);
    if elicits {
        let elicited = call(client, "test_elicitation", json!({"message": "Who?"})).await;
        assert!(
            text(&elicited).starts_with("User response: action=accept"),
            "{elicited:?}"
        );
    }
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    within(tool, Box::pin(client.call_tool(params)))
        .await
        .unwrap()
}

fn text(result: &CallToolResult) -> &str {
    let first = result.content.first().and_then(ContentBlock::as_text);
    first.map_or("", |text| &text.text)
}

fn lifecycle(version: &ProtocolVersion) -> ClientLifecycleMode {
    if *version == ProtocolVersion::V_2026_07_28 {
        let preferred_versions = vec![version.clone()];
        ClientLifecycleMode::Discover { preferred_versions }
    } else {
        ClientLifecycleMode::Initialize
    }
}

/// The path of the fixture server, which is built in the target directory of the workspace.
fn server() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(std::path::Path::parent).unwrap();
    let server = profile.join(format!(
        "conformance-server{}",
        std::env::consts::EXE_SUFFIX
    ));
    assert!(
        server.exists(),
        "{} is missing; build it with cargo build -p plexus-conformance",
        server.display()
    );
    server
}

#[expect(
    clippy::disallowed_methods,
    reason = "the SDK starts the server itself, and ends it"
)]
fn server_on_a_pipe() -> tokio::process::Command {
    let mut command = tokio::process::Command::new(server());
    command.arg("--stdio");
    command
}
