//! Questions of handshake-era servers, which are JSON-RPC requests.

use plexus_mcp_core::{AskError, Question};
use plexus_testkit::server::{HttpServer, Offer, Process, Reply, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Caller, LEGACY, asked, call, connected, during, http, raw, stdio, value};

fn everything() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn questions() -> [(&'static str, Value, Value); 3] {
    let form = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "odd": 1});
    let sample = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5});
    [
        (
            "elicitation/create",
            form,
            json!({"action": "accept", "content": {"name": "Kim"}}),
        ),
        (
            "sampling/createMessage",
            sample,
            json!({"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"}),
        ),
        (
            "roots/list",
            Value::Null,
            json!({"roots": [{"uri": "file:///r"}]}),
        ),
    ]
}

fn request(id: &Value, method: &str, params: &Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if !params.is_null() {
        request["params"] = params.clone();
    }
    request
}

async fn ask(process: &Process, id: &Value, method: &str, params: &Value) {
    process.say(request(id, method, params)).await;
}

/// S004-72, S004-73, S004-D11: each question reaches the caller, and the server gets its answer.
#[tokio::test]
async fn questions_during_a_call_are_put_to_its_caller() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let caller = Caller::able(everything());
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    for (method, params, answer) in questions() {
        let id = json!(format!("q {method}"));
        ask(&process, &id, method, &params).await;
        let question = asked(&mut calling, &mut events).await;
        assert_eq!(question.question.method(), method);
        if let Some(put) = question.question.params() {
            assert_eq!(value(put), params);
        }
        question.answer(Ok(raw(&answer)));
        let given = during(&mut calling, process.answer(&id)).await;
        assert_eq!(given["result"], answer, "{method}");
    }
    process.reply(&call, json!({"content": []})).await;
    within("the result", calling).await.unwrap();
}

/// LIFE-09, TRANSLATION §5.4.5: a question that needs an undeclared capability is refused with an
/// error, and the caller does not see it.
#[tokio::test]
async fn questions_beyond_the_callers_capabilities_are_refused() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    for (method, params, _) in questions() {
        let id = json!(method);
        ask(&process, &id, method, &params).await;
        let answer = during(&mut calling, process.answer(&id)).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    let url = json!({"mode": "url", "url": "https://a", "message": "m", "elicitationId": "e"});
    ask(&process, &json!("url"), "elicitation/create", &url).await;
    let answer = during(&mut calling, process.answer(&json!("url"))).await;
    assert!(answer["error"]["code"].is_i64());
    process.reply(&call, json!({})).await;
    within("the result", calling).await.unwrap();
}

#[tokio::test]
async fn unknown_request_methods_are_refused() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let caller = Caller::able(everything());
    let (mut calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    ask(&process, &json!(1), "vendor/what", &json!({})).await;
    let answer = during(&mut calling, process.answer(&json!(1))).await;
    assert_eq!(answer["error"]["code"], -32601);
    process.reply(&call, json!({})).await;
    within("the result", calling).await.unwrap();

    ask(&process, &json!(2), "vendor/what", &json!({})).await;
    let answer = process.answer(&json!(2)).await;
    assert_eq!(answer["error"]["code"], -32601);
}

/// SAMP-13, S004-D11, TRANSLATION §5.10, §12.17: outside of a call, `ping` is answered, the list of
/// roots is empty, and every other question is refused.
#[tokio::test]
async fn questions_outside_of_a_call_are_answered_without_a_caller() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let _upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    for (method, params, _) in questions() {
        ask(&process, &json!(method), method, &params).await;
        let answer = process.answer(&json!(method)).await;
        if method == "roots/list" {
            assert_eq!(answer["result"], json!({"roots": []}));
        } else {
            assert_eq!(answer["error"]["code"], -32602);
        }
    }
    ask(&process, &json!("p"), "ping", &Value::Null).await;
    assert_eq!(process.answer(&json!("p")).await["result"], json!({}));
}

/// TRANSLATION §12.6: questions during the handshake and the listing belong to no call.
#[tokio::test]
async fn questions_during_the_greeting_and_the_listing_are_answered() {
    use plexus_testkit::server::{Script, Step};

    let offer = Offer::tools(LEGACY, [tool("a")]);
    let roots = Step::Say(request(&json!("r"), "roots/list", &Value::Null));
    let ping = Step::Say(request(&json!("p"), "ping", &Value::Null));
    let script = Script::from(&offer)
        .on("initialize", [ping, Step::Result(offer.initialized())])
        .on("notifications/initialized", [roots]);
    let server = StdioServer::new(script).await;
    let _upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    assert_eq!(process.answer(&json!("p")).await["result"], json!({}));
    assert_eq!(
        process.answer(&json!("r")).await["result"],
        json!({"roots": []})
    );
}

/// If the caller answers with an error, the server gets `cancel`, an empty list of roots, or an
/// error.
#[tokio::test]
async fn refusals_reach_the_server() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let caller = Caller::able(everything());
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, process.received("tools/call")).await;
    for (method, params, _) in questions() {
        let id = json!(format!("gone {method}"));
        ask(&process, &id, method, &params).await;
        let question = asked(&mut calling, &mut events).await;
        let is_sampling = matches!(question.question, Question::Sample(_));
        question.answer(Err(AskError::Gone));
        let answer = during(&mut calling, process.answer(&id)).await;
        match method {
            "elicitation/create" => assert_eq!(answer["result"]["action"], "cancel"),
            "roots/list" => assert_eq!(answer["result"]["roots"], json!([])),
            _ => assert!(is_sampling && answer["error"]["code"] == -1, "{answer}"),
        }
    }
}

/// CAN-03: a question that its server withdraws needs no answer.
#[tokio::test]
async fn a_withdrawn_question_is_not_answered() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let caller = Caller::able(everything());
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    let [(method, params, answer), ..] = questions();
    ask(&process, &json!(77), method, &params).await;
    let mut question = asked(&mut calling, &mut events).await;
    let withdrawal = json!({"requestId": 77, "reason": "never mind"});
    process
        .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": withdrawal}))
        .await;
    // The caller is notified, so that it can dismiss its dialog.
    during(&mut calling, within("the withdrawal", question.withdrawn())).await;
    question.answer(Ok(raw(&answer)));
    process.reply(&call, json!({})).await;
    within("the result", calling).await.unwrap();
    assert!(
        !process
            .all()
            .await
            .iter()
            .any(|message| message["id"] == 77)
    );
}

/// Over HTTP, a question on the response stream of a call belongs to that call.
#[tokio::test]
async fn questions_on_the_stream_of_a_call_are_put_to_its_caller() {
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
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(everything());
    let params = json!({"name": "a"});
    let (mut one, mut events_of_one) = caller.call(&upstream, "tools/call", &params);
    let first = during(&mut one, server.received("tools/call")).await;
    let stream_of_one = opened.recv().await.unwrap();
    let (mut other, mut events_of_other) = caller.call(&upstream, "tools/call", &params);
    let second = during(&mut other, server.received("tools/call")).await;
    let stream_of_other = opened.recv().await.unwrap();

    let [(method, form, answer), ..] = questions();
    stream_of_one.say(&request(&json!(9), method, &form)).await;
    let question = asked(&mut one, &mut events_of_one).await;
    assert!(events_of_other.try_recv().is_none());
    question.answer(Ok(raw(&answer)));
    let given = during(&mut one, server.answer(&json!(9))).await;
    assert_eq!(given.body["result"], answer);

    stream_of_one.say(&first.result(&json!({"n": 1}))).await;
    stream_of_other.say(&second.result(&json!({"n": 2}))).await;
    assert_eq!(value(&within("one", one).await.unwrap())["n"], 1);
    assert_eq!(value(&within("the other", other).await.unwrap())["n"], 2);
}

/// Common servers send their questions on the GET stream. While only one caller has calls in
/// flight, such a question is sent to that caller. Otherwise it is refused (SAMP-13), and the list
/// of roots is empty.
#[tokio::test]
async fn questions_on_the_stream_of_no_call_are_put_to_the_only_caller() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let (streams, mut opened) = tokio::sync::mpsc::channel(2);
    let server = HttpServer::start(move |request| {
        if request.method == ::http::Method::GET {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            return reply;
        }
        if request.mcp() == "tools/call" {
            return Reply::never();
        }
        request.reply_from(&offer)
    })
    .await;
    let upstream = connected(http(&server)).await;
    let stream = within("the stream", opened.recv()).await.unwrap();
    let [(method, params, answer), ..] = questions();
    stream.say(&request(&json!("early"), method, &params)).await;
    let early = within("the refusal", server.answer(&json!("early"))).await;
    assert_eq!(early.body["error"]["code"], -32602, "{:?}", early.body);

    let one = Caller::able(everything());
    let (mut calling, mut events) = one.call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, server.received("tools/call")).await;
    stream.say(&request(&json!("only"), method, &params)).await;
    let question = asked(&mut calling, &mut events).await;
    question.answer(Ok(raw(&answer)));
    let only = during(&mut calling, server.answer(&json!("only"))).await;
    assert_eq!(only.body["result"], answer);

    let other = Caller::able(everything());
    let (mut calling_too, _events) = other.call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling_too, server.received("tools/call")).await;
    for (method, params, _) in questions() {
        stream.say(&request(&json!(method), method, &params)).await;
        let answer = during(&mut calling, server.answer(&json!(method))).await;
        if method == "roots/list" {
            assert!(answer.body["result"]["roots"].is_array());
        } else {
            assert_eq!(answer.body["error"]["code"], -32602, "{:?}", answer.body);
        }
    }
}
