//! C09: a response that exceeds a limit fails its own call at once, with an error that names the
//! limit. It does not affect other calls of the connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_client::{Definition, ServerState, Upstream};
use plexus_mcp_core::{Boxed, Outcome};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{HttpServer, Offer, Process, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::sse;
use crate::support::{
    LEGACY, STATELESS, call, call_fails, call_tool, connected, during, http, status, stdio,
};

const MAX_BYTES: usize = 50_000;

/// Only `max_bytes` is changed. The call timeouts stay at minutes, so that they cannot cause a
/// failure here.
fn limited(mut definition: Definition) -> Definition {
    definition.limits.max_bytes = MAX_BYTES;
    definition
}

/// An answer that cannot be decoded.
struct Unreadable {
    tool: &'static str,
    /// The response text for a request id.
    answer: fn(&Value) -> String,
    /// A part of the error that the caller gets.
    error: &'static str,
}

const UNREADABLE: [Unreadable; 6] = [
    Unreadable {
        tool: "large",
        answer: |id| large(id, 2 * MAX_BYTES),
        error: "the limit is 50000 bytes",
    },
    Unreadable {
        tool: "deep",
        answer: |id| {
            let (open, close) = ("[".repeat(200), "]".repeat(200));
            format!(r#"{{"jsonrpc":"2.0","result":{{"x":{open}{close}}},"id":{id}}}"#)
        },
        error: "the limit is 128 levels",
    },
    Unreadable {
        tool: "large-and-deep",
        answer: |id| {
            let (open, close) = (r#"{"id":0,"x":"#.repeat(9_000), "}".repeat(9_000));
            format!(r#"{{"jsonrpc":"2.0","result":{open}0{close},"id":{id}}}"#)
        },
        error: "the limit is 50000 bytes",
    },
    Unreadable {
        tool: "batch",
        answer: |id| {
            let notifications = r#"{"jsonrpc":"2.0","method":"notifications/x"},"#.repeat(100);
            format!(r#"[{notifications}{{"jsonrpc":"2.0","result":{{}},"id":{id}}}]"#)
        },
        error: "the limit is 100 messages",
    },
    Unreadable {
        tool: "broken",
        answer: |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[}}}}"#),
        error: "cannot be read: invalid json",
    },
    Unreadable {
        tool: "invalid",
        answer: |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"no"}}"#),
        error: "error must be an object",
    },
];

/// A response with the id last, as many servers write it.
fn large(id: &Value, size: usize) -> String {
    let text = "x".repeat(size);
    format!(r#"{{"result":{{"content":[],"id":0,"x":"{text}"}},"jsonrpc":"2.0","id":{id}}}"#)
}

/// An answer of exactly this many bytes.
fn of_size(id: &Value, bytes: usize) -> String {
    let answer = large(id, bytes - large(id, 0).len());
    assert_eq!(answer.len(), bytes);
    answer
}

fn large_notification() -> String {
    let text = "x".repeat(2 * MAX_BYTES);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":"{text}"}}}}"#)
}

fn large_request() -> String {
    let text = "x".repeat(2 * MAX_BYTES);
    format!(r#"{{"method":"roots/list","params":{{"x":"{text}"}},"jsonrpc":"2.0","id":"q"}}"#)
}

fn offer(revision: Revision) -> Offer {
    let names = UNREADABLE.iter().map(|unreadable| unreadable.tool);
    Offer::tools(revision, names.chain(["a"]).map(tool))
}

fn start_call(upstream: &Upstream) -> Boxed<Outcome> {
    call(upstream, "tools/call", &json!({"name": "a"}))
}

/// A call that the server has received, and its request.
async fn called(upstream: &Upstream, process: &Process) -> (Boxed<Outcome>, Value) {
    let mut calling = start_call(upstream);
    let request = during(&mut calling, process.received("tools/call")).await;
    (calling, request)
}

/// A program that answers no call by itself.
async fn quiet(revision: Revision) -> StdioServer {
    StdioServer::new(Script::from(&offer(revision)).ignoring("tools/call")).await
}

#[tokio::test]
async fn over_stdio_an_unreadable_answer_fails_its_call_and_no_other() {
    for revision in [LEGACY, STATELESS] {
        let server = quiet(revision).await;
        let upstream = connected(limited(stdio(&server))).await;
        let process = server.process().await;
        for Unreadable {
            tool,
            answer,
            error,
        } in UNREADABLE
        {
            let (other, other_request) = called(&upstream, &process).await;
            let (calling, request) = called(&upstream, &process).await;
            process.perform(Step::Print(answer(&request["id"]))).await;
            let fault = within(tool, calling).await.expect_err(tool);
            assert!(fault.to_string().contains(error), "{tool}: {fault}");
            let is_size = error.ends_with("bytes");
            assert_eq!(fault.code(LEGACY) == -32801, is_size, "{tool}: {fault}");

            process.reply(&other_request, json!({"content": []})).await;
            within("the other call", other).await.unwrap();
            let (next, request) = called(&upstream, &process).await;
            process.reply(&request, json!({"content": []})).await;
            within("the next call", next).await.unwrap();
        }
        assert_eq!(status(&upstream).state, ServerState::Connected);
        let violations = upstream.report().unwrap().violations;
        assert_eq!(violations.too_long, 4, "{violations:?}");
        assert_eq!(violations.not_json, 1, "{violations:?}");
        assert_eq!(violations.unknown_answers, 0, "{violations:?}");
        assert!(
            !process
                .methods()
                .await
                .contains(&"notifications/cancelled".to_owned())
        );
    }
}

/// The limit is the largest message that is accepted: the ending of its line does not count.
#[tokio::test]
async fn over_stdio_the_limit_counts_the_message_and_nothing_else() {
    let server = quiet(LEGACY).await;
    let upstream = connected(limited(stdio(&server))).await;
    let process = server.process().await;
    for ending in ["\n", "\r\n"] {
        let (calling, request) = called(&upstream, &process).await;
        let answer = of_size(&request["id"], MAX_BYTES) + ending;
        process.perform(Step::Write(answer)).await;
        within("an answer of the size", calling).await.unwrap();
        let (calling, request) = called(&upstream, &process).await;
        let answer = of_size(&request["id"], MAX_BYTES + 1) + ending;
        process.perform(Step::Write(answer)).await;
        let fault = within("a larger answer", calling).await.unwrap_err();
        assert!(fault.to_string().contains("50000 bytes"), "{fault}");
    }
}

/// The same over HTTP: what is around the data of an event does not count either.
#[tokio::test]
async fn over_http_the_limit_counts_the_message_and_nothing_else() {
    let answers: [fn(&Value, usize) -> Reply; 4] = [
        |id, bytes| Reply::status(200).with_json(&of_size(id, bytes)),
        |id, bytes| {
            let (reply, stream) = Reply::stream();
            let answer = of_size(id, bytes);
            let (one, two) = answer.split_at(bytes / 2);
            stream.write_now(one);
            stream.write_now(two);
            reply.with_header("content-type", "application/json")
        },
        |id, bytes| {
            let (reply, stream) = Reply::stream();
            stream.write_now(&format!("id: 1\ndata: {}\n\n", of_size(id, bytes)));
            reply
        },
        |id, bytes| {
            let (reply, stream) = Reply::stream();
            stream.write_now(&format!("data:{}\r\n\r\n", of_size(id, bytes)));
            reply
        },
    ];
    for answer in answers {
        let offer = offer(LEGACY);
        let server = HttpServer::start(move |request| {
            let size = match request.body["params"]["name"].as_str() {
                Some("a") => MAX_BYTES,
                Some(_larger) => MAX_BYTES + 1,
                None => return request.reply_from(&offer),
            };
            answer(&request.body["id"], size)
        })
        .await;
        let upstream = connected(limited(http(&server))).await;
        call_tool(&upstream, "a").await;
        let failure = call_fails(&upstream, "large").await;
        assert!(failure.contains("50000 bytes"), "{failure}");
        call_tool(&upstream, "a").await;
    }
}

/// A size that real servers send, with the default limit.
#[tokio::test]
async fn an_answer_of_17_mebibytes_fails_within_a_second_of_its_end() {
    const SIZE: usize = 17 * 1024 * 1024;
    let server = quiet(LEGACY).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let (mut calling, request) = called(&upstream, &process).await;
    let answer = large(&request["id"], SIZE);
    let (most, end) = answer.split_at(SIZE);
    process.perform(Step::Write(most.to_owned())).await;
    // The pipe is small, so the client has read nearly all of the response by now.
    during(&mut calling, process.all()).await;

    let start = Instant::now();
    process.perform(Step::Print(end.to_owned())).await;
    let fault = within("the failure", calling).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1));
    let size = answer.len();
    assert_eq!(
        fault.to_string(),
        format!(
            "the server's answer is too large: {size} bytes or more, the limit is 16777216 bytes \
             (16 MiB)"
        )
    );
    let (next, request) = called(&upstream, &process).await;
    process.reply(&request, json!({"content": []})).await;
    within("the next call", next).await.unwrap();
}

/// Without an answer, the server would wait for ever.
#[tokio::test]
async fn a_request_of_the_server_beyond_the_limit_is_answered_with_an_error() {
    let server = quiet(LEGACY).await;
    let upstream = connected(limited(stdio(&server))).await;
    let process = server.process().await;
    process.perform(Step::Print(large_request())).await;
    let answer = process.answer(&json!("q")).await;
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(answer["error"]["data"]["limit"], MAX_BYTES);
    assert_eq!(upstream.report().unwrap().violations.too_long, 1);
}

/// A log line may contain the text of a response.
#[tokio::test]
async fn junk_that_names_an_id_fails_no_call() {
    let server = quiet(LEGACY).await;
    let upstream = connected(limited(stdio(&server))).await;
    let process = server.process().await;
    let (mut calling, request) = called(&upstream, &process).await;
    let id = &request["id"];
    for junk in [
        format!("sending {}", large(id, 2 * MAX_BYTES)),
        format!("[debug] sending {}", large(id, 10)),
        format!(r#"{{"level":"error","id":{id},"error":"x"}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"id":{id},"x":"{}"}}}}"#,
            "x".repeat(2 * MAX_BYTES)
        ),
    ] {
        process.perform(Step::Print(junk)).await;
    }
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    process.say(ping).await;
    during(&mut calling, process.answer(&json!("p"))).await;
    process.reply(&request, json!({"content": []})).await;
    within("the result", calling).await.unwrap();
}

/// A Streamable HTTP server whose tools answer with JSON, whole or in chunks, or with events.
async fn http_server(answer: fn(&str) -> Reply) -> HttpServer {
    let offer = offer(LEGACY);
    HttpServer::start(move |request| {
        if request.mcp() != "tools/call" {
            return request.reply_from(&offer);
        }
        let named = request.body["params"]["name"].as_str();
        let unreadable = UNREADABLE.iter().find(|each| Some(each.tool) == named);
        match unreadable {
            Some(unreadable) => answer(&(unreadable.answer)(&request.body["id"])),
            None => Reply::json(&request.result(&json!({"content": []}))),
        }
    })
    .await
}

async fn every_unreadable_answer_fails(upstream: &Upstream, tools: &[&str]) {
    for unreadable in UNREADABLE {
        if !tools.contains(&unreadable.tool) {
            continue;
        }
        let failure = call_fails(upstream, unreadable.tool).await;
        assert!(
            failure.contains(unreadable.error),
            "{}: {failure}",
            unreadable.tool
        );
        call_tool(upstream, "a").await;
    }
    assert_eq!(status(upstream).state, ServerState::Connected);
}

#[tokio::test]
async fn over_http_an_unreadable_json_body_fails_its_call() {
    let whole: fn(&str) -> Reply = |answer| Reply::status(200).with_json(answer);
    let in_chunks: fn(&str) -> Reply = |answer| {
        let (reply, stream) = Reply::stream();
        let (one, two) = answer.split_at(answer.len() / 2);
        stream.write_now(one);
        stream.write_now(two);
        reply.with_header("content-type", "application/json")
    };
    for reply in [whole, in_chunks] {
        let server = http_server(reply).await;
        let upstream = connected(limited(http(&server))).await;
        let tools = ["large", "deep", "large-and-deep", "batch", "broken"];
        every_unreadable_answer_fails(&upstream, &tools).await;
    }
}

/// The stream stays open, so the call does not fail because of its end.
#[tokio::test]
async fn over_http_an_unreadable_event_fails_the_call_of_its_stream() {
    static OPEN: Mutex<Vec<plexus_testkit::server::Stream>> = Mutex::new(Vec::new());
    let server = http_server(|answer| {
        let (reply, stream) = Reply::stream();
        stream.write_now(&format!("data: {}\n\n", large_notification()));
        stream.write_now(&format!("id: 1\ndata: {answer}\n\n"));
        OPEN.lock().unwrap().push(stream);
        reply
    })
    .await;
    let upstream = connected(limited(http(&server))).await;
    let tools = UNREADABLE.map(|unreadable| unreadable.tool);
    every_unreadable_answer_fails(&upstream, &tools).await;
    let streams = std::mem::take(&mut *OPEN.lock().unwrap());
    assert_eq!(streams.len(), tools.len());
    for stream in streams {
        stream.closed().await;
    }
}

#[tokio::test]
async fn over_http_a_large_notification_or_request_does_not_fail_the_call() {
    let offer = offer(LEGACY);
    let open = Arc::new(Mutex::new(None));
    let opened = Arc::clone(&open);
    let server = HttpServer::start(move |request| {
        if request.mcp() != "tools/call" {
            return request.reply_from(&offer);
        }
        let (reply, stream) = Reply::stream();
        stream.write_now(&format!("data: {}\n\n", large_notification()));
        stream.write_now(&format!("data: {}\n\n", large_request()));
        *opened.lock().unwrap() = Some(stream);
        reply
    })
    .await;
    let upstream = connected(limited(http(&server))).await;
    let mut calling = start_call(&upstream);
    let request = during(&mut calling, server.received("tools/call")).await;
    let refused = during(&mut calling, server.answer(&json!("q"))).await;
    assert_eq!(refused.body["error"]["data"]["limit"], MAX_BYTES);
    let stream = open.lock().unwrap().take().unwrap();
    stream.say(&request.result(&json!({"content": []}))).await;
    within("the result", calling).await.unwrap();
    assert_eq!(upstream.report().unwrap().violations.too_long, 2);
}

#[tokio::test]
async fn over_http_with_sse_an_unreadable_event_fails_its_call_and_no_other() {
    let server = sse::server(offer(Revision::V2024_11_05), |_| None).await;
    let upstream = connected(limited(server.definition())).await;
    let answered = json!({"content": []});
    for Unreadable {
        tool,
        answer,
        error,
    } in UNREADABLE
    {
        let mut other = start_call(&upstream);
        let other_request = during(&mut other, server.http.received("tools/call")).await;
        let mut calling = start_call(&upstream);
        let request = during(&mut calling, server.http.received("tools/call")).await;
        server.say_text(&large_notification());
        server.say_text(&answer(&request.body["id"]));
        let fault = within(tool, calling).await.expect_err(tool);
        assert!(fault.to_string().contains(error), "{tool}: {fault}");
        server.say_text(&other_request.result(&answered).to_string());
        within("the other call", other).await.unwrap();
    }
    assert_eq!(status(&upstream).state, ServerState::Connected);
    server.say_text(&large_request());
    let refused = server.http.answer(&json!("q")).await;
    assert_eq!(refused.body["error"]["code"], -32600);
}
