//! The era of a message, by the table of TRANSLATION §2: one test for each row or group of rows.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, StdioClient};
use serde_json::{Value, json};

use crate::support::{
    LEGACY, SERVER, code, initialize, listening, mirrored, notification, request, session,
    stateless, stdio,
};

const ALL_VERSIONS: [&str; 5] = [
    "2026-07-28",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

/// Row 1.
#[tokio::test]
async fn http_row_1_what_is_no_json_is_a_parse_error() {
    let server = listening(&[]).await;
    let legacy = HttpClient::new(server.url(), Revision::V2025_03_26);
    let answer = legacy.post_bytes("{").send().await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!((code(&message), &message["id"]), (-32700, &Value::Null));

    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let post = modern.post_bytes("{");
    let answer = post
        .header("mcp-protocol-version", "2026-07-28")
        .send()
        .await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!((code(&message), message.get("id")), (-32700, None));
}

/// Row 2, BASE-11. The module `batches` tests sessions that accept batches.
#[tokio::test]
async fn http_row_2_arrays_are_only_for_sessions_that_have_batches() {
    let server = listening(&[]).await;
    let batch = json!([request(1, "ping", json!({}))]);
    let stranger = HttpClient::new(server.url(), Revision::V2025_03_26);
    let answer = stranger.post(&batch).send().await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!((code(&message), &message["id"]), (-32600, &Value::Null));

    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let batch = json!([stateless(1, "tools/list", json!({}))]);
    let post = modern
        .post(&batch)
        .header("mcp-protocol-version", "2026-07-28");
    let answer = post.send().await;
    assert_eq!(answer.status(), 400);
    assert_eq!(code(&answer.message().await), -32600);
}

/// Rows 3 and 4, VER26-14, VER26-23, LIFE-07: the metadata decides about the era of `initialize`,
/// not the header.
#[tokio::test]
async fn http_rows_3_and_4_metadata_decides_the_era_of_initialize() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let mut greeting = initialize(1, "2025-11-25");
    greeting["params"]["_meta"] = stateless(0, "", json!({}))["params"]["_meta"].clone();
    let answer = mirrored(&modern, &greeting).send().await;
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.header("mcp-session-id"), None);
    let message = answer.message().await;
    assert_eq!((code(&message), &message["id"]), (-32601, &json!(1)));

    for header in ["2026-07-28", "2025-03-26", "junk"] {
        let client = HttpClient::new(server.url(), Revision::V2025_06_18);
        let post = client.post(&initialize(1, "2025-06-18"));
        let answer = post.header("mcp-protocol-version", header).send().await;
        assert_eq!(answer.status(), 200, "{header}");
        assert!(answer.header("mcp-session-id").is_some(), "{header}");
        assert_eq!(
            answer.message().await["result"]["protocolVersion"],
            "2025-06-18"
        );
    }
}

/// Rows 5 and 6, META26-02.
#[tokio::test]
async fn http_rows_5_and_6_stateless_requests_carry_metadata() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let in_session = session(server.url(), Revision::V2025_11_25).await;
    let bare = request("a", "tools/list", json!({}));
    let discover = request("a", "server/discover", json!({}));
    let posts = [
        modern
            .post(&bare)
            .header("mcp-protocol-version", "2026-07-28"),
        in_session
            .post(&bare)
            .header("mcp-protocol-version", "2026-07-28"),
        modern.post(&discover),
        in_session.post(&discover),
    ];
    for post in posts {
        let answer = post.send().await;
        assert_eq!(answer.status(), 400);
        let message = answer.message().await;
        assert_eq!((code(&message), &message["id"]), (-32602, &json!("a")));
    }
}

/// Rows 7 and 8, HTTPL-20, HTTPL-23.
#[tokio::test]
async fn http_rows_7_and_8_unknown_sessions_and_versions_are_refused() {
    let server = listening(&[]).await;
    let list = request(1, "tools/list", json!({}));
    let client = HttpClient::new(server.url(), Revision::V2025_06_18);
    let post = client
        .post(&list)
        .header("mcp-session-id", "no-such-session");
    let answer = post
        .header("mcp-protocol-version", "2025-06-18")
        .send()
        .await;
    assert_eq!(answer.status(), 404);

    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let answer = modern
        .post(&list)
        .header("mcp-protocol-version", "v999")
        .send()
        .await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!((code(&message), &message["id"]), (-32022, &json!(1)));
    let data = json!({"supported": ALL_VERSIONS, "requested": "v999"});
    assert_eq!(message["error"]["data"], data);

    let in_session = session(server.url(), Revision::V2025_06_18).await;
    let post = in_session
        .post(&list)
        .header("mcp-protocol-version", "2020-01-01");
    assert_eq!(post.send().await.status(), 400);
    assert_eq!(in_session.post(&list).send().await.status(), 200);
}

/// Row 9, HTTPL-19: a request before `initialize` is answered with an error that says what to do.
#[tokio::test]
async fn http_row_9_requests_without_a_session_are_refused_with_the_versions() {
    let server = listening(&[]).await;
    for header in [
        None,
        Some("2025-03-26"),
        Some("2025-06-18"),
        Some("2025-11-25"),
    ] {
        let revision = header.map_or(Revision::V2025_03_26, |name| name.parse().unwrap());
        let client = HttpClient::new(server.url(), revision);
        let mut post = client.post(&request(1, "tools/list", json!({})));
        if let Some(header) = header {
            post = post.header("mcp-protocol-version", header);
        }
        let answer = post.send().await;
        assert_eq!(answer.status(), 400);
        let message = answer.message().await;
        assert_eq!((code(&message), &message["id"]), (-32600, &json!(1)));
        let text = message["error"]["message"].as_str().unwrap();
        for version in ALL_VERSIONS {
            assert!(text.contains(version), "{text}");
        }
    }
}

/// Rows 10, 11 and 12, HTTP26-05, HTTP26-06, HTTPL-04.
#[tokio::test]
async fn http_rows_10_to_12_notifications_and_responses_need_a_session_or_the_new_era() {
    let server = listening(&[]).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1}});
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28)
        .with_header("mcp-protocol-version", "2026-07-28");
    let answer = modern.post(&cancelled).send().await;
    assert_eq!((answer.status(), answer.text().await.as_str()), (202, ""));
    let answer = modern.post(&response).send().await;
    assert_eq!(answer.status(), 400);

    for header in [None, Some("2025-06-18")] {
        let revision = header.map_or(Revision::V2025_03_26, |name| name.parse().unwrap());
        for message in [&cancelled, &response] {
            let client = HttpClient::new(server.url(), revision);
            let mut post = client.post(message);
            if let Some(header) = header {
                post = post.header("mcp-protocol-version", header);
            }
            let answer = post.send().await;
            assert_eq!(answer.status(), 400);
            let message = answer.message().await;
            assert_eq!((code(&message), &message["id"]), (-32600, &Value::Null));
        }
    }
    let in_session = session(server.url(), Revision::V2025_06_18).await;
    for message in [&cancelled, &response] {
        let answer = in_session.post(message).send().await;
        assert_eq!((answer.status(), answer.text().await.as_str()), (202, ""));
    }
}

/// HTTP26-18, HTTPL-12, HTTPL-21.
#[tokio::test]
async fn get_and_delete_are_for_sessions() {
    let server = listening(&[]).await;
    let stranger = HttpClient::new(server.url(), Revision::V2025_06_18);
    let in_session = session(server.url(), Revision::V2025_06_18).await;
    let requests = [
        stranger.get(),
        stranger.delete(),
        stranger.get().header("mcp-protocol-version", "2026-07-28"),
        in_session
            .get()
            .header("mcp-protocol-version", "2026-07-28"),
        in_session
            .delete()
            .header("mcp-protocol-version", "2026-07-28"),
        stranger.request(http::Method::PUT, "{}".into()),
    ];
    for request in requests {
        let answer = request.send().await;
        assert_eq!(answer.status(), 405);
        assert!(answer.header("allow").unwrap().contains("POST"));
    }
    let unknown = stranger.get().header("mcp-session-id", "no-such-session");
    assert_eq!(unknown.send().await.status(), 404);
}

/// TRANSLATION §2: a legacy version is refused in a stateless request (VER26-02, VER26-03), and
/// `initialize` never agrees on a stateless one (C03).
#[tokio::test]
async fn versions_of_the_other_era_are_not_served() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let mut list = stateless(1, "tools/list", json!({}));
    let version = "io.modelcontextprotocol/protocolVersion";
    list["params"]["_meta"][version] = json!("2025-11-25");
    let post = mirrored(&modern, &list).header("mcp-protocol-version", "2025-11-25");
    let answer = post.send().await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!(code(&message), -32022);
    let data = json!({"supported": ALL_VERSIONS, "requested": "2025-11-25"});
    assert_eq!(message["error"]["data"], data);

    let mut pipe = stdio();
    pipe.send(&list).await;
    let message = pipe.receive().await;
    assert_eq!((code(&message), &message["error"]["data"]), (-32022, &data));

    pipe.send(&initialize(2, "2026-07-28")).await;
    assert_eq!(
        pipe.receive().await["result"]["protocolVersion"],
        "2025-11-25"
    );
}

/// VER26-13: the same rules on a pipe, which has no headers. Both eras can be mixed on one pipe.
#[tokio::test]
async fn both_eras_interleave_on_a_pipe() {
    let mut pipe = stdio();
    pipe.send(&stateless("early", "tools/list", json!({})))
        .await;
    assert!(pipe.receive().await["result"]["resultType"].is_string());
    pipe.send(&request(1, "tools/list", json!({}))).await;
    assert_eq!(code(&pipe.receive().await), -32600);
    pipe.send(&request(2, "server/discover", json!({}))).await;
    assert_eq!(code(&pipe.receive().await), -32602);

    pipe.send(&initialize(3, "2025-06-18")).await;
    assert_eq!(
        pipe.receive().await["result"]["protocolVersion"],
        "2025-06-18"
    );
    pipe.send(&notification("notifications/initialized")).await;
    for id in 4..8 {
        pipe.send(&request(id, "tools/list", json!({}))).await;
        assert_eq!(pipe.receive().await["result"].get("resultType"), None);
        pipe.send(&stateless(id, "tools/list", json!({}))).await;
        assert_eq!(pipe.receive().await["result"]["resultType"], "complete");
    }
    let mut greeting = initialize(8, "2025-11-25");
    greeting["params"]["_meta"] = stateless(0, "", json!({}))["params"]["_meta"].clone();
    pipe.send(&greeting).await;
    assert_eq!(code(&pipe.receive().await), -32601);
    pipe.send(&stateless(9, "ping", json!({}))).await;
    assert_eq!(code(&pipe.receive().await), -32601);
    pipe.send(&request(10, "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["result"], json!({}));
    assert_eq!(pipe.finish().await.1.code, Some(0));
}

/// META26-02 on a pipe; BASE-17: a response from a stateless client is ignored.
#[tokio::test]
async fn incomplete_metadata_is_refused_on_a_pipe() {
    let mut pipe = stdio();
    let mut list = stateless(1, "tools/list", json!({}));
    let meta = list["params"]["_meta"].as_object_mut().unwrap();
    meta.remove("io.modelcontextprotocol/clientCapabilities");
    pipe.send(&list).await;
    assert_eq!(code(&pipe.receive().await), -32602);
    list["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!("all");
    pipe.send(&list).await;
    assert_eq!(code(&pipe.receive().await), -32602);
    pipe.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}))
        .await;
    pipe.send(&stateless(2, "server/discover", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 2);
}

/// VER26-22: a server of one era names its versions when it refuses the other era.
#[tokio::test]
async fn a_server_of_one_era_refuses_the_other() {
    let modern_only = listening(&["--era", "modern"]).await;
    let client = HttpClient::new(modern_only.url(), Revision::V2026_07_28);
    let answer = client.post(&initialize(1, "2025-11-25")).send().await;
    assert_eq!(answer.status(), 400);
    let message = answer.message().await;
    assert_eq!(code(&message), -32022);
    assert_eq!(message["error"]["data"]["supported"], json!(["2026-07-28"]));
    let answer = mirrored(&client, &stateless(2, "tools/list", json!({})))
        .send()
        .await;
    assert_eq!(answer.status(), 200);

    let mut pipe = StdioClient::spawn(SERVER, &["--stdio", "--era", "modern"]);
    pipe.send(&initialize(1, "2025-11-25")).await;
    let message = pipe.receive().await;
    assert_eq!(message["error"]["data"]["supported"], json!(["2026-07-28"]));
    pipe.send(&stateless(2, "server/discover", json!({}))).await;
    assert_eq!(
        pipe.receive().await["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );

    let legacy_only = listening(&["--era", "legacy"]).await;
    let client = HttpClient::new(legacy_only.url(), Revision::V2025_03_26);
    let answer = client
        .post(&request(1, "server/discover", json!({})))
        .send()
        .await;
    assert_eq!(answer.status(), 400);
    for revision in LEGACY {
        session(legacy_only.url(), revision).await;
    }
}
