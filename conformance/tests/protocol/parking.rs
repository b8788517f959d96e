//! Parked calls: which retries resume them, and which are refused (MRTR26-06 to MRTR26-17,
//! TRANSLATION §8, §12 cases 1 to 5).

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, Transport};
use serde_json::{Value, json};

use crate::support::{call, connect, text};

const NAME: &str = "test_input_required_result_elicitation";

/// Runs the script over stdio and over HTTP.
async fn on_both(script: impl AsyncFn(&mut Client)) {
    for transport in [Transport::Stdio, Transport::Http] {
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let revision = Revision::V2026_07_28;
        let (mut client, _server) = connect(transport, revision, capabilities).await;
        script(&mut client).await;
        let rest = client.close().await;
        assert_eq!(rest, [] as [Value; 0]);
    }
}

/// Calls a tool that asks a question; returns the request state.
async fn park(client: &mut Client, params: Value) -> String {
    let asked = client.result("tools/call", params).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked["requestState"].as_str().unwrap().to_owned()
}

fn retry(mut params: Value, state: impl Into<Value>, responses: Value) -> Value {
    params["requestState"] = state.into();
    params["inputResponses"] = responses;
    params
}

fn named(name: &str) -> Value {
    json!({"user_name": {"action": "accept", "content": {"name": name}}})
}

/// Asserts that the retry is refused. The error is the same for every invalid state, so that it
/// tells an attacker nothing.
async fn assert_refused(client: &mut Client, params: Value, why: &str) {
    let error = client.error("tools/call", params).await;
    assert_eq!(error["code"], -32602, "{why}");
    assert_eq!(
        error["message"], "requestState is invalid or expired",
        "{why}"
    );
    assert_eq!(error.get("data"), None, "{why}");
}

/// Case 1, MRTR26-06, TRAP-18.
#[tokio::test]
async fn a_tampered_state_gets_nothing_back() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let state = park(client, params.clone()).await;
        let mut forged = vec![
            String::new(),
            "g1.0.AAAA".to_owned(),
            state.to_uppercase(),
            format!("{state}A"),
            format!(" {state}"),
            state.get(..state.len() - 1).unwrap().to_owned(),
            state.get(1..).unwrap().to_owned(),
            "x".repeat(100_000),
        ];
        for place in (0..state.len()).step_by(7) {
            let mut bytes = state.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            forged.push(String::from_utf8(bytes).unwrap());
        }
        for forged in forged {
            assert_refused(
                client,
                retry(params.clone(), forged.clone(), named("Eve")),
                &forged,
            )
            .await;
        }
        for wrong in [json!(1), json!({}), json!([state]), json!(true)] {
            let error = client
                .error("tools/call", retry(params.clone(), wrong, named("Eve")))
                .await;
            assert_eq!(error["code"], -32602);
        }
        let result = client
            .result("tools/call", retry(params, state, named("Kim")))
            .await;
        assert_eq!(text(&result), "Hello, Kim!");
    })
    .await;
}

/// Case 2, MRTR26-07, MRTR26-17, TRAP-21: the state belongs to one request.
#[tokio::test]
async fn a_state_is_good_for_its_own_request_only() {
    on_both(async |client| {
        let params = call("test_elicitation", json!({"message": "Who?"}));
        let state = park(client, params.clone()).await;
        let answer = json!({"q1": {"action": "decline"}});
        for other in [
            call("test_elicitation", json!({"message": "Who"})),
            call("test_elicitation", json!({})),
            call(NAME, json!({})),
            call("test_simple_text", json!({})),
            call("no_such_tool", json!({})),
        ] {
            let why = other.to_string();
            assert_refused(client, retry(other, state.clone(), answer.clone()), &why).await;
        }
        let prompt = json!({"name": "test_input_required_result_prompt"});
        let error = client
            .error("prompts/get", retry(prompt, state.clone(), answer.clone()))
            .await;
        assert_eq!(error["code"], -32602);
        let resource = json!({"uri": "test://static-text"});
        let error = client
            .error("resources/read", retry(resource, state.clone(), answer))
            .await;
        assert_eq!(error["code"], -32602);

        // Other metadata does not matter.
        let mut same = call("test_elicitation", json!({"message": "Who?"}));
        same["_meta"] = json!({"progressToken": "another"});
        let asked = client
            .result("tools/call", retry(same, state, json!({})))
            .await;
        assert_eq!(asked["resultType"], "input_required");
    })
    .await;
}

/// MRTR26-08: a state is valid for one retry.
#[tokio::test]
async fn a_state_is_good_once() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let state = park(client, params.clone()).await;
        let again = retry(params, state, named("Kim"));
        let result = client.result("tools/call", again.clone()).await;
        assert_eq!(text(&result), "Hello, Kim!");
        assert_refused(client, again.clone(), "second use").await;
        assert_refused(client, again, "third use").await;
    })
    .await;
}

/// MRTR26-09, MRTR26-12: unanswered questions are asked again with a new state. The old one is no
/// longer valid.
#[tokio::test]
async fn unanswered_questions_are_asked_again_with_a_new_state() {
    on_both(async |client| {
        let params = call("test_input_required_result_multiple_inputs", json!({}));
        let asked = client.result("tools/call", params.clone()).await;
        let questions = |asked: &Value| -> Vec<String> {
            let questions = asked["inputRequests"].as_object().unwrap();
            let mut keys: Vec<_> = questions.keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(questions(&asked), ["client_roots", "greeting", "user_name"]);
        let first = asked["requestState"].clone();

        let roots = json!({"client_roots": {"roots": [{"uri": "file:///home"}]}});
        let asked = client
            .result("tools/call", retry(params.clone(), first.clone(), roots))
            .await;
        assert_eq!(asked["resultType"], "input_required");
        assert_eq!(questions(&asked), ["greeting", "user_name"]);
        let second = asked["requestState"].clone();
        assert_ne!(first, second);
        assert_refused(
            client,
            retry(params.clone(), first, named("Kim")),
            "old state",
        )
        .await;

        // A retry without answers gets the same questions again.
        let mut silent = params.clone();
        silent["requestState"] = second;
        let asked = client.result("tools/call", silent).await;
        assert_eq!(questions(&asked), ["greeting", "user_name"]);
        let third = asked["requestState"].clone();

        let mut rest = named("Kim");
        rest["greeting"] =
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}});
        let result = client
            .result("tools/call", retry(params, third, rest))
            .await;
        assert_eq!(text(&result), "Hi, Kim! Roots: file:///home");
    })
    .await;
}

/// MRTR26-11.
#[tokio::test]
async fn answers_to_unknown_questions_are_ignored() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let state = park(client, params.clone()).await;
        let mut answers = named("Kim");
        answers["other"] = json!({"action": "accept"});
        answers["more"] = json!("anything");
        let result = client
            .result("tools/call", retry(params.clone(), state, answers))
            .await;
        assert_eq!(text(&result), "Hello, Kim!");

        let state = park(client, params.clone()).await;
        let wrong_key = json!({"name": {"action": "accept", "content": {"name": "Kim"}}});
        let asked = client
            .result("tools/call", retry(params, state, wrong_key))
            .await;
        assert_eq!(asked["resultType"], "input_required");
    })
    .await;
}

/// MRTR26-10: a malformed answer is refused, and the state stays valid.
#[tokio::test]
async fn a_malformed_answer_changes_nothing() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let state = park(client, params.clone()).await;
        for malformed in [
            json!("yes"),
            json!(1),
            json!({}),
            json!({"action": "maybe"}),
            json!({"action": 1}),
            json!({"action": "accept", "content": "Kim"}),
            Value::Null,
        ] {
            let answers = json!({"user_name": malformed});
            let params = retry(params.clone(), state.clone(), answers);
            let error = client.error("tools/call", params).await;
            assert_eq!(error["code"], -32602, "{malformed}");
        }
        let no_object = retry(params.clone(), state.clone(), json!([1]));
        assert_eq!(client.error("tools/call", no_object).await["code"], -32602);
        let result = client
            .result("tools/call", retry(params, state, named("Kim")))
            .await;
        assert_eq!(text(&result), "Hello, Kim!");
    })
    .await;
}

/// A first request may contain answers already. Questions without an answer are asked.
#[tokio::test]
async fn volunteered_answers_are_taken() {
    on_both(async |client| {
        let mut params = call(NAME, json!({}));
        params["inputResponses"] = named("Kim");
        let result = client.result("tools/call", params.clone()).await;
        assert_eq!(text(&result), "Hello, Kim!");
        params["inputResponses"] = json!({"other": {"action": "decline"}});
        let asked = client.result("tools/call", params).await;
        assert_eq!(asked["resultType"], "input_required");
    })
    .await;
}

/// Case 3.
#[tokio::test]
async fn a_list_ignores_states() {
    on_both(async |client| {
        let params = json!({"requestState": "x", "inputResponses": 5});
        let list = client.result("tools/list", params).await;
        assert_eq!(list["resultType"], "complete");
    })
    .await;
}

/// MRTR26-16 and case 5: a retry should have another id, but the same id is accepted, too.
#[tokio::test]
async fn a_retry_may_have_any_free_id() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let id = json!("the same");
        client.begin_as(&id, "tools/call", params.clone()).await;
        let asked = client.response(&id).await;
        let state = asked["result"]["requestState"].clone();
        let again = retry(params, state, named("Kim"));
        client.begin_as(&id, "tools/call", again).await;
        let response = client.response(&id).await;
        assert_eq!(text(&response["result"]), "Hello, Kim!");
    })
    .await;
}

/// Each of many parked calls gets its own answer.
#[tokio::test]
async fn parked_calls_do_not_mix() {
    on_both(async |client| {
        let params = call(NAME, json!({}));
        let mut states = Vec::new();
        for _ in 0..20 {
            states.push(park(client, params.clone()).await);
        }
        for (number, state) in states.into_iter().enumerate().rev() {
            let name = format!("number {number}");
            let retry = retry(params.clone(), state, named(&name));
            let result = client.result("tools/call", retry).await;
            assert_eq!(text(&result), format!("Hello, {name}!"));
        }
    })
    .await;
}

/// MRTR26-13: the question ends the stream. Messages after the retry belong to the retry.
#[tokio::test]
async fn progress_before_a_question_comes_before_it() {
    on_both(async |client| {
        let mut params = call("test_streaming_elicitation", json!({}));
        params["_meta"] = json!({"progressToken": "first"});
        let exchange = client.exchange("tools/call", params.clone()).await;
        let [report] = &exchange.before[..] else {
            panic!("one report was expected: {exchange:?}")
        };
        assert_eq!(report["params"]["progressToken"], "first");
        let asked = &exchange.response["result"];
        assert_eq!(asked["resultType"], "input_required");
        let (key, _) = asked["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let answers = json!({key: {"action": "cancel"}});
        let retry = retry(params, asked["requestState"].clone(), answers);
        let result = client.result("tools/call", retry).await;
        assert!(text(&result).contains("action=cancel"));
    })
    .await;
}
