//! Invalid input: it is answered with an error and its code, the connection continues where it can,
//! and other clients are not affected.

use std::time::Duration;

use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::HttpOptions;
use plexus_testkit::{HttpClient, StdioClient, raw_exchange, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    LEGACY, SERVER, call, code, in_process, initialize, listening, mirrored, request, session,
    stateless, stdio_session, text,
};

/// A size far above the limit of a message.
const ELEVEN_MEGABYTES: usize = 11 * 1024 * 1024;

/// Input that is not JSON.
fn unparsable() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "invalid UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(),
        ),
        ("UTF-16", b"{\0\"\0a\0\"\0:\x001\0}\0".to_vec()),
        (
            "half of a message",
            br#"{"jsonrpc":"2.0","id":1,"method":"#.to_vec(),
        ),
        (
            "two messages",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#.to_vec(),
        ),
        (
            "a comma too many",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#.to_vec(),
        ),
        ("single quotes", b"{'jsonrpc':'2.0'}".to_vec()),
        (
            "no value",
            br#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#.to_vec(),
        ),
        ("a number too many", b"01".to_vec()),
        ("a bare word", b"hello".to_vec()),
        (
            "a control character",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\x01\",\"method\":\"ping\"}".to_vec(),
        ),
    ]
}

/// JSON that is not a message: a description, the text, and the id in it (null if it has no valid
/// id).
fn malformed() -> Vec<(&'static str, String, Value)> {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep_params =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{deep}}}}}"#);
    let texts = [
        ("no object", r#""text""#, json!(null)),
        ("a number", "17", json!(null)),
        ("null", "null", json!(null)),
        ("nothing in it", "{}", json!(null)),
        ("no version", r#"{"id":1,"method":"ping"}"#, json!(1)),
        (
            "an old version",
            r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
            json!("a"),
        ),
        (
            "a numeric version",
            r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
            json!(1),
        ),
        ("no method", r#"{"jsonrpc":"2.0","id":1}"#, json!(1)),
        (
            "a numeric method",
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            json!(1),
        ),
        (
            "a null method",
            r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
            json!(1),
        ),
        (
            "params that are text",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
            json!(1),
        ),
        (
            "params that are a number",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":5}"#,
            json!(1),
        ),
        (
            "a result and an error",
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            json!(1),
        ),
        (
            "a method and a result",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            json!(1),
        ),
        (
            "an error that is text",
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
            json!(1),
        ),
        (
            "a lone surrogate",
            r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
            json!(null),
        ),
        (
            "an id twice",
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            json!(null),
        ),
        (
            "a method twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
            json!(1),
        ),
    ];
    let mut all: Vec<_> = texts
        .map(|(what, text, id)| (what, text.to_owned(), id))
        .into();
    all.push(("deep nesting", deep, json!(null)));
    all.push(("deeply nested params", deep_params, json!(1)));
    all
}

/// S000-41, S003-30, S000-52, S002-16: each invalid line gets an error, and the next line is read.
#[tokio::test]
async fn a_pipe_answers_every_bad_line_and_goes_on() {
    for revision in LEGACY {
        let mut pipe = stdio_session(revision).await;
        for (what, line) in unparsable() {
            pipe.send_line(line).await;
            let answer = pipe.receive().await;
            assert_eq!(
                (code(&answer), &answer["id"]),
                (-32700, &Value::Null),
                "{what}"
            );
        }
        for (what, line, id) in malformed() {
            pipe.send_line(line).await;
            let answer = pipe.receive().await;
            assert_eq!(code(&answer), -32600, "{what}: {answer}");
            assert!(
                answer["id"] == id || answer["id"].is_null(),
                "{what}: {answer}"
            );
        }
        for blank in ["", " ", "\t", "\r"] {
            pipe.send_line(blank).await;
        }
        pipe.send_line("\u{feff}").await;
        let after = pipe.receive().await;
        assert_eq!(code(&after), -32700, "a lone byte order mark: {after}");
        pipe.send(&request("last", "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["id"], "last");
        let (rest, exit) = pipe.finish().await;
        assert_eq!((rest, exit.code), (vec![], Some(0)));
    }
}

/// HTTP26-24: over HTTP, each invalid body gets status 400 and an error, in both eras.
#[tokio::test]
async fn http_answers_every_bad_body() {
    let server = listening(&[]).await;
    let mut clients = vec![
        HttpClient::new(server.url(), Revision::V2026_07_28)
            .with_header("mcp-protocol-version", "2026-07-28"),
        HttpClient::new(server.url(), Revision::V2025_03_26),
    ];
    for revision in LEGACY {
        clients.push(session(server.url(), revision).await);
    }
    for client in clients {
        for (what, body) in unparsable() {
            let answer = client.post_bytes(body).send().await;
            assert_eq!(answer.status(), 400, "{what}");
            let answer = answer.message().await;
            assert_eq!(
                (code(&answer), &answer["id"]),
                (-32700, &Value::Null),
                "{what}"
            );
        }
        for (what, body, id) in malformed() {
            let answer = client.post_bytes(body).send().await;
            assert_eq!(answer.status(), 400, "{what}");
            let answer = answer.message().await;
            assert_eq!(code(&answer), -32600, "{what}: {answer}");
            assert!(
                answer["id"] == id || answer["id"].is_null(),
                "{what}: {answer}"
            );
        }
        let answer = client.post_bytes("").send().await;
        assert_eq!(answer.status(), 400);
        assert_eq!(code(&answer.message().await), -32700);
    }
}

/// A handler gets its arguments as they were sent, numbers of any size included.
#[tokio::test]
async fn large_numbers_arrive_as_they_were_sent() {
    let number = "123456789012345678901234567890.000000000000000001";
    let arguments = format!(r#"{{"email":"e","address":{{"number":{number}}}}}"#);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"json_schema_2020_12_tool","arguments":{arguments}}}}}"#
    );
    let mut pipe = stdio_session(Revision::V2025_11_25).await;
    pipe.send_line(&call).await;
    let answer = pipe.receive().await;
    assert_eq!(text(&answer["result"]), format!("Called with {arguments}"));
    // A number that is too large for a float is refused like any other invalid argument.
    pipe.send_line(call.replace(number, "1e400")).await;
    assert_eq!(pipe.receive().await["result"]["isError"], true);
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    let answer = client.post_bytes(call).send().await.message().await;
    assert_eq!(text(&answer["result"]), format!("Called with {arguments}"));
}

/// C09: a line above the limit is discarded. The error names the limit, and the next line is read.
#[tokio::test]
async fn a_line_that_is_too_long_is_skipped() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let mut pipe = stdio_session(revision).await;
        pipe.send_line(vec![b'x'; ELEVEN_MEGABYTES]).await;
        let answer = pipe.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null));
        assert!(answer["error"]["data"]["limit"].is_u64(), "{answer}");
        let long = call(
            "test_elicitation",
            json!({"message": "x".repeat(ELEVEN_MEGABYTES)}),
        );
        pipe.send(&request(1, "tools/call", long)).await;
        let answer = pipe.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (-32600, &json!(1)));
        pipe.send(&request("next", "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["id"], "next");
        assert_eq!(pipe.finish().await.1.code, Some(0));
    }
}

/// C09 over HTTP: a body above the limit gets 413, with or without a `Content-Length`.
#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28)
        .with_header("mcp-protocol-version", "2026-07-28");
    let legacy = session(server.url(), Revision::V2025_06_18).await;
    for client in [&modern, &legacy] {
        let answer = client.post_bytes(vec![b' '; ELEVEN_MEGABYTES]).send().await;
        assert_eq!(answer.status(), 413);
        let answer = answer.message().await;
        assert_eq!(code(&answer), -32600);
        assert!(answer["error"]["data"]["limit"].is_u64(), "{answer}");
    }
    let mut chunked = head(&modern, "Transfer-Encoding: chunked\r\n").into_bytes();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
    chunked.extend(chunk.repeat(ELEVEN_MEGABYTES / 0x10000));
    let answer = raw_exchange(modern.address(), &chunked, false).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let answer = legacy.post(&request(1, "ping", json!({}))).send().await;
    assert_eq!(answer.message().await["result"], json!({}));
}

/// A body that does not arrive in time gets 408; other requests still work.
#[tokio::test]
async fn a_body_that_never_ends_is_given_up() {
    let mut options = HttpOptions::default();
    options.body_idle = Duration::from_millis(50);
    options.body_total = Duration::from_millis(300);
    let server = in_process(options).await;
    let client = HttpClient::new(&server.url, Revision::V2026_07_28);
    for start in ["", "{\"jsonrpc\":"] {
        let bytes = format!("{}{start}", head(&client, "Content-Length: 1000\r\n"));
        let answer = raw_exchange(client.address(), bytes.as_bytes(), false).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    let bytes = format!(
        "{}5\r\nhello\r\n",
        head(&client, "Transfer-Encoding: chunked\r\n")
    );
    let answer = raw_exchange(client.address(), bytes.as_bytes(), false).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let answer = mirrored(&client, &stateless(1, "tools/list", json!({})))
        .send()
        .await;
    assert_eq!(answer.status(), 200);
}

/// HTTP26-15: a client that closes its sending half counts as disconnected, at any point of a
/// request; a running call is cancelled.
#[tokio::test]
async fn a_half_closed_connection_costs_itself_only() {
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    let mut waiting = stateless(1, "tools/call", call("test_wait_for_cancel", json!({})));
    waiting["params"]["_meta"]["progressToken"] = json!(1);
    let body = waiting.to_string();
    let lines = format!(
        "Content-Length: {}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: test_wait_for_cancel\r\n",
        body.len()
    );
    let head = head(&client, &lines).replace("application/json\r\nConn", "*/*\r\nConn");
    let whole = format!("{head}{body}");
    for cut in [1, 40, whole.len() - 1] {
        let part = whole.as_bytes().get(..cut).unwrap();
        let answer = raw_exchange(client.address(), part, true).await;
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 400");
        assert!(is_refused, "{cut}: {answer}");
    }
    let before = cancelled(&client).await;
    let mut stream = TcpStream::connect(client.address()).await.unwrap();
    stream.write_all(whole.as_bytes()).await.unwrap();
    let mut received = String::new();
    while !received.contains("notifications/progress") {
        let mut buffer = [0; 1024];
        let read = within("progress", stream.read(&mut buffer)).await.unwrap();
        received.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    stream.shutdown().await.unwrap();
    within("the end of the stream", stream.read_to_end(&mut Vec::new()))
        .await
        .unwrap();
    within("the work to stop", async {
        while cancelled(&client).await != before + 1 {}
    })
    .await;
}

async fn cancelled(client: &HttpClient) -> u32 {
    let count = stateless(2, "tools/call", call("test_cancelled_count", json!({})));
    let answer = mirrored(client, &count).send().await.message().await;
    text(&answer["result"]).parse().unwrap()
}

/// Invalid HTTP heads are refused without repeating their content, and so are heads that are too
/// large.
#[tokio::test]
async fn heads_with_control_characters_are_refused() {
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    for extra in [
        "X-Bad: a\x01b\r\n",
        "X-Bad: a\0b\r\n",
        "Mcp-Name: a\x7fb\r\n",
        "Mcp Name: spaced\r\n",
        "Mcp-Method: tools/list\rX: y\r\n",
        ": nothing\r\n",
        " folded: unfolded\r\n",
    ] {
        let bytes = format!(
            "{}{{}}",
            head(&client, &format!("Content-Length: 2\r\n{extra}"))
        );
        let answer = raw_exchange(client.address(), bytes.as_bytes(), true).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{extra:?}: {answer}");
        let (_, content) = extra.trim_end().split_once(':').unwrap();
        let content = content.trim();
        assert!(!answer.contains(content), "{extra:?}: {answer}");
    }
    for bytes in [
        "\0\0\0\0",
        "GET\r\n\r\n",
        "POST /mcp HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\0",
    ] {
        let answer = raw_exchange(client.address(), bytes.as_bytes(), true).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{bytes:?}: {answer}");
    }
    let many = "X-Header: x\r\n".repeat(5000);
    let bytes = head(&client, &many);
    let answer = raw_exchange(client.address(), bytes.as_bytes(), true).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

/// Invalid input of one client does not affect another.
#[tokio::test]
async fn invalid_input_does_not_affect_other_clients() {
    let server = listening(&[]).await;
    let good = session(server.url(), Revision::V2025_11_25).await;
    let bad = session(server.url(), Revision::V2025_11_25).await;
    let mut stream = good.get().send().await;
    let misbehaving = async {
        for _ in 0..3 {
            for (_, body) in unparsable() {
                bad.post_bytes(body).send().await;
            }
            for (_, body, _) in malformed() {
                bad.post_bytes(body).send().await;
            }
            bad.post_bytes(vec![b'['; ELEVEN_MEGABYTES / 10])
                .send()
                .await;
            bad.post(&initialize(1, "2025-11-25")).send().await;
            bad.post(&request(1, "ping", json!({})))
                .header("mcp-session-id", "x")
                .send()
                .await;
        }
    };
    let behaving = async {
        for id in 0..20 {
            let slow = call("test_slow", json!({"ms": 10}));
            let answer = good.post(&request(id, "tools/call", slow)).send().await;
            let answer = answer.message().await;
            assert_eq!(answer["id"], id);
            assert_eq!(text(&answer["result"]), "Slept for 10 ms");
        }
    };
    tokio::join!(misbehaving, behaving);
    let change = request(
        "c",
        "tools/call",
        call("test_trigger_tool_change", json!({})),
    );
    good.post(&change).send().await.message().await;
    let told = stream.next_message().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

/// C33: on a connection whose client uses only 2026-07-28, an error without a readable request id
/// has no id.
#[tokio::test]
async fn a_stateless_pipe_leaves_out_unreadable_ids() {
    for arguments in [&["--stdio", "--era", "modern"][..], &["--stdio"]] {
        let mut pipe = StdioClient::spawn(SERVER, arguments);
        pipe.send(&stateless(1, "tools/list", json!({}))).await;
        pipe.receive().await;
        for (line, expected) in [("{", -32700), ("[]", -32600), ("{}", -32600)] {
            pipe.send_line(line).await;
            let answer = pipe.receive().await;
            assert_eq!(
                (code(&answer), answer.get("id")),
                (expected, None),
                "{line}"
            );
        }
    }
}

/// The head of a POST to the endpoint, with these header lines in addition to the required ones.
fn head(client: &HttpClient, lines: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json\r\nConnection: close\r\n{lines}\r\n",
        client.address()
    )
}
