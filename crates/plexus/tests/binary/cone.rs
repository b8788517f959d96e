//! Conversations with a model, through a running gateway.

use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{DATA_DIR, Plexus, plexus};

const KEY: &str = "sk-ant-very-secret";

fn start(data: &TempDir, model: &ScriptedModel) -> Plexus {
    let mut command = plexus(&["serve", "--stdio", "--log-level", "trace"]);
    command
        .env(DATA_DIR, data.path())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", model.base_url(Dialect::Anthropic));
    Plexus::spawn(&mut command)
}

/// Sends a request; returns its result and all earlier messages.
fn request(plexus: &mut Plexus, method: &str, params: &Value) -> (Value, Vec<Value>) {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    plexus.send(&request.to_string());
    let mut before = Vec::new();
    loop {
        let message = plexus.receive();
        if message["id"] == 1 {
            return (message["result"].clone(), before);
        }
        before.push(message);
    }
}

fn call(plexus: &mut Plexus, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let (result, _) = request(plexus, "tools/call", &params);
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"].clone()
}

fn prompts(plexus: &mut Plexus) -> Value {
    let (listed, _) = request(plexus, "prompts/list", &json!({}));
    listed["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].clone())
        .collect()
}

/// S003-04, S003-23, S003-25, S003-46, S003-51, S003-54: a conversation is streamed, subscribed to,
/// listed and stored across restarts, and no output contains the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_from_one_run_to_the_next() {
    let turns = [
        Turn::says(&["Sunny, ", "I think."]),
        Turn::Refuses(401, format!("bad key {KEY}")),
        Turn::says(&["As I said."]),
    ];
    let model = ScriptedModel::start(turns).await;
    let data = tempfile::tempdir().unwrap();
    let mut first = start(&data, &model);
    let greeting = first.initialize("2025-11-25");
    let declared = &greeting["result"]["capabilities"];
    assert_eq!(declared["prompts"]["listChanged"], true);
    assert_eq!(
        declared["resources"],
        json!({ "subscribe": true, "listChanged": true })
    );
    assert_eq!(prompts(&mut first), json!([]));

    let new = json!({
        "name": "weather",
        "model_id": "anthropic/scripted-large",
        "system_prompt": "Guess.",
    });
    let created = call(&mut first, "cone_create", &new);
    assert_eq!(prompts(&mut first), json!(["cone:weather"]));
    let tree = created["tree_id"].as_str().unwrap();
    let (listed, _) = request(&mut first, "resources/list", &json!({}));
    assert!(listed.to_string().contains(tree), "{listed}");

    let head = json!({ "uri": format!("arbor://tree/{tree}/head") });
    request(&mut first, "resources/subscribe", &head);
    let chat = json!({
        "name": "cone_chat",
        "arguments": { "identifier": "weather", "prompt": "Tomorrow?" },
        "_meta": { "progressToken": "t" },
    });
    let (result, mut told) = request(&mut first, "tools/call", &chat);
    assert_eq!(result["content"][0]["text"], "Sunny, I think.");
    let streamed: String = told
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter_map(|message| message["params"]["message"].as_str())
        .collect();
    assert_eq!(streamed, "Sunny, I think.");
    let is_update = |message: &Value| message["method"] == "notifications/resources/updated";
    while !told.iter().any(is_update) {
        told.push(first.receive());
    }
    let (read, _) = request(&mut first, "resources/read", &head);
    let node: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&node["role"], &node["content"]),
        (&json!("assistant"), &json!("Sunny, I think."))
    );

    let (refused, _) = request(&mut first, "tools/call", &chat);
    assert_eq!(refused["isError"], true);
    assert!(refused.to_string().contains("bad key [key]"), "{refused}");
    let ended = first.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let logs = ended.stderr.join("\n");
    assert!(!logs.contains(KEY), "{logs}");

    let mut second = start(&data, &model);
    second.initialize("2025-06-18");
    assert_eq!(prompts(&mut second), json!(["cone:weather"]));
    let (result, _) = request(&mut second, "tools/call", &chat);
    assert_eq!(result["content"][0]["text"], "As I said.");
    let question = &model.questions()[2].body;
    assert_eq!(question["messages"][0]["content"], "Tomorrow?");
    assert_eq!(question["messages"][1]["content"], "Sunny, I think.");
    assert_eq!(second.end().code, Some(0));
}

/// Without a key, the client's own model answers in both eras: by a sampling request in a session,
/// by `input_required` without one.
#[test]
fn the_clients_model_answers_in_either_era() {
    let mut command = plexus(&["serve", "--stdio"]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let mut plexus = Plexus::spawn(&mut command);
    let sampling = json!({ "sampling": {} });
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": sampling,
        "clientInfo": { "name": "test", "version": "0" },
    });
    request(&mut plexus, "initialize", &greeting);
    plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let new = json!({ "name": "helper", "model_id": "claude-x" });
    call(&mut plexus, "cone_create", &new);
    let answer = json!({
        "role": "assistant",
        "content": { "type": "text", "text": "Hi." },
        "model": "clients-own",
    });

    let mut chat = json!({
        "name": "cone_chat",
        "arguments": { "identifier": "helper", "prompt": "Hello?" },
    });
    let begun = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": chat });
    plexus.send(&begun.to_string());
    // There may be a notification about the new tree before it.
    let mut asked = plexus.receive();
    while asked.get("id").is_none() {
        asked = plexus.receive();
    }
    assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
    let answered = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    let mut said = plexus.ask(&answered.to_string());
    while said.get("id").is_none() {
        said = plexus.receive();
    }
    let result = said["result"].clone();
    assert_eq!(result["content"][0]["text"], "Hi.", "{result}");

    chat["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": sampling,
    });
    let (asked, _) = request(&mut plexus, "tools/call", &chat);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["answer"];
    assert_eq!(question["method"], "sampling/createMessage", "{asked}");
    let messages = question["params"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "what was said before is known");
    chat["inputResponses"] = json!({ "answer": answer });
    chat["requestState"] = asked["requestState"].clone();
    let (result, _) = request(&mut plexus, "tools/call", &chat);
    assert_eq!(result["content"][0]["text"], "Hi.", "{result}");
    assert_eq!(result["structuredContent"]["outcome"], "head");
    assert_eq!(plexus.end().code, Some(0));
}
