//! What the tests share.

use plexus_mcp::Revision;
use plexus_testkit::{Client, Listening, StdioClient, Transport};
use serde_json::{Value, json};

/// The fixture server.
const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// A port that the system chooses.
const ANY_PORT: &str = "127.0.0.1:0";

/// Makes a test of `$script` for every revision on every transport that has it.
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
            use plexus_mcp::Revision;
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

/// Starts a server, and has an initialized client of `revision` follow the script.
pub(crate) async fn converse(
    transport: Transport,
    revision: Revision,
    script: impl AsyncFnOnce(&mut Client, &Value),
) {
    let (mut client, _server) = connect(transport, revision, capabilities(revision)).await;
    let greeting = client.open().await;
    script(&mut client, &greeting).await;
    for message in client.close().await {
        // C08: only over HTTP is something said to a cancelled request, and then this.
        let is_cancelled = message["error"]["code"] == -32800 && transport == Transport::Http;
        assert!(
            message.get("method").is_some() || is_cancelled,
            "an answer that nobody waited for: {message}"
        );
    }
}

/// A client that has said nothing yet, and its server.
pub(crate) async fn connect(
    transport: Transport,
    revision: Revision,
    capabilities: Value,
) -> (Client, Option<Listening>) {
    match transport {
        Transport::Stdio => (Client::stdio(stdio(), revision, capabilities), None),
        Transport::Http => {
            let server = listening(&[]).await;
            let client = Client::http(server.url(), revision, capabilities);
            (client, Some(server))
        }
        Transport::Sse => {
            let server = Listening::start(SERVER, &["--sse", ANY_PORT]).await;
            let client = Client::sse(server.url(), revision, capabilities).await;
            (client, Some(server))
        }
    }
}

/// A fixture server on a pipe.
pub(crate) fn stdio() -> StdioClient {
    StdioClient::spawn(SERVER, &["--stdio"])
}

/// A fixture server on HTTP.
pub(crate) async fn listening(arguments: &[&str]) -> Listening {
    let arguments = [&["--http", ANY_PORT], arguments].concat();
    Listening::start(SERVER, &arguments).await
}

/// Everything that a client of `revision` can declare.
pub(crate) fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({"roots": {}, "sampling": {}});
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => {}
        Revision::V2025_06_18 => capabilities["elicitation"] = json!({}),
        Revision::V2025_11_25 | Revision::V2026_07_28 => {
            capabilities["elicitation"] = json!({"form": {}, "url": {}});
        }
    }
    capabilities
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
