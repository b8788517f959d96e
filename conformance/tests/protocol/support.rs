//! Helpers that start servers, open sessions and build messages.

use std::sync::Arc;

use plexus_mcp_core::{Context, LocalService, NoArguments, Resource, ResourceContents, Tool};
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use plexus_testkit::{Client, HttpClient, HttpRequest, ListeningServer, StdioClient, Transport};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The fixture server.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// A port that the system chooses.
pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

/// Defines a test of `$script` for every pair of a revision and a transport that supports it.
macro_rules! every_client {
    ($script:ident) => {
        every_client! { $script:
            stdio_2024_11_05 Stdio V2024_11_05,
            stdio_2025_03_26 Stdio V2025_03_26,
            stdio_2025_06_18 Stdio V2025_06_18,
            stdio_2025_11_25 Stdio V2025_11_25,
            stdio_2026_07_28 Stdio V2026_07_28,
            http_2024_11_05 Http V2024_11_05,
            http_2025_03_26 Http V2025_03_26,
            http_2025_06_18 Http V2025_06_18,
            http_2025_11_25 Http V2025_11_25,
            http_2026_07_28 Http V2026_07_28,
            sse_2024_11_05 Sse V2024_11_05,
            sse_2025_03_26 Sse V2025_03_26,
            sse_2025_06_18 Sse V2025_06_18,
            sse_2025_11_25 Sse V2025_11_25,
        }
    };
    ($script:ident: $($name:ident $transport:ident $revision:ident,)*) => {
        mod $script {
            use plexus_mcp_protocol::Revision;
            use plexus_testkit::Transport;
            $(
                #[tokio::test]
                async fn $name() {
                    let (transport, revision) = (Transport::$transport, Revision::$revision);
                    $crate::support::converse(transport, revision, super::$script).await;
                }
            )*
        }
    };
}

/// Starts a server, opens a client of `revision`, and runs the script with it.
pub(crate) async fn converse(
    transport: Transport,
    revision: Revision,
    script: impl AsyncFnOnce(&mut Client, &Value),
) {
    let (mut client, _server) = connect(transport, revision, capabilities(revision)).await;
    let greeting = client.open().await;
    script(&mut client, &greeting).await;
    for message in client.close().await {
        // C08: only over HTTP may a cancelled request get a response, which is this error.
        let is_cancelled = message["error"]["code"] == -32800 && transport == Transport::Http;
        // SUB26-11: a subscription that is still open is answered when the server ends.
        let subscription = &message["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        let is_ended_subscription = !subscription.is_null() && *subscription == message["id"];
        assert!(
            message.get("method").is_some() || is_cancelled || is_ended_subscription,
            "a response without a pending request: {message}"
        );
    }
}

/// A client that has sent no message yet, and its server.
pub(crate) async fn connect(
    transport: Transport,
    revision: Revision,
    capabilities: Value,
) -> (Client, Option<ListeningServer>) {
    match transport {
        Transport::Stdio => (Client::stdio(stdio(), revision, capabilities), None),
        Transport::Http => {
            let server = listening(&[]).await;
            let client = Client::http(server.url(), revision, capabilities);
            (client, Some(server))
        }
        Transport::Sse => {
            let server = ListeningServer::start(SERVER, &["--sse", ANY_PORT]).await;
            let client = Client::sse(server.url(), revision, capabilities).await;
            (client, Some(server))
        }
    }
}

/// A client of a new fixture server on a pipe.
pub(crate) fn stdio() -> StdioClient {
    StdioClient::spawn(SERVER, &["--stdio"])
}

/// A fixture server on HTTP.
pub(crate) async fn listening(arguments: &[&str]) -> ListeningServer {
    let arguments = [&["--http", ANY_PORT], arguments].concat();
    ListeningServer::start(SERVER, &arguments).await
}

/// A server in this process, for tests of options that the fixture server does not have.
pub(crate) struct InProcess {
    pub(crate) url: String,
    _running: JoinSet<()>,
}

/// Serves 120 tools and a resource over HTTP.
pub(crate) async fn in_process(options: HttpOptions) -> InProcess {
    in_process_with(Options::default(), options).await
}

/// The same, with options of the edge.
pub(crate) async fn in_process_with(edge: Options, options: HttpOptions) -> InProcess {
    let mut builder = LocalService::builder("in-process", "1.0.0").resource(
        Resource::new("test://one", "one"),
        async |uri: String, _: Context| ResourceContents::text(uri, "One"),
    );
    for number in 0..120 {
        let tool = Tool::new(format!("tool_{number:03}"));
        builder = builder.tool(tool, async |_: NoArguments, _: Context| "Done");
    }
    let service = Arc::new(builder.build().unwrap());
    let edge = Edge::new(service, edge).unwrap();
    let address = [ANY_PORT.parse().unwrap()];
    let server = HttpServer::bind(edge, &address, options).await.unwrap();
    let url = format!("http://{}{}", server.addresses()[0], server.path());
    let mut running = JoinSet::new();
    running.spawn(server.run());
    InProcess {
        url,
        _running: running,
    }
}

/// All client capabilities of `revision`, and elicitation even for revisions from before it: a
/// server may use what a client declares.
pub(crate) fn capabilities(revision: Revision) -> Value {
    let elicitation = match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => json!({}),
        Revision::V2025_11_25 | Revision::V2026_07_28 => json!({"form": {}, "url": {}}),
    };
    json!({"roots": {}, "sampling": {}, "elicitation": elicitation})
}

/// The text of the first content block of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The messages with this method, of those given.
pub(crate) fn with_method<'a>(messages: &'a [Value], method: &str) -> Vec<&'a Value> {
    let messages = messages.iter();
    messages
        .filter(|message| message["method"] == method)
        .collect()
}

/// The error code in `response`, which must be an error.
pub(crate) fn code(response: &Value) -> i64 {
    let code = response["error"]["code"].as_i64();
    code.unwrap_or_else(|| panic!("no error: {response}"))
}

/// A request without metadata.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id.into(), "method": method});
    request["params"] = params;
    request
}

/// A notification without parameters.
pub(crate) fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// An `initialize` request for this version, without client capabilities.
pub(crate) fn initialize(id: impl Into<Value>, version: &str) -> Value {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "scripted", "version": "1.0.0"},
    });
    request(id, "initialize", params)
}

/// A stateless request, without client capabilities.
pub(crate) fn stateless(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, method, params)
}

/// A POST of a stateless request with the headers it needs (HDR26-01, HDR26-03).
pub(crate) fn mirrored(client: &HttpClient, message: &Value) -> HttpRequest {
    let params = &message["params"];
    let mut post = client
        .post(message)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", message["method"].as_str().unwrap());
    if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
        post = post.header("mcp-name", name);
    }
    post
}

/// A client in a session of `revision` that is ready for use.
pub(crate) async fn session(url: &str, revision: Revision) -> HttpClient {
    let client = HttpClient::new(url, revision);
    let answer = client.post(&initialize(0, revision.as_str())).send().await;
    assert_eq!(answer.status(), 200);
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(
        answer.message().await["result"]["protocolVersion"],
        revision.as_str()
    );
    let client = client
        .with_header("mcp-session-id", &id)
        .with_header("mcp-protocol-version", revision.as_str());
    let initialized = notification("notifications/initialized");
    assert_eq!(client.post(&initialized).send().await.status(), 202);
    client
}

/// A client of a new server on a pipe, with an open session of `revision`.
pub(crate) async fn stdio_session(revision: Revision) -> StdioClient {
    let mut client = stdio();
    client.send(&initialize(0, revision.as_str())).await;
    assert_eq!(client.receive().await["id"], 0);
    client
        .send(&notification("notifications/initialized"))
        .await;
    client
}

/// The params of `tools/call`.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    let mut call = json!({"name": tool});
    call["arguments"] = arguments;
    call
}

/// The four revisions with a handshake.
pub(crate) const LEGACY: [Revision; 4] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
];
