//! Validation of the metadata and headers of stateless HTTP requests, step by step
//! (docs/protocol-rules.md, "Validation order"), with exact statuses and codes.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, HttpRequest, HttpResponse, ListeningServer};
use serde_json::{Value, json};

use crate::support::{call, code, listening, mirrored, stateless, text};

const META: &str = "io.modelcontextprotocol/";

async fn modern() -> (HttpClient, ListeningServer) {
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    (client, server)
}

/// Asserts that the response is an error with this status and code, and the id of the request.
async fn assert_refused(post: HttpRequest, status: u16, expected: i64, why: &str) {
    let answer = post.send().await;
    assert_eq!(answer.status(), status, "{why}");
    let message = answer.message().await;
    assert_eq!(code(&message), expected, "{why}: {message}");
    // HTTP26-24.
    assert_eq!(message["id"], "r", "{why}: {message}");
}

async fn result(post: HttpRequest) -> Value {
    let answer = post.send().await;
    assert_eq!(answer.status(), 200, "{:?}", answer.headers());
    let mut message = answer.message().await;
    assert!(message.get("result").is_some(), "{message}");
    message["result"].take()
}

fn simple_call() -> Value {
    stateless("r", "tools/call", call("test_simple_text", json!({})))
}

/// Step 6: META26-01, META26-02. Missing metadata is reported before any wrong header.
#[tokio::test]
async fn required_metadata_comes_first() {
    let (client, _server) = modern().await;
    let mut bare = simple_call();
    bare["params"].as_object_mut().unwrap().remove("_meta");
    assert_refused(mirrored(&client, &bare), 400, -32602, "no _meta").await;
    for wrong in [json!({}), json!("x"), Value::Null] {
        bare["params"]["_meta"] = wrong.clone();
        let why = format!("_meta {wrong}");
        assert_refused(mirrored(&client, &bare), 400, -32602, &why).await;
    }
    let mut no_params = json!({"jsonrpc": "2.0", "id": "r", "method": "tools/list"});
    assert_refused(mirrored(&client, &no_params), 400, -32602, "no params").await;
    no_params["params"] = json!({"_meta": {}});
    assert_refused(mirrored(&client, &no_params), 400, -32602, "empty _meta").await;

    for key in ["protocolVersion", "clientCapabilities"] {
        let key = format!("{META}{key}");
        for wrong in [None, Some(Value::Null), Some(json!(1)), Some(json!([]))] {
            let mut message = simple_call();
            let meta = message["params"]["_meta"].as_object_mut().unwrap();
            match &wrong {
                None => meta.remove(&key),
                Some(wrong) => meta.insert(key.clone(), wrong.clone()),
            };
            let post = mirrored(&client, &message);
            assert_refused(post, 400, -32602, &format!("{key}: {wrong:?}")).await;
            let post = mirrored(&client, &message).header("mcp-method", "wrong");
            assert_refused(post, 400, -32602, &format!("{key} before headers")).await;
        }
    }
}

/// META26-04, META26-11.
#[tokio::test]
async fn nothing_else_is_required_in_metadata() {
    let (client, _server) = modern().await;
    let called = result(mirrored(&client, &simple_call())).await;
    assert_eq!(text(&called), "This is a simple text response for testing.");
    let mut message = simple_call();
    message["params"]["_meta"][format!("{META}clientInfo")] = json!({"name": "n", "version": "1"});
    message["params"]["_meta"]["com.example/own"] = json!({"deep": [1, 2.5, null]});
    message["params"]["_meta"]["traceparent"] =
        json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    result(mirrored(&client, &message)).await;
}

/// Step 7: HDR26-01, HDR26-02, HTTP26-23, TRANSLATION §12 case 10.
#[tokio::test]
async fn the_version_header_must_say_what_the_metadata_says() {
    let (client, _server) = modern().await;
    let message = simple_call();
    let post = || mirrored(&client, &message);
    let version = "mcp-protocol-version";
    assert_refused(post().without(version), 400, -32020, "missing").await;
    for wrong in [
        "2025-11-25",
        "2026-07-29",
        "v999",
        "2026-07-28 x",
        "",
        "2026-07-28,2026-07-28",
    ] {
        assert_refused(post().header(version, wrong), 400, -32020, wrong).await;
    }
    assert_refused(post().also(version, "2026-07-28"), 400, -32020, "twice").await;
    assert_refused(
        post().header(version, b"2026-07-28\xff"),
        400,
        -32020,
        "bytes",
    )
    .await;
    result(post().header(version, " 2026-07-28\t")).await;
}

/// Step 8: VER26-02, VER26-03, VER26-26. A header that differs from the metadata is reported first.
#[tokio::test]
async fn a_version_that_is_not_served_is_refused_with_those_that_are() {
    let (client, _server) = modern().await;
    let discovered = result(mirrored(
        &client,
        &stateless("r", "server/discover", json!({})),
    ))
    .await;
    let mut message = simple_call();
    message["params"]["_meta"][format!("{META}protocolVersion")] = json!("v999.0.0");
    let post = mirrored(&client, &message).header("mcp-protocol-version", "v999.0.0");
    let answer = post.header("mcp-method", "wrong").send().await;
    assert_eq!(answer.status(), 400);
    let refused = answer.message().await;
    assert_eq!((code(&refused), &refused["id"]), (-32022, &json!("r")));
    let data = json!({"supported": discovered["supportedVersions"], "requested": "v999.0.0"});
    assert_eq!(refused["error"]["data"], data);
    assert_refused(mirrored(&client, &message), 400, -32020, "they differ").await;
}

/// Steps 9 and 10: HDR26-03, HDR26-06, HDR26-07, HTTP26-17.
#[tokio::test]
async fn the_method_header_must_say_what_the_body_says_even_of_unknown_methods() {
    let (client, _server) = modern().await;
    for method in [
        "tools/list",
        "server/discover",
        "unknown/method",
        "ping",
        "initialize",
    ] {
        let message = stateless("r", method, json!({}));
        let post = || mirrored(&client, &message);
        let name = "mcp-method";
        assert_refused(post().without(name), 400, -32020, method).await;
        for wrong in ["tools/call", "", "TOOLS/LIST", "tools/list "] {
            let wrong = if wrong == "tools/list " {
                "tools/listx"
            } else {
                wrong
            };
            assert_refused(post().header(name, wrong), 400, -32020, wrong).await;
        }
    }
    for method in [
        "unknown/method",
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/get",
        "tasks/result",
        "tasks/list",
    ] {
        let message = stateless("r", method, json!({"name": "x"}));
        let post = mirrored(&client, &message).without("mcp-name");
        assert_refused(post, 404, -32601, method).await;
    }
}

/// Step 11: HDR26-03 to HDR26-07. A wrong name header is reported before an unknown name.
#[tokio::test]
async fn the_name_header_must_name_what_the_body_names() {
    let (client, _server) = modern().await;
    for (method, params) in [
        ("tools/call", call("test_simple_text", json!({}))),
        ("tools/call", call("no_such_tool", json!({}))),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("resources/read", json!({"uri": "test://nope"})),
    ] {
        let message = stateless("r", method, params);
        let post = || mirrored(&client, &message);
        assert_refused(post().without("mcp-name"), 400, -32020, method).await;
        for wrong in ["other", "", "Test_simple_text"] {
            assert_refused(post().header("mcp-name", wrong), 400, -32020, wrong).await;
        }
        assert_refused(post().also("mcp-name", "other"), 400, -32020, "twice").await;
    }
    let unknown = stateless("r", "tools/call", call("no_such_tool", json!({})));
    assert_refused(mirrored(&client, &unknown), 200, -32602, "unknown tool").await;
    let nameless = stateless("r", "tools/call", json!({"arguments": {}}));
    assert_refused(mirrored(&client, &nameless), 200, -32602, "no name").await;
    let listing = mirrored(&client, &stateless("r", "tools/list", json!({})));
    result(listing.header("mcp-name", "anything")).await;
}

/// HDR26-04, HDR26-05: names that a header cannot hold are sent as Base64 between exact markers.
#[tokio::test]
async fn wrapped_names_are_unwrapped() {
    let (client, _server) = modern().await;
    let message = simple_call();
    let post = |name: &str| mirrored(&client, &message).header("mcp-name", name);
    result(post("=?base64?dGVzdF9zaW1wbGVfdGV4dA==?=")).await;
    result(post("  test_simple_text ")).await;
    for wrong in [
        "=?BASE64?dGVzdF9zaW1wbGVfdGV4dA==?=",
        "=?base64?dGVzdF9zaW1wbGVfdGV4dA?=",
        "=?base64?dGVzdF9zaW1wbGVf dGV4dA==?=",
        "=?base64?dGVzdF9zaW1wbGVfdGV4dA==",
        "=?base64??=",
        "=?base64?/////w==?=",
    ] {
        assert_refused(post(wrong), 400, -32020, wrong).await;
    }
    let raw = mirrored(&client, &message).header("mcp-name", "test_simple_text\u{e9}");
    assert_refused(raw, 400, -32020, "bytes beyond ASCII").await;

    // The header matches the unknown tool "ünïcode". The other name looks like an encoded header
    // value, so its header must be encoded, too.
    let unicode = stateless("r", "tools/call", call("ünïcode", json!({})));
    let post = mirrored(&client, &unicode).header("mcp-name", "=?base64?w7xuw69jb2Rl?=");
    assert_refused(post, 200, -32602, "unknown tool").await;
    let wrapped = stateless("r", "tools/call", call("=?base64?eA==?=", json!({})));
    let post = mirrored(&client, &wrapped);
    assert_refused(post, 400, -32020, "must be wrapped itself").await;
}

/// Step 12: HDR26-08, HDR26-12, HDR26-13.
#[tokio::test]
async fn annotated_arguments_are_mirrored() {
    let (client, _server) = modern().await;
    let with = |value: Value| stateless("r", "tools/call", call("test_custom_header", value));
    let message = with(json!({"value": "x y"}));
    let post = || mirrored(&client, &message);
    let header = "mcp-param-value";
    assert_eq!(
        text(&result(post().header(header, "x y")).await),
        "Value: x y"
    );
    result(post().header(header, "=?base64?eCB5?=")).await;
    assert_refused(post(), 400, -32020, "missing").await;
    assert_refused(post().header(header, "x"), 400, -32020, "different").await;
    assert_refused(post().header(header, "X Y"), 400, -32020, "case").await;
    assert_refused(
        post().header(header, "=?base64?!?="),
        400,
        -32020,
        "no base64",
    )
    .await;
    let unicode = with(json!({"value": "é"}));
    let wrapped = mirrored(&client, &unicode).header(header, "=?base64?w6k=?=");
    assert_eq!(text(&result(wrapped).await), "Value: é");
    let empty = with(json!({"value": ""}));
    result(mirrored(&client, &empty).header(header, "")).await;

    // An argument that is missing or null has no header. The result then reports the argument.
    for arguments in [json!({}), json!({"value": null})] {
        let message = with(arguments);
        assert_eq!(result(mirrored(&client, &message)).await["isError"], true);
        let post = mirrored(&client, &message).header(header, "x");
        assert_refused(post, 400, -32020, "a header for nothing").await;
    }
    // HDR26-17: headers that no schema asks for are ignored.
    result(mirrored(&client, &simple_call()).header("mcp-param-other", "x")).await;
}

/// Step 14: META26-05, META26-11, MRTR26-05. The error names the missing capability; capabilities
/// count for the request that declares them.
#[tokio::test]
async fn a_capability_that_is_needed_and_not_declared_is_named() {
    let (client, _server) = modern().await;
    for (tool, needed) in [
        ("test_missing_capability", json!({"sampling": {}})),
        ("test_roots", json!({"roots": {}})),
        (
            "test_input_required_result_elicitation",
            json!({"elicitation": {}}),
        ),
        ("test_url_elicitation", json!({"elicitation": {"url": {}}})),
    ] {
        let message = stateless("r", "tools/call", call(tool, json!({})));
        let answer = mirrored(&client, &message).send().await;
        assert_eq!(answer.status(), 400, "{tool}");
        let refused = answer.message().await;
        assert_eq!(code(&refused), -32021, "{tool}");
        let given = &refused["error"]["data"]["requiredCapabilities"];
        for (capability, _) in needed.as_object().unwrap() {
            assert!(given.get(capability).is_some(), "{tool}: {given}");
        }
        let mut declared = message;
        declared["params"]["_meta"][format!("{META}clientCapabilities")] = needed;
        let asked = result(mirrored(&client, &declared)).await;
        assert_eq!(asked["resultType"], "input_required", "{tool}");
    }
}

/// HTTP26-19, HTTP26-20, HTTP26-12: stateless streams have no session and no event ids, and headers
/// against buffering in proxies.
#[tokio::test]
async fn sessions_and_event_ids_do_not_exist() {
    let (client, _server) = modern().await;
    let mut message = stateless(
        "r",
        "tools/call",
        call("test_tool_with_progress", json!({})),
    );
    message["params"]["_meta"]["progressToken"] = json!(1);
    let post = mirrored(&client, &message)
        .header("mcp-session-id", "made-up")
        .header("last-event-id", "1-1");
    let mut answer: HttpResponse = post.send().await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(
        answer.header("cache-control").map(|v| v.contains("no-")),
        Some(true)
    );
    let mut events = Vec::new();
    while let Some(event) = answer.event().await {
        assert_eq!((&event.id, event.retry), (&None, None));
        events.push(event);
    }
    assert_eq!(events.len(), 4);
    // HTTP26-10: the answer ends the stream.
    assert_eq!(events[3].message.as_ref().unwrap()["id"], "r");
}

/// HTTP26-25, VER26-10: each of many concurrent streams has the messages of its own request.
#[tokio::test]
async fn concurrent_streams_do_not_mix() {
    let (client, _server) = modern().await;
    let streams = (0..20).map(|number| {
        let client = client.clone();
        async move {
            let mut message = stateless(
                number,
                "tools/call",
                call("test_tool_with_progress", json!({})),
            );
            message["params"]["_meta"]["progressToken"] = json!(format!("token-{number}"));
            let messages = mirrored(&client, &message).send().await.messages().await;
            let (answer, reports) = messages.split_last().unwrap();
            assert_eq!(answer["id"], number);
            assert_eq!(reports.len(), 3);
            for report in reports {
                assert_eq!(report["params"]["progressToken"], format!("token-{number}"));
            }
        }
    });
    let mut tasks: tokio::task::JoinSet<()> = streams.collect();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
