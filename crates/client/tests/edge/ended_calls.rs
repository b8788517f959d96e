//! Questions that no caller takes: of calls that have ended, and of requests of Plexus itself.

use plexus_mcp_core::Presence;
use plexus_testkit::server::{HttpServer, Offer, Process, Reply, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Caller, LEGACY, asked, connected, during, for_clients, http, stdio, tools};

fn question(id: &str) -> Value {
    let form = json!({"message": id, "requestedSchema": {"type": "object", "properties": {}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form})
}

fn able() -> Caller {
    Caller {
        presence: Some(Presence::new()),
        ..Caller::able(json!({"elicitation": {}}))
    }
}

/// Waits until everything that the server has sent was dispatched.
async fn all_dispatched(process: &Process) {
    let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
    process.say(ping).await;
    process.answer(&json!("ping")).await;
}

/// A call that is not polled takes no questions. When it is dropped, its open question and the queued
/// ones are refused, so that the server does not wait for ever.
#[tokio::test]
async fn all_questions_of_a_dropped_call_are_refused() {
    for is_asked_before in [true, false] {
        let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
        let upstream = connected(for_clients(stdio(&server))).await;
        let process = server.process().await;
        let params = json!({"name": "a"});
        let (mut calling, mut events) = able().call(&upstream, "tools/call", &params);
        during(&mut calling, process.received("tools/call")).await;
        process.say(question("first")).await;
        if is_asked_before {
            let _open = asked(&mut calling, &mut events).await;
        }
        process.say(question("second")).await;
        all_dispatched(&process).await;
        drop(calling);
        process.received("notifications/cancelled").await;
        for id in ["first", "second"] {
            let answer = process.answer(&json!(id)).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}

/// A queued question that the server withdrew gets no answer.
#[tokio::test]
async fn a_withdrawn_question_of_a_dropped_call_is_not_answered() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let params = json!({"name": "a"});
    let (mut calling, _events) = able().call(&upstream, "tools/call", &params);
    during(&mut calling, process.received("tools/call")).await;
    process.say(question("withdrawn")).await;
    let withdrawal = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "withdrawn"}});
    process.say(withdrawal).await;
    process.say(question("kept")).await;
    all_dispatched(&process).await;
    drop(calling);
    process.answer(&json!("kept")).await;
    let all = process.all().await;
    assert!(all.iter().all(|message| message["id"] != "withdrawn"));
}

/// On stdio, a question does not name its call: a queued one may belong to another call of the same
/// caller, so it is put to that call.
#[tokio::test]
async fn a_queued_question_goes_to_another_call_of_its_caller() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let (caller, params) = (able(), json!({"name": "a"}));
    let (mut first, mut events) = caller.call(&upstream, "tools/call", &params);
    during(&mut first, process.received("tools/call")).await;
    let (mut second, _events) = caller.call(&upstream, "tools/call", &params);
    during(&mut second, process.received("tools/call")).await;
    process.say(question("queued")).await;
    all_dispatched(&process).await;
    drop(second);
    let question = asked(&mut first, &mut events).await;
    assert_eq!(
        question
            .question
            .params()
            .unwrap()
            .decode::<Value>()
            .unwrap()["message"],
        "queued"
    );
}

/// On Streamable HTTP the stream names the call, so the cancellation of a dropped call ends its open
/// question, and no other call of its caller is asked.
#[tokio::test]
async fn a_question_on_the_stream_of_a_dropped_call_ends_with_it() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let (streams, mut opened) = tokio::sync::mpsc::channel(2);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" => {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            reply
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(for_clients(http(&server))).await;
    let (caller, params) = (able(), json!({"name": "a"}));
    let (mut other, mut events_of_other) = caller.call(&upstream, "tools/call", &params);
    during(&mut other, server.received("tools/call")).await;
    let _stream_of_other = opened.recv().await.unwrap();
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &params);
    during(&mut calling, server.received("tools/call")).await;
    let stream = opened.recv().await.unwrap();
    stream.say(&question("open")).await;
    let _open = asked(&mut calling, &mut events).await;
    drop(calling);
    let cancelled = during(&mut other, server.received("notifications/cancelled")).await;
    let call = server
        .all()
        .into_iter()
        .rfind(|request| request.mcp() == "tools/call");
    assert_eq!(
        cancelled.body["params"]["requestId"],
        call.unwrap().body["id"]
    );
    assert!(events_of_other.try_recv().is_none());
}

/// A server asks for the roots on the stream of `tools/list`, and waits for them.
#[tokio::test]
async fn questions_on_the_stream_of_our_own_request_are_answered() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let (streams, mut opened) = tokio::sync::mpsc::channel(1);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/list" => {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            reply
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let listing = async {
        let list = server.received("tools/list").await;
        let stream = within("the stream", opened.recv()).await.unwrap();
        stream
            .say(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}))
            .await;
        let roots = server.answer(&json!("r")).await;
        assert_eq!(
            roots.body["result"],
            json!({"roots": []}),
            "{:?}",
            roots.body
        );
        stream.say(&question("q")).await;
        let refusal = server.answer(&json!("q")).await;
        assert_eq!(refusal.body["error"]["code"], -32602, "{:?}", refusal.body);
        stream
            .say(&list.result(&json!({"tools": [tool("a")]})))
            .await;
        stream
    };
    let (upstream, _stream) = tokio::join!(connected(for_clients(http(&server))), listing);
    assert_eq!(tools(&upstream), ["a"]);
}
