//! The interfaces of Substrate, Ghost and Bossman, each as a whole.

use serde_json::{Value, json};

use crate::process::{DATA_DIR, Plexus, plexus};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn serve(profile: &str) -> Plexus {
    Plexus::start(&["serve", "--stdio", "--profile", profile])
}

fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params }).to_string()
}

fn call(plexus: &mut Plexus, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    plexus.ask(&request("tools/call", &params))
}

fn tools(plexus: &mut Plexus) -> Vec<Value> {
    let list = plexus.ask(LIST);
    assert_eq!(list["result"].get("nextCursor"), None);
    list["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// These methods are not part of the interface.
fn assert_unknown(plexus: &mut Plexus, methods: &[&str]) {
    for method in methods {
        let answer = plexus.ask(&request(method, &json!({})));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

/// S000-01, S000-17, S000-20, S000-39, S000-53, C44: only the context graph is served.
#[test]
fn ghost_is_one_tool() {
    let mut plexus = serve("ghost");
    let answer = plexus.initialize("2025-03-26");
    assert_eq!(
        answer["result"],
        json!({
            "protocolVersion": "2025-03-26",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "contextgraph-ghost", "version": "1.0.0" },
        })
    );
    let tools = tools(&mut plexus);
    let [tool] = &tools[..] else {
        panic!("{tools:?}");
    };
    assert_eq!(tool["name"], "query_context");
    let description = "Query the context graph for relevant information";
    assert_eq!(tool["description"], description);
    assert_eq!(
        tool["inputSchema"],
        json!({
            "type": "object",
            "properties": { "query": { "type": "string", "description": "The search query" } },
            "required": ["query"],
            "additionalProperties": false,
        })
    );
    let others = [
        "resources/list",
        "prompts/list",
        "logging/setLevel",
        "memory/list",
    ];
    assert_unknown(&mut plexus, &others);

    // C11: another spelling of the same tool is accepted, another tool is not.
    let query = json!({ "query": "authentication patterns" });
    for tool in ["query_context", "context.query", "context_query"] {
        let answer = call(&mut plexus, tool, &query);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Found 0 relevant context nodes"), "{text}");
        assert_eq!(answer["result"]["isError"], false);
    }
    for tool in ["context_store", "create_task", "health_check"] {
        let answer = call(&mut plexus, tool, &json!({}));
        let unknown = format!("Unknown tool: {tool}");
        assert_eq!(
            answer["error"],
            json!({ "code": -32602, "message": unknown })
        );
    }
}

/// S000-28, S000-55: memories that were stored from a terminal are found.
#[test]
fn ghost_finds_what_is_in_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let own = |arguments: &[&str]| {
        let mut command = plexus(arguments);
        command
            .env(DATA_DIR, folder.path())
            .env("CONTEXTGRAPH_DB", folder.path().join("ghost.db"));
        Plexus::spawn(&mut command)
    };
    let text = "tokens are checked by the gateway";
    let mut storing = own(&["memory", "store", "auth", text]);
    assert_eq!(storing.end().code, Some(0));
    let mut plexus = own(&["serve", "--stdio", "--profile", "ghost"]);
    plexus.initialize("2025-03-26");
    let answer = call(
        &mut plexus,
        "query_context",
        &json!({ "query": "gateway tokens" }),
    );
    let found = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        found.starts_with("Found 1 relevant context nodes"),
        "{found}"
    );
    assert!(found.contains(text), "{found}");
}

/// S002-18, S002-20, S002-21, S002-22, S002-23, C42, C44: only the task list is served.
#[test]
fn bossman_is_eight_tools() {
    let mut plexus = serve("bossman");
    let answer = plexus.initialize("2025-03-26");
    assert_eq!(
        answer["result"],
        json!({
            "protocolVersion": "2025-03-26",
            "capabilities": { "tools": {}, "logging": {} },
            "serverInfo": { "name": "bossman", "version": "0.1.0" },
        })
    );
    let tools = tools(&mut plexus);
    let expected = [
        "create_task",
        "list_tasks",
        "get_task",
        "update_task",
        "delete_task",
        "add_blocker",
        "remove_blocker",
        "get_blockers",
    ];
    assert_eq!(names(&tools), expected);
    assert_eq!(tools[0]["description"], "Create a new task");
    let schema = &tools[0]["inputSchema"];
    assert_eq!(schema["required"], json!(["description"]));
    assert_eq!(schema["additionalProperties"], false);
    let description = &schema["properties"]["description"];
    assert_eq!(description["type"], "string");
    assert_eq!(description["description"], "Task description");
    assert_unknown(&mut plexus, &["resources/list", "prompts/list"]);
    let level = plexus.ask(&request("logging/setLevel", &json!({ "level": "debug" })));
    assert_eq!(level["result"], json!({}));

    // The messages about calls are not for this test.
    plexus.ask(&request("logging/setLevel", &json!({ "level": "info" })));
    for tool in ["create_task", "task.create_task", "task_create_task"] {
        let answer = call(
            &mut plexus,
            tool,
            &json!({ "description": "Fix parser bug" }),
        );
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let task: Value = serde_json::from_str(text).unwrap();
        let id = task["id"].as_str().unwrap();
        assert!(id.starts_with("task_"), "{id}");
        let shown = json!({ "id": id, "description": "Fix parser bug", "status": "pending" });
        assert_eq!(task, shown);
    }
    let answer = call(&mut plexus, "get_task", &json!({ "id": "task_xyz" }));
    let failed = json!([{ "type": "text", "text": "error: task not found: task_xyz" }]);
    assert_eq!(
        answer["result"],
        json!({ "content": failed, "isError": true })
    );
    for tool in ["claim_task", "nonexistent_tool"] {
        let answer = call(&mut plexus, tool, &json!({}));
        let unknown = format!("Unknown tool: {tool}");
        assert_eq!(
            answer["error"],
            json!({ "code": -32602, "message": unknown })
        );
    }
}

/// S003-10, S003-12, S003-16, C43: all services, with the names of the Substrate documents.
#[test]
fn substrate_is_everything_with_dots() {
    let mut plexus = serve("substrate");
    let answer = plexus.initialize("2024-11-05");
    let result = &answer["result"];
    assert_eq!(result["protocolVersion"], "2024-11-05");
    let version = env!("CARGO_PKG_VERSION");
    let info = json!({ "name": "substrate", "version": version });
    assert_eq!(result["serverInfo"], info);
    assert_eq!(result.get("instructions"), None);
    let declared = &result["capabilities"];
    assert_eq!(declared["tools"], json!({ "listChanged": true }));
    let resources = json!({ "subscribe": true, "listChanged": true });
    assert_eq!(declared["resources"], resources);
    assert_eq!(declared["logging"], json!({}));

    let names = plexus.tools();
    for name in ["health.check", "task.create_task", "bash.execute"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    for name in &names {
        assert_eq!(name.matches('.').count(), 1, "{name}");
    }
    let prompts = plexus.ask(&request("prompts/list", &json!({})));
    assert_eq!(
        declared.get("prompts").is_some(),
        prompts.get("error").is_none()
    );
}

/// S003-11, S003-19, S003-21, S003-29, C03, C05, C12: the errors of the Substrate documents.
#[test]
fn substrate_has_its_own_errors() {
    let mut plexus = serve("substrate");
    let early = plexus.ask(LIST);
    assert_eq!(early["error"]["code"], -32002);
    assert_eq!(early["error"]["message"], "Server not initialized");

    let params = json!({
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    });
    let refused = plexus.ask(&request("initialize", &params));
    assert_eq!(refused["error"]["code"], -32602);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Unsupported protocol version"),
        "{message}"
    );
    let data = &refused["error"]["data"];
    assert_eq!(data["requested"], "1999-01-01");
    assert!(
        data["supported"]
            .as_array()
            .unwrap()
            .contains(&json!("2024-11-05"))
    );

    // A refused handshake does not count: the next one succeeds.
    let answer = plexus.initialize("2025-03-26");
    assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
    let shapeless = call(&mut plexus, "shapeless", &json!({}));
    let message = "Invalid tool name format: shapeless";
    assert_eq!(
        shapeless["error"],
        json!({ "code": -32602, "message": message })
    );
    let unknown = call(&mut plexus, "no.such", &json!({}));
    assert_eq!(unknown["error"]["message"], "Unknown tool: no.such");
}

/// C07, C51: only for the validator, and beside any profile.
#[test]
fn validator_methods_need_the_compat_option() {
    let mut plain = serve("substrate");
    plain.initialize("2024-11-05");
    assert_unknown(&mut plain, &["server/info", "shutdown"]);
    let again = plain.initialize("2024-11-05");
    assert_eq!(again["error"]["code"], -32002, "{again}");

    let compat = ["--profile", "substrate", "--compat", "mcp-validator"];
    let mut plexus = Plexus::start(&[&["serve", "--stdio"][..], &compat].concat());
    plexus.initialize("2024-11-05");
    let info = plexus.ask(&request("server/info", &json!({})));
    assert_eq!(info["result"]["name"], "substrate");
    let versions = info["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2024-11-05")), "{info}");
    let shutdown = plexus.ask(&request("shutdown", &json!({})));
    assert_eq!(shutdown["result"], json!({}));
    let again = plexus.initialize("2024-11-05");
    assert_eq!(again["result"]["serverInfo"]["name"], "substrate");
}
