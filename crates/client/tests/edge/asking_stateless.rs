//! Questions of stateless servers, which are results of the type `input_required`.

use std::sync::Mutex;

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{AskError, Event};
use plexus_mcp_protocol::Fault;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    Caller, STATELESS, asked, call, call_fails, connected, during, http, raw, status_becomes,
    stdio, value,
};

/// A server that answers its calls with `results` in turn, and repeats the last result.
async fn server(results: Vec<Value>) -> HttpServer {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let results = Mutex::new(results);
    HttpServer::start(move |request: &Received| match request.mcp() {
        "tools/call" | "prompts/get" | "resources/read" => {
            let mut results = results.lock().unwrap();
            let next = if results.len() > 1 {
                results.remove(0)
            } else {
                results[0].clone()
            };
            Reply::json(&request.result(&next))
        }
        _ => request.reply_from(&offer),
    })
    .await
}

fn elicit(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sample() -> Value {
    json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
}

fn input_required(requests: &Value, state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required"});
    if !requests.is_null() {
        result["inputRequests"] = requests.clone();
    }
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

fn calls(server: &HttpServer, method: &str) -> Vec<Received> {
    let mut requests = server.all();
    requests.retain(|request| request.mcp() == method);
    requests
}

/// MRTR26-14, MRTR26-15, MRTR26-16, MRTR26-17: in each of two rounds, the retry has the server's
/// state unchanged, a new request id, and the arguments of the original call.
#[tokio::test]
async fn questions_are_answered_by_asking_again() {
    let state = "opaque \u{1f512} \"\\/\u{7f}\n=?base64? 0";
    let server = server(vec![
        input_required(&json!({"who": elicit("Who?")}), Some(state)),
        input_required(&json!({"why": elicit("Why?")}), Some("second")),
        done(),
    ])
    .await;
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(json!({"elicitation": {"form": {}}}));
    let params = json!({"name": "a", "arguments": {"x": 1}, "vendor": true});
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &params);
    for (key, message) in [("who", "Who?"), ("why", "Why?")] {
        let ask = asked(&mut calling, &mut events).await;
        assert_eq!(ask.key.as_deref(), Some(key));
        let put = value(ask.question.params().unwrap());
        assert_eq!(put["message"], message);
        ask.answer(Ok(raw(
            &json!({"action": "accept", "content": {"key": key}}),
        )));
    }
    let result = value(&within("the result", calling).await.unwrap());
    assert_eq!(result["content"][0]["text"], "done");

    let rounds = calls(&server, "tools/call");
    assert_eq!(rounds.len(), 3);
    let params: Vec<_> = rounds.iter().map(|round| &round.body["params"]).collect();
    assert_eq!(params[0].get("requestState"), None);
    assert_eq!(params[0].get("inputResponses"), None);
    assert_eq!(params[1]["requestState"], state);
    assert_eq!(params[1]["inputResponses"]["who"]["content"]["key"], "who");
    assert_eq!(params[2]["requestState"], "second");
    let answers = json!({"why": {"action": "accept", "content": {"key": "why"}}});
    assert_eq!(params[2]["inputResponses"], answers);
    for params in params {
        assert_eq!(params["arguments"], json!({"x": 1}));
        assert_eq!(params["vendor"], true);
        let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(
            *declared,
            json!({"elicitation": {"form": {}}}),
            "the caller's own"
        );
    }
    assert_ne!(rounds[0].body["id"], rounds[1].body["id"]);
    assert_ne!(rounds[1].body["id"], rounds[2].body["id"]);
}

/// MRTR26-14: several questions of one result are answered with one retry.
#[tokio::test]
async fn questions_of_one_round_are_put_together() {
    let roots = json!({"method": "roots/list"});
    let questions = json!({"a": elicit("?"), "b": sample(), "c": roots});
    let server = server(vec![input_required(&questions, Some("s")), done()]).await;
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let mut asks = Vec::new();
    for _ in 0..3 {
        asks.push(asked(&mut calling, &mut events).await);
    }
    for ask in asks.into_iter().rev() {
        let answer = json!({"answers": ask.key});
        ask.answer(Ok(raw(&answer)));
    }
    within("the result", calling).await.unwrap();
    let rounds = calls(&server, "tools/call");
    assert_eq!(rounds.len(), 2);
    let expected = json!({"a": {"answers": "a"}, "b": {"answers": "b"}, "c": {"answers": "c"}});
    assert_eq!(rounds[1].body["params"]["inputResponses"], expected);
}

/// TRANSLATION §12.29: a large `requestState` is returned unchanged.
#[tokio::test]
async fn a_large_state_comes_back_whole() {
    let state = "12,\u{fc}\"".repeat(20_000);
    let wait = input_required(&Value::Null, Some(&state));
    let server = server(vec![wait, done()]).await;
    let upstream = connected(http(&server)).await;
    let calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    within("the result", calling).await.unwrap();
    let rounds = calls(&server, "tools/call");
    assert_eq!(rounds[1].body["params"]["requestState"], json!(state));
}

/// TRANSLATION §12.8: a missing-capability error reaches the caller with its message and data.
#[tokio::test]
async fn a_missing_capability_error_keeps_its_message_and_data() {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let missing = json!({"requiredCapabilities": {"elicitation": {}}});
    let data = missing.clone();
    let server = HttpServer::start(move |request: &Received| match request.mcp() {
        "tools/call" => {
            let mut answer = request.error(-32021, "elicitation required");
            answer["error"]["data"] = data.clone();
            Reply::status(400).with_json(&answer.to_string())
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    let calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let fault = within("the refusal", calling).await.unwrap_err();
    assert_eq!(fault.code(STATELESS), -32021);
    let error = fault.to_error(STATELESS);
    assert_eq!(error.message, "elicitation required");
    assert_eq!(value(&error.data.unwrap()), missing);
}

/// MRTR26-14: a result with a state and no questions is retried with that state.
#[tokio::test]
async fn a_result_with_state_only_is_asked_for_again() {
    let wait = |state| input_required(&Value::Null, Some(state));
    let server = server(vec![wait("1"), wait("2"), done()]).await;
    let upstream = connected(http(&server)).await;
    let result = within(
        "the result",
        call(&upstream, "tools/call", &json!({"name": "a"})),
    );
    assert_eq!(value(&result.await.unwrap())["content"][0]["text"], "done");
    let rounds = calls(&server, "tools/call");
    let states: Vec<_> = rounds
        .iter()
        .map(|r| r.body["params"]["requestState"].clone())
        .collect();
    assert_eq!(states, [Value::Null, json!("1"), json!("2")]);
    assert!(
        rounds
            .iter()
            .all(|r| r.body["params"].get("inputResponses").is_none())
    );
}

#[tokio::test]
async fn a_question_without_state_is_answered_without_state() {
    let server = server(vec![
        input_required(&json!({"q": elicit("?")}), None),
        done(),
    ])
    .await;
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(json!({"elicitation": {}}));
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let ask = asked(&mut calling, &mut events).await;
    ask.answer(Ok(raw(&json!({"action": "decline"}))));
    within("the result", calling).await.unwrap();
    let rounds = calls(&server, "tools/call");
    assert_eq!(rounds[1].body["params"].get("requestState"), None);
    assert_eq!(
        rounds[1].body["params"]["inputResponses"]["q"]["action"],
        "decline"
    );
}

/// TRANSLATION §6.4: the number of rounds is limited.
#[tokio::test]
async fn a_server_cannot_ask_for_ever() {
    let server = server(vec![input_required(
        &json!({"r": {"method": "roots/list"}}),
        Some("s"),
    )])
    .await;
    let upstream = connected(http(&server)).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("asked more than"), "{failure}");
    assert!((10..=12).contains(&calls(&server, "tools/call").len()));
}

/// The user is not asked for an answer that would not be sent.
#[tokio::test]
async fn every_answer_of_a_caller_is_sent() {
    let server = server(vec![input_required(
        &json!({"who": elicit("Who?")}),
        Some("s"),
    )])
    .await;
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(json!({"elicitation": {"form": {}}}));
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let mut answers = 0;
    let failure = loop {
        tokio::select! {
            biased;
            outcome = &mut calling => break outcome.unwrap_err().to_string(),
            Some(Event::Ask(ask)) = events.recv() => {
                answers += 1;
                ask.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
            }
        }
    };
    assert!(failure.contains("asked more than"), "{failure}");
    assert_eq!(calls(&server, "tools/call").len(), answers + 1);
}

/// `prompts/get` and `resources/read` can ask, too.
#[tokio::test]
async fn prompts_and_resources_may_ask() {
    for (method, params) in [
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "a://b"})),
    ] {
        let server = server(vec![
            input_required(&json!({"q": elicit("?")}), Some("s")),
            done(),
        ])
        .await;
        let upstream = connected(http(&server)).await;
        let caller = Caller::able(json!({"elicitation": {}}));
        let (mut calling, mut events) = caller.call(&upstream, method, &params);
        let ask = asked(&mut calling, &mut events).await;
        ask.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
        within("the result", calling).await.unwrap();
        assert_eq!(calls(&server, method).len(), 2);
    }
}

/// TRANSLATION §6.4: a failed elicitation is answered with `cancel`, and a failed roots request
/// with an empty list. A failed sampling request has no such answer, so it fails the call.
#[tokio::test]
async fn refusals_are_put_in_the_servers_terms() {
    let server_that =
        |question: Value| server(vec![input_required(&json!({"q": question}), None), done()]);
    let caller = Caller::able(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    let cases = [
        (elicit("?"), Some(json!({"action": "cancel"}))),
        (json!({"method": "roots/list"}), Some(json!({"roots": []}))),
        (sample(), None),
    ];
    for (question, substitute) in cases {
        let server = server_that(question).await;
        let upstream = connected(http(&server)).await;
        let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
        let ask = asked(&mut calling, &mut events).await;
        ask.answer(Err(AskError::Malformed("odd".to_owned())));
        let outcome = within("the outcome", calling).await;
        let rounds = calls(&server, "tools/call");
        if let Some(substitute) = substitute {
            outcome.unwrap();
            assert_eq!(rounds[1].body["params"]["inputResponses"]["q"], substitute);
        } else {
            outcome.unwrap_err();
            assert_eq!(rounds.len(), 1);
        }
    }
}

/// MRTR26-05: a question that needs an undeclared capability fails the call; the caller is not
/// asked.
#[tokio::test]
async fn a_caller_is_not_asked_what_it_did_not_declare() {
    let server = server(vec![input_required(&json!({"q": sample()}), None), done()]).await;
    let upstream = connected(http(&server)).await;
    let caller = Caller::able(json!({"elicitation": {}}));
    let (calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let fault = within("the failure", calling).await.unwrap_err();
    assert!(matches!(fault, Fault::MissingCapability(_)), "{fault}");
    assert!(events.try_recv().is_none());
}

/// BASE-14, TRANSLATION §12.11, §12.12: a result of an unknown or unrequested type is an error.
#[tokio::test]
async fn a_result_of_an_unknown_kind_is_an_error() {
    for kind in ["task", "vendor/odd", ""] {
        let server = server(vec![json!({"resultType": kind, "content": []})]).await;
        let upstream = connected(http(&server)).await;
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("result type"), "{failure}");
    }
}

/// Malformed `inputRequests`, and methods that are not questions.
#[tokio::test]
async fn malformed_questions_are_errors() {
    let odd = [
        json!([]),
        json!("who?"),
        json!({"q": {}}),
        json!({"q": {"method": 7}}),
        json!({"q": {"method": "tools/call", "params": {}}}),
        json!({"q": "elicitation/create"}),
    ];
    for requests in odd {
        let server = server(vec![input_required(&requests, None), done()]).await;
        let upstream = connected(http(&server)).await;
        call_fails(&upstream, "a").await;
        assert_eq!(calls(&server, "tools/call").len(), 1, "{requests}");
    }
}

/// A dual-era server over stdio is locked to its era. If a tool sends a handshake-era question
/// anyway, it cannot be answered. The call fails with the reason, instead of waiting for ever.
#[tokio::test]
async fn a_call_that_asks_in_the_older_way_fails_with_the_reason() {
    let server = StdioServer::new(&Offer::tools(STATELESS, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let sent = during(&mut calling, process.received("tools/call")).await;
    let mut question = elicit("Who?");
    question["jsonrpc"] = json!("2.0");
    question["id"] = json!("q");
    process.say(question).await;
    let fault = within("the failure", calling)
        .await
        .unwrap_err()
        .to_string();
    for part in ["elicitation/create", "\"era\": \"legacy\""] {
        assert!(fault.contains(part), "{fault}");
    }
    let cancelled = process.received("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], sent["id"]);
}

/// With two calls in flight, the question may be of either, so neither is failed for it.
#[tokio::test]
async fn a_question_in_the_older_way_fails_no_call_if_two_may_have_asked() {
    let server = StdioServer::new(&Offer::tools(STATELESS, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let caller = Caller::able(json!({"elicitation": {"form": {}}}));
    let params = json!({"name": "a"});
    let (mut older, _older_events) = caller.call(&upstream, "tools/call", &params);
    let older_sent = during(&mut older, process.received("tools/call")).await;
    let (mut newer, _newer_events) = caller.call(&upstream, "tools/call", &params);
    let newer_sent = during(&mut newer, process.received("tools/call")).await;
    let mut question = elicit("Who?");
    question["jsonrpc"] = json!("2.0");
    question["id"] = json!("q");
    process.say(question).await;
    process.reply(&newer_sent, done()).await;
    within("the newer result", newer).await.unwrap();
    process.reply(&older_sent, done()).await;
    within("the older result", older).await.unwrap();
}

/// BASE-17, HTTP26-05: a stateless server must not send requests; they are not answered.
#[tokio::test]
async fn a_stateless_server_that_asks_is_not_answered() {
    let questions = [
        json!({"jsonrpc": "2.0", "id": "q1", "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": "q2", "method": "roots/list"}),
        json!({"jsonrpc": "2.0", "id": "q3", "method": "vendor/what"}),
    ];
    let able = Caller::able(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    let offer = Offer::tools(STATELESS, [tool("a")]);

    let server = StdioServer::new(&offer).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    for question in &questions {
        process.say(question.clone()).await;
    }
    let (mut calling, mut events) = able.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    for question in &questions {
        process.say(question.clone()).await;
    }
    process.reply(&call, done()).await;
    within("the result", calling).await.unwrap();
    assert!(events.try_recv().is_none());
    let (mut calling, _) = able.call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, process.received("tools/call")).await;
    let sent = process.all().await;
    assert!(
        sent.iter().all(|message| message["method"].is_string()),
        "{sent:?}"
    );

    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" => {
            let mut events = questions.to_vec();
            events.push(request.result(&done()));
            Reply::events(&events)
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    for _ in 0..2 {
        let (calling, mut events) = able.call(&upstream, "tools/call", &json!({"name": "a"}));
        within("the result", calling).await.unwrap();
        assert!(events.try_recv().is_none());
    }
    within("the end", upstream.disconnect()).await;
    let sent = server.all();
    assert!(
        sent.iter().all(|request| !request.mcp().is_empty()),
        "{sent:?}"
    );
}

/// The server is lost while its question is open. The call fails and is not retried from the start,
/// because the server has already executed a part of it.
#[tokio::test]
async fn a_call_that_was_answered_is_not_begun_again() {
    let question = input_required(&json!({"q": elicit("?")}), Some("s"));
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let script = Script::from(&offer).on("tools/call", [Step::Result(question)]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    let caller = Caller::able(json!({"elicitation": {"form": {}}}));
    let params = json!({"name": "a", "arguments": {}});
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &params);
    let ask = asked(&mut calling, &mut events).await;
    server.process().await.perform(Step::Exit(3)).await;
    status_becomes(&upstream, ServerState::Failed).await;
    ask.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
    let failure = within("the failure", calling).await.unwrap_err();
    assert!(failure.to_string().contains("code 3"), "{failure}");
    status_becomes(&upstream, ServerState::Connected).await;
    let methods = server.process().await.methods().await;
    assert!(!methods.contains(&"tools/call".to_owned()), "{methods:?}");
}
