//! One check for each feature, the same for every pair of revisions and transports.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, within};
use serde_json::{Value, json};

use crate::questions::answered;
use crate::verdict::{Feature, Verdict, verdict};

const WATCHED: &str = "test://watched-resource";
/// The number of filler tools: more than one page of a list holds.
pub(crate) const FILLER: usize = 1_020;

/// Checks one cell of the matrix; panics if the translation is worse than its verdict.
pub(crate) async fn check(feature: Feature, client: &mut Client, server: Revision) {
    let verdict = verdict(feature, client.revision(), server);
    let is_lossless = verdict == Verdict::Lossless;
    let is_possible = !matches!(verdict, Verdict::Impossible(_));
    match feature {
        Feature::List => lists(client).await,
        Feature::Call => calls(client).await,
        Feature::Structured => structured(client, is_lossless).await,
        Feature::Progress => progress(client, is_lossless).await,
        Feature::Cancel => cancels(client).await,
        Feature::Log => logs(client).await,
        Feature::ListChanged => list_changed(client).await,
        Feature::Subscribe => subscribes(client).await,
        Feature::ElicitForm => elicits(client, is_possible).await,
        Feature::ElicitChoices => elicits_choices(client, is_lossless).await,
        Feature::ElicitUrl => elicits_by_url(client, is_possible).await,
        Feature::Sample => samples(client).await,
        Feature::Roots => roots(client).await,
        Feature::Complete => completes(client).await,
        Feature::Paging => pages(client).await,
        Feature::UnknownMethod => unknown(client).await,
    }
}

async fn lists(client: &mut Client) {
    for (method, member, name) in [
        ("tools/list", "tools", "test_simple_text"),
        ("prompts/list", "prompts", "test_simple_prompt"),
        ("resources/list", "resources", "static-text"),
        ("resources/templates/list", "resourceTemplates", "template"),
    ] {
        let list = client.result(method, json!({})).await;
        let entries = list[member].as_array().unwrap();
        let named = |entry: &&Value| entry["name"].as_str().is_some_and(|it| it.contains(name));
        assert!(entries.iter().any(|entry| named(&entry)), "{list}");
    }
}

async fn calls(client: &mut Client) {
    let result = client.call("test_simple_text", json!({})).await;
    assert_eq!(text(&result), "This is a simple text response for testing.");
    let failed = client.call("test_error_handling", json!({})).await;
    assert_eq!(failed["isError"], true);
    let read = json!({"uri": "test://static-text"});
    let read = client.result("resources/read", read).await;
    assert!(read["contents"][0]["text"].is_string(), "{read}");
    let prompt = json!({"name": "test_prompt_with_arguments",
        "arguments": {"arg1": "a", "arg2": "b"}});
    let prompt = client.result("prompts/get", prompt).await;
    let said = &prompt["messages"][0]["content"]["text"];
    assert_eq!(said, "Prompt with arguments: arg1='a', arg2='b'");
}

async fn structured(client: &mut Client, is_lossless: bool) {
    let result = client.call("test_structured", json!({})).await;
    let weather = json!({"temperature": 22.5, "conditions": "Partly cloudy"});
    let as_text: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(as_text, weather);
    let content = result.get("structuredContent");
    assert_eq!(content, is_lossless.then_some(&weather));
}

async fn progress(client: &mut Client, is_lossless: bool) {
    let params = json!({"name": "test_tool_with_progress", "arguments": {},
        "_meta": {"progressToken": "mine"}});
    let exchange = client.exchange("tools/call", params).await;
    let reports: Vec<_> = exchange
        .before
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|report| &report["params"])
        .collect();
    let last = reports.last().expect("a report");
    assert_eq!(last["progressToken"], "mine");
    assert_eq!(last["progress"].as_f64(), Some(100.0));
    let values: Vec<_> = reports
        .iter()
        .filter_map(|r| r["progress"].as_f64())
        .collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    assert_eq!(last.get("message").is_some(), is_lossless, "{last}");
}

async fn cancels(client: &mut Client) {
    let before = count(client).await;
    let params = json!({"name": "test_wait_for_cancel", "arguments": {},
        "_meta": {"progressToken": "running"}});
    let id = client.begin("tools/call", params).await;
    client.expect_method("notifications/progress").await;
    client.cancel(&id).await;
    within("the work to stop", async {
        while count(client).await == before {}
    })
    .await;
}

/// The number of calls that the server saw cancelled.
async fn count(client: &mut Client) -> u64 {
    let count = client.call("test_cancelled_count", json!({})).await;
    text(&count).parse().unwrap()
}

async fn logs(client: &mut Client) {
    let mut params = json!({"name": "test_logging_tool", "arguments": {}});
    if client.is_stateless() {
        params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "warning"});
    } else {
        let level = json!({"level": "warning"});
        client.result("logging/setLevel", level).await;
    }
    let exchange = client.exchange("tools/call", params).await;
    let levels: Vec<_> = exchange
        .before
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| message["params"]["level"].as_str().unwrap())
        .collect();
    assert_eq!(
        levels,
        ["warning", "error", "critical", "alert", "emergency"]
    );
}

async fn list_changed(client: &mut Client) {
    let listening = listen(client, json!({"toolsListChanged": true})).await;
    client.call("test_trigger_tool_change", json!({})).await;
    client
        .expect_method("notifications/tools/list_changed")
        .await;
    hang_up(client, listening).await;
}

async fn subscribes(client: &mut Client) {
    let listening = listen(client, json!({"resourceSubscriptions": [WATCHED]})).await;
    if listening.is_none() {
        let uri = json!({"uri": WATCHED});
        client.result("resources/subscribe", uri).await;
    }
    client.call("test_touch_watched_resource", json!({})).await;
    let updated = client
        .expect_method("notifications/resources/updated")
        .await;
    assert_eq!(updated["params"]["uri"], WATCHED);
    if listening.is_none() {
        let uri = json!({"uri": WATCHED});
        client.result("resources/unsubscribe", uri).await;
    }
    hang_up(client, listening).await;
}

/// Sends `subscriptions/listen`, and returns its id; `None` in the handshake era, which does not
/// have this request.
async fn listen(client: &mut Client, filter: Value) -> Option<Value> {
    if !client.is_stateless() {
        return None;
    }
    let params = json!({"notifications": filter});
    let id = client.begin("subscriptions/listen", params).await;
    let method = "notifications/subscriptions/acknowledged";
    let acknowledged = client.expect_method(method).await;
    assert_eq!(acknowledged["params"]["notifications"], filter);
    Some(id)
}

async fn hang_up(client: &mut Client, listening: Option<Value>) {
    if let Some(id) = listening {
        client.cancel(&id).await;
    }
}

async fn elicits(client: &mut Client, is_possible: bool) {
    let content = json!({"username": "kim", "email": "kim@example.com"});
    let answer = json!({"action": "accept", "content": content});
    let arguments = json!({"message": "Who are you?"});
    let (question, response) = answered(client, "test_elicitation", arguments, answer).await;
    assert_eq!(question.is_some(), is_possible, "{response}");
    if let Some(question) = question {
        assert_eq!(question["params"]["message"], "Who are you?");
        assert!(
            text(&response["result"]).contains("action=accept"),
            "{response}"
        );
    } else {
        refused(&response);
    }
}

/// The tool always gets a list of values, even if the client was asked for text.
async fn elicits_choices(client: &mut Client, is_lossless: bool) {
    let chosen = if is_lossless {
        json!(["value1", "value3"])
    } else {
        json!("First Choice, value3")
    };
    let answer = json!({"action": "accept", "content": {"titledMulti": chosen}});
    let tool = "test_elicitation_sep1330_enums";
    let (question, response) = answered(client, tool, json!({}), answer).await;
    let question = question.expect("a question");
    let field = &question["params"]["requestedSchema"]["properties"]["titledMulti"];
    let expected = if is_lossless { "array" } else { "string" };
    assert_eq!(field["type"], expected, "{question}");
    let received = text(&response["result"]);
    let expected = r#"action=accept, content={"titledMulti":["value1","value3"]}"#;
    assert!(received.ends_with(expected), "{response}");
}

async fn elicits_by_url(client: &mut Client, is_possible: bool) {
    let answer = json!({"action": "accept"});
    let (question, response) = answered(client, "test_url_elicitation", json!({}), answer).await;
    assert_eq!(question.is_some(), is_possible, "{response}");
    if let Some(question) = question {
        assert_eq!(question["params"]["url"], "https://example.com/sign-in");
        assert!(
            text(&response["result"]).contains("action=accept"),
            "{response}"
        );
    } else {
        refused(&response);
    }
}

async fn samples(client: &mut Client) {
    let content = json!({"type": "text", "text": "Paris"});
    let answer = json!({"role": "assistant", "content": content, "model": "scripted"});
    let arguments = json!({"prompt": "Capital of France?"});
    let (question, response) = answered(client, "test_sampling", arguments, answer).await;
    assert_eq!(question.unwrap()["params"]["maxTokens"], 100);
    assert_eq!(text(&response["result"]), "LLM response: Paris");
}

async fn roots(client: &mut Client) {
    let answer = json!({"roots": [{"uri": "file:///one"}]});
    let (question, response) = answered(client, "test_roots", json!({}), answer).await;
    assert!(question.is_some(), "{response}");
    assert_eq!(text(&response["result"]), "Roots: file:///one");
}

async fn completes(client: &mut Client) {
    let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
    let params = json!({"ref": reference, "argument": {"name": "arg1", "value": "par"}});
    let result = client.result("completion/complete", params).await;
    let values = json!(["paris", "park", "party"]);
    assert_eq!(result["completion"]["values"], values);
}

async fn pages(client: &mut Client) {
    let mut params = json!({});
    let mut filler = 0;
    let mut pages = 0;
    loop {
        let page = client.result("tools/list", params).await;
        let names = page["tools"].as_array().unwrap().iter();
        let is_filler = |tool: &&Value| {
            tool["name"]
                .as_str()
                .is_some_and(|it| it.starts_with("test_filler"))
        };
        filler += names.filter(is_filler).count();
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(filler, FILLER);
    assert!(pages > 1, "all on one page");
}

async fn unknown(client: &mut Client) {
    let error = client.error("vendor/unheard-of", json!({})).await;
    assert_eq!(error["code"], -32601, "{error}");
}

/// Asserts that a call whose question cannot be asked gets an error or a failed result.
fn refused(response: &Value) {
    let is_error = response.get("error").is_some() || response["result"]["isError"] == true;
    assert!(is_error, "{response}");
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
