//! HTTP semantics: media types, origins, paths.

use plexus_mcp_protocol::Revision;
use plexus_testkit::HttpClient;
use serde_json::json;

use crate::support::{call, listening, mirrored, request, session, stateless, text};

/// S003-03, S003-38, C53, HTTPLC-01, HTTP26-07: `Accept` decides between JSON and a stream. Without
/// it the answer is JSON.
#[tokio::test]
async fn accept_decides_the_form_of_the_answer() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let legacy = session(server.url(), Revision::V2025_06_18).await;
    let mut progress = call("test_tool_with_progress", json!({}));
    let mut stateless_call = stateless(1, "tools/call", progress.clone());
    stateless_call["params"]["_meta"]["progressToken"] = json!(1);
    progress["_meta"] = json!({"progressToken": 1});
    let legacy_call = request(1, "tools/call", progress);
    let posts = [
        mirrored(&modern, &stateless_call),
        legacy.post(&legacy_call),
    ];
    for post in posts {
        let post = || post.clone();
        let answer = post().header("accept", "application/json").send().await;
        assert!(!answer.is_stream());
        let result = &answer.message().await["result"];
        assert_eq!(text(result), "Tool with progress executed successfully");
        let answer = post().without("accept").send().await;
        assert!(!answer.is_stream());
        answer.message().await;
        for accept in ["*/*", "text/event-stream, application/json;q=0.5", "TEXT/*"] {
            let answer = post().header("accept", accept).send().await;
            assert!(answer.is_stream(), "{accept}");
            assert_eq!(answer.messages().await.len(), 4);
        }
        for accept in ["text/html", "image/*"] {
            let answer = post().header("accept", accept).send().await;
            assert_eq!(answer.status(), 406, "{accept}");
        }
        for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
            let answer = post().header("content-type", content_type).send().await;
            assert_eq!(answer.status(), 415, "{content_type}");
        }
        let utf8 = post().header("content-type", "application/json; charset=utf-8");
        let answer = utf8.send().await;
        assert_eq!(answer.status(), 200);
        answer.messages().await;
    }
    let get = legacy.get().header("accept", "application/json");
    assert_eq!(get.send().await.status(), 406);
}

/// SEC-01, HTTPL-02, HTTP26-02: the origin and the host are checked before the body.
#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    let message = stateless(1, "tools/list", json!({}));
    let port = client.address().port();
    for origin in [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "x",
    ] {
        let answer = mirrored(&client, &message)
            .header("origin", origin)
            .send()
            .await;
        assert_eq!(answer.status(), 403, "{origin}");
        let answer = client.post_bytes("{").header("origin", origin).send().await;
        assert_eq!(answer.status(), 403, "{origin}");
        assert_eq!(
            client.get().header("origin", origin).send().await.status(),
            403
        );
    }
    for host in ["evil.example", "evil.example:80"] {
        let answer = mirrored(&client, &message)
            .header("host", host)
            .send()
            .await;
        assert_eq!(answer.status(), 403, "{host}");
    }
    for (name, value) in [
        ("origin", format!("http://localhost:{port}")),
        ("origin", format!("http://127.0.0.1:{port}")),
        ("host", format!("localhost:{port}")),
    ] {
        let answer = mirrored(&client, &message)
            .header(name, &value)
            .send()
            .await;
        assert_eq!(answer.status(), 200, "{name}: {value}");
    }
}

/// HTTP26-01, SSE24-09: there is one endpoint. Those of HTTP+SSE exist only if they are enabled.
#[tokio::test]
async fn other_paths_are_not_found() {
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    let message = stateless(1, "tools/list", json!({}));
    for path in ["/", "/mcp/", "/mcp/x", "/sse", "/messages", "/MCP"] {
        let answer = mirrored(&client.clone().at(path), &message).send().await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(
            client.clone().at(path).get().send().await.status(),
            404,
            "{path}"
        );
    }
    let answer = mirrored(&client.at("/mcp?x=1"), &message).send().await;
    assert_eq!(answer.status(), 200);
}
