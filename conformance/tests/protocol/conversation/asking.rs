//! Tools that ask the client something: by a request of the server's own in a session, by
//! `input_required` and a retry without one.

use std::slice::from_ref;

use plexus_mcp::Revision;
use plexus_testkit::Client;
use serde_json::{Map, Value, json};

use crate::support::text;

every_client!(elicits);
every_client!(elicits_with_defaults);
every_client!(elicits_choices);
every_client!(elicits_a_visit);
every_client!(samples);
every_client!(asks_for_roots);
every_client!(asks_several_things_at_once);
every_client!(asks_again_and_again);
every_client!(asks_in_prompts);

/// ELIC-07, ELIC-19, MRTR26-01, TRANSLATION §6.4.
async fn elicits(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_elicitation", "arguments": {"message": "Who are you?"}});
    if client.revision() < Revision::V2025_06_18 {
        let error = client.error("tools/call", call).await;
        assert_eq!(error["code"], -32021);
        let needed = json!({"requiredCapabilities": {"elicitation": {}}});
        assert_eq!(error["data"], needed);
        return;
    }
    let content = json!({"username": "kim", "email": "kim@example.com"});
    let accepted = json!({"action": "accept", "content": content});
    for answer in [
        accepted,
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let (questions, result) = asked(client, "tools/call", &call, from_ref(&answer)).await;
        let [(method, params)] = &questions[..] else {
            panic!("one question was expected: {questions:?}")
        };
        assert_eq!(method, "elicitation/create");
        assert_eq!(params["message"], "Who are you?");
        assert_eq!(
            params["requestedSchema"]["required"],
            json!(["username", "email"])
        );
        let action = answer["action"].as_str().unwrap();
        let expected = format!("User response: action={action}, content=");
        assert!(text(&result).starts_with(&expected), "{result}");
    }
}

/// REVISIONS §13: defaults are harmless where the revision does not know them.
async fn elicits_with_defaults(client: &mut Client, _: &Value) {
    if client.revision() < Revision::V2025_06_18 {
        return;
    }
    let call = json!({"name": "test_elicitation_sep1034_defaults", "arguments": {}});
    let (questions, result) =
        asked(client, "tools/call", &call, &[json!({"action": "cancel"})]).await;
    let fields = &questions[0].1["requestedSchema"]["properties"];
    assert_eq!(fields["name"]["default"], "John Doe");
    assert_eq!(fields["score"]["default"].as_f64(), Some(95.5));
    assert_eq!(fields["verified"]["default"], true);
    assert!(text(&result).contains("action=cancel"), "{result}");
}

/// TRANSLATION §6.4: a form that the revision cannot show is cancelled on the client's behalf.
async fn elicits_choices(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_elicitation_sep1330_enums", "arguments": {}});
    match client.revision() {
        Revision::V2024_11_05 | Revision::V2025_03_26 => {}
        Revision::V2025_06_18 => {
            let result = client.result("tools/call", call).await;
            assert!(text(&result).contains("action=cancel"), "{result}");
        }
        Revision::V2025_11_25 | Revision::V2026_07_28 => {
            let content =
                json!({"titledSingle": "value1", "untitledMulti": ["option1", "option2"]});
            let answer = json!({"action": "accept", "content": content});
            let (questions, result) = asked(client, "tools/call", &call, &[answer]).await;
            let fields = &questions[0].1["requestedSchema"]["properties"];
            assert_eq!(fields["titledSingle"]["oneOf"][0]["const"], "value1");
            assert_eq!(fields["untitledMulti"]["type"], "array");
            assert!(text(&result).contains("action=accept"), "{result}");
        }
    }
}

/// ELIC-03, ELIC-07: an id only where the revision has one.
async fn elicits_a_visit(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_url_elicitation", "arguments": {}});
    if client.revision() < Revision::V2025_11_25 {
        let error = client.error("tools/call", call).await;
        assert_eq!(error["code"], -32021);
        return;
    }
    let answer = json!({"action": "accept"});
    let (questions, result) = asked(client, "tools/call", &call, &[answer]).await;
    let (_, params) = &questions[0];
    assert_eq!(params["mode"], "url");
    assert_eq!(params["url"], "https://example.com/sign-in");
    assert_eq!(
        params.get("elicitationId").is_some(),
        client.revision() == Revision::V2025_11_25
    );
    assert!(text(&result).starts_with("URL elicitation completed: action=accept"));
}

/// SAMP-12, SAMP-14.
async fn samples(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_sampling", "arguments": {"prompt": "Capital of France?"}});
    let (questions, result) = asked(client, "tools/call", &call, &[sampled("Paris")]).await;
    let (method, params) = &questions[0];
    assert_eq!(method, "sampling/createMessage");
    assert_eq!(params["maxTokens"], 100);
    let content = &params["messages"][0]["content"];
    let said = if content.is_array() {
        &content[0]
    } else {
        content
    };
    assert_eq!(said["text"], "Capital of France?");
    assert_eq!(text(&result), "LLM response: Paris");
}

/// ROOT-01, TRANSLATION §6.4.
async fn asks_for_roots(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_roots", "arguments": {}});
    let roots = json!({"roots": [{"uri": "file:///one"}, {"uri": "file:///two", "name": "Two"}]});
    let (questions, result) = asked(client, "tools/call", &call, &[roots]).await;
    assert_eq!(questions[0].0, "roots/list");
    assert_eq!(text(&result), "Roots: file:///one, file:///two");
}

/// MRTR26-03: all in one round; in a session, all before the first answer.
async fn asks_several_things_at_once(client: &mut Client, _: &Value) {
    if client.revision() < Revision::V2025_06_18 {
        return;
    }
    let call = json!({"name": "test_input_required_result_multiple_inputs", "arguments": {}});
    let answers = [
        json!({"action": "accept", "content": {"name": "Kim"}}),
        sampled("Hello"),
        json!({"roots": [{"uri": "file:///home"}]}),
    ];
    let (_, result) = asked(client, "tools/call", &call, &answers).await;
    assert_eq!(text(&result), "Hello, Kim! Roots: file:///home");
}

/// MRTR26-09.
async fn asks_again_and_again(client: &mut Client, _: &Value) {
    if client.revision() < Revision::V2025_06_18 {
        return;
    }
    let call = json!({"name": "test_input_required_result_multi_round", "arguments": {}});
    let answers = [
        json!({"action": "accept", "content": {"name": "Kim"}}),
        json!({"action": "accept", "content": {"color": "green"}}),
    ];
    let (_, result) = asked(client, "tools/call", &call, &answers).await;
    assert_eq!(text(&result), "Kim likes green.");
}

/// MRTR26-02: not only tools may ask.
async fn asks_in_prompts(client: &mut Client, _: &Value) {
    if client.revision() < Revision::V2025_06_18 {
        return;
    }
    let get = json!({"name": "test_input_required_result_prompt"});
    let answer = json!({"action": "accept", "content": {"context": "tests"}});
    let (_, result) = asked(client, "prompts/get", &get, &[answer]).await;
    let said = &result["messages"][0]["content"]["text"];
    assert_eq!(said, "Use this context: tests");
}

fn sampled(words: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": words}, "model": "scripted"})
}

/// Sends a request, and answers what the server asks on the way, in the order in which it asks.
/// Gives the questions and the result.
async fn asked(
    client: &mut Client,
    method: &str,
    params: &Value,
    answers: &[Value],
) -> (Vec<(String, Value)>, Value) {
    if client.is_stateless() {
        retried(client, method, params, answers).await
    } else {
        requested(client, method, params, answers).await
    }
}

async fn requested(
    client: &mut Client,
    method: &str,
    params: &Value,
    answers: &[Value],
) -> (Vec<(String, Value)>, Value) {
    let id = client.begin(method, params.clone()).await;
    let mut questions = Vec::new();
    for _ in answers {
        let mut question = client
            .expect("a question", |message| {
                message.get("id").is_some() && message.get("method").is_some()
            })
            .await;
        let method = question["method"].as_str().unwrap().to_owned();
        let answer = answer_to(&method, &questions, answers);
        client.answer(&question, answer).await;
        questions.push((method, question["params"].take()));
    }
    let mut response = client.response(&id).await;
    assert!(response.get("result").is_some(), "{response}");
    (questions, response["result"].take())
}

async fn retried(
    client: &mut Client,
    method: &str,
    params: &Value,
    answers: &[Value],
) -> (Vec<(String, Value)>, Value) {
    let mut questions = Vec::new();
    let mut states = Vec::new();
    let mut result = client.result(method, params.clone()).await;
    while result["resultType"] == "input_required" {
        let mut responses = Map::new();
        for (key, question) in result["inputRequests"].as_object().unwrap() {
            let method = question["method"].as_str().unwrap().to_owned();
            let answer = answer_to(&method, &questions, answers);
            responses.insert(key.clone(), answer);
            questions.push((method, question["params"].clone()));
        }
        let state = result["requestState"].as_str().unwrap().to_owned();
        assert!(!states.contains(&state), "a state came twice");
        let mut retry = params.clone();
        retry["inputResponses"] = responses.into();
        retry["requestState"] = json!(state);
        states.push(state);
        result = client.result(method, retry).await;
    }
    (questions, result)
}

/// The next of the answers that fit a question of this method.
fn answer_to(method: &str, asked_before: &[(String, Value)], answers: &[Value]) -> Value {
    let member = match method {
        "elicitation/create" => "action",
        "sampling/createMessage" => "role",
        "roots/list" => "roots",
        other => panic!("{other} is no question"),
    };
    let before = asked_before.iter().filter(|(asked, _)| asked == method);
    let mut fitting = answers.iter().filter(|answer| answer.get(member).is_some());
    fitting.nth(before.count()).unwrap().clone()
}
