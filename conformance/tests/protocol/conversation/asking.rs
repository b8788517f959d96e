//! Tools with questions to the client: requests of the server in the handshake era,
//! `input_required` and a retry in the stateless era.

use std::slice::from_ref;

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, Transport};
use serde_json::{Map, Value, json};

use crate::support::{connect, text};

every_client!(elicits);
every_client!(elicits_with_defaults);
every_client!(elicits_choices);
every_client!(elicits_until_the_answer_fits);
every_client!(elicits_three_times_at_most);
every_client!(elicits_a_visit);
every_client!(samples);
every_client!(asks_for_roots);
every_client!(asks_several_things_at_once);
every_client!(asks_again_and_again);
every_client!(asks_in_prompts);

/// ELIC-07, ELIC-19, MRTR26-01, TRANSLATION §6.4.
async fn elicits(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_elicitation", "arguments": {"message": "Who are you?"}});
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

/// Forms have their defaults in every revision, also in those that do not specify defaults.
async fn elicits_with_defaults(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_elicitation_sep1034_defaults", "arguments": {}});
    let (questions, result) =
        asked(client, "tools/call", &call, &[json!({"action": "cancel"})]).await;
    let fields = &questions[0].1["requestedSchema"]["properties"];
    assert_eq!(fields["name"]["default"], "John Doe");
    assert_eq!(fields["score"]["default"].as_f64(), Some(95.5));
    assert_eq!(fields["verified"]["default"], true);
    assert!(text(&result).contains("action=cancel"), "{result}");
}

/// TRANSLATION §6.4: a choice of a kind that the revision lacks becomes a text field. The tool gets
/// the chosen values in their original type.
async fn elicits_choices(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_elicitation_sep1330_enums", "arguments": {}});
    let is_lowered = has_plain_forms(client);
    let content = if is_lowered {
        json!({"titledSingle": "First Option", "untitledMulti": "option1, option2",
            "titledMulti": "[\"Third Choice\"]", "legacyEnum": "opt1"})
    } else {
        json!({"titledSingle": "value1", "untitledMulti": ["option1", "option2"],
            "titledMulti": ["value3"], "legacyEnum": "opt1"})
    };
    let answer = json!({"action": "accept", "content": content});
    let (questions, result) = asked(client, "tools/call", &call, &[answer]).await;
    let fields = &questions[0].1["requestedSchema"]["properties"];
    if is_lowered {
        assert_eq!(fields["titledSingle"]["enumNames"][0], "First Option");
        assert_eq!(fields["untitledMulti"]["type"], "string");
        let description = fields["titledMulti"]["description"].as_str().unwrap();
        assert!(
            description.contains("value1 (First Choice)"),
            "{description}"
        );
    } else {
        assert_eq!(fields["titledSingle"]["oneOf"][0]["const"], "value1");
        assert_eq!(fields["untitledMulti"]["type"], "array");
    }
    let received = received(&result);
    let expected = json!({"titledSingle": "value1", "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value3"], "legacyEnum": "opt1"});
    assert_eq!(received, expected, "{result}");
}

/// If the answer to a lowered form is invalid for the original form, the question is repeated.
async fn elicits_until_the_answer_fits(client: &mut Client, _: &Value) {
    if !has_plain_forms(client) {
        return;
    }
    let call = json!({"name": "test_elicitation_sep1330_enums", "arguments": {}});
    let answers = ["option9", "option1,option2,optoin3", "OPTION3"];
    let answers =
        answers.map(|written| json!({"action": "accept", "content": {"untitledMulti": written}}));
    let (questions, result) = asked(client, "tools/call", &call, &answers).await;
    let messages: Vec<_> = questions
        .iter()
        .map(|(_, params)| params["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages[0], "Please choose.");
    assert!(
        messages[1].contains("\"option9\" is not one of"),
        "{messages:?}"
    );
    assert!(
        messages[2].contains("\"optoin3\" is not one of"),
        "{messages:?}"
    );
    assert_eq!(received(&result), json!({"untitledMulti": ["option3"]}));
}

/// After two repetitions the question counts as cancelled: no invalid answer reaches the server.
async fn elicits_three_times_at_most(client: &mut Client, _: &Value) {
    if !has_plain_forms(client) {
        return;
    }
    let call = json!({"name": "test_elicitation_sep1330_enums", "arguments": {}});
    let answer = json!({"action": "accept", "content": {"titledMulti": "Fourth Choice"}});
    let answers = [answer.clone(), answer.clone(), answer];
    let (_, result) = asked(client, "tools/call", &call, &answers).await;
    assert!(text(&result).contains("action=cancel"), "{result}");
    // A repeated question may be declined like any other.
    let declined = json!({"action": "decline"});
    let answers = [answers[0].clone(), declined];
    let (_, result) = asked(client, "tools/call", &call, &answers).await;
    assert!(text(&result).contains("action=decline"), "{result}");
}

/// LIFE-09: a call with a question fails if the client did not declare its capability.
#[tokio::test]
async fn a_client_that_declares_nothing_is_not_asked() {
    for revision in Revision::ALL {
        let (mut client, _server) = connect(Transport::Http, revision, json!({})).await;
        client.open().await;
        for (tool, arguments, capability) in [
            ("test_elicitation", json!({"message": "?"}), "elicitation"),
            ("test_sampling", json!({"prompt": "?"}), "sampling"),
            ("test_roots", json!({}), "roots"),
        ] {
            let call = json!({"name": tool, "arguments": arguments});
            let error = client.error("tools/call", call).await;
            assert_eq!(error["code"], -32021, "{revision}");
            let needed = json!({"requiredCapabilities": {capability: {}}});
            assert_eq!(error["data"], needed, "{revision}");
        }
        client.close().await;
    }
}

/// Whether the client gets forms of 2025-06-18. Older revisions have no forms, but their clients
/// may declare elicitation, and then get these.
fn has_plain_forms(client: &Client) -> bool {
    client.revision() < Revision::V2025_11_25
}

/// The content of the answer, which the tool repeats in its result.
fn received(result: &Value) -> Value {
    let (_, content) = text(result).split_once("content=").unwrap();
    serde_json::from_str(content).unwrap()
}

/// ELIC-03, ELIC-07: elicitation by URL has an `elicitationId` in 2025-11-25 only. In older
/// revisions the call fails.
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

/// MRTR26-03: a tool can ask several questions at the same time. They come in one round, or in a
/// session before the first answer.
async fn asks_several_things_at_once(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_input_required_result_multiple_inputs", "arguments": {}});
    let answers = [
        json!({"action": "accept", "content": {"name": "Kim"}}),
        sampled("Hello"),
        json!({"roots": [{"uri": "file:///home"}]}),
    ];
    let result = if client.is_stateless() {
        let first = client.result("tools/call", call.clone()).await;
        let questions = first["inputRequests"].as_object().unwrap();
        assert_eq!(questions.len(), answers.len(), "{first}");
        retried(client, "tools/call", &call, &answers).await.1
    } else {
        let id = client.begin("tools/call", call).await;
        let mut questions = Vec::new();
        for _ in &answers {
            let is_question =
                |message: &Value| message.get("id").is_some() && message.get("method").is_some();
            questions.push(client.expect("a question", is_question).await);
        }
        for question in &questions {
            let method = question["method"].as_str().unwrap();
            client
                .answer(question, answer_to(method, &[], &answers))
                .await;
        }
        client.response(&id).await["result"].take()
    };
    assert_eq!(text(&result), "Hello, Kim! Roots: file:///home");
}

/// MRTR26-09.
async fn asks_again_and_again(client: &mut Client, _: &Value) {
    let call = json!({"name": "test_input_required_result_multi_round", "arguments": {}});
    let answers = [
        json!({"action": "accept", "content": {"name": "Kim"}}),
        json!({"action": "accept", "content": {"color": "green"}}),
    ];
    let (_, result) = asked(client, "tools/call", &call, &answers).await;
    assert_eq!(text(&result), "Kim likes green.");
}

/// MRTR26-02: prompts can ask questions, too.
async fn asks_in_prompts(client: &mut Client, _: &Value) {
    let get = json!({"name": "test_input_required_result_prompt"});
    let answer = json!({"action": "accept", "content": {"context": "tests"}});
    let (_, result) = asked(client, "prompts/get", &get, &[answer]).await;
    let said = &result["messages"][0]["content"]["text"];
    assert_eq!(said, "Use this context: tests");
}

fn sampled(words: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": words}, "model": "scripted"})
}

/// Sends a request, and answers the questions of the server in their order. Returns the questions
/// and the result.
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

/// The first unused answer for a question of this method.
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
