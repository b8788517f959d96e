//! Opening a connection: the handshake, and the lists of the server.

use plexus_mcp_protocol::Revision;
use plexus_testkit::Client;
use serde_json::{Value, json};

every_client!(greets);
every_client!(lists);
every_client!(refuses_cursors_it_did_not_give);
every_client!(answers_ping_where_it_exists);
every_client!(knows_no_other_methods);

/// S000-17, S003-10, LIFE-02, LIFE-07, S002-07, C43; VER26-05, VER26-07, CACHE26-01.
async fn greets(client: &mut Client, greeting: &Value) {
    let identity = if client.is_stateless() {
        let versions = [
            "2026-07-28",
            "2025-11-25",
            "2025-06-18",
            "2025-03-26",
            "2024-11-05",
        ];
        assert_eq!(greeting["supportedVersions"], json!(versions));
        assert!(greeting.get("serverInfo").is_none(), "{greeting}");
        &greeting["_meta"]["io.modelcontextprotocol/serverInfo"]
    } else {
        assert_eq!(greeting["protocolVersion"], client.revision().as_str());
        &greeting["serverInfo"]
    };
    assert_eq!(identity["name"], "plexus-conformance");
    assert!(greeting["instructions"].is_string());
    let mut offered = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    // COMP-01: the first revision does not have this capability.
    if client.revision() > Revision::V2024_11_05 {
        offered["completions"] = json!({});
    }
    assert_eq!(greeting["capabilities"], offered);
}

/// S000-19, TOOL-03, CACHE26-03, TRANSLATION §6.10.
async fn lists(client: &mut Client, _: &Value) {
    let tools = client.result("tools/list", json!({})).await;
    let tool = |name: &str| find(&tools["tools"], "name", name);
    assert_eq!(tools["tools"][0]["name"], "test_simple_text");
    let has_structure = client.revision() >= Revision::V2025_06_18;
    assert_eq!(
        tool("test_structured").get("outputSchema").is_some(),
        has_structure
    );
    let expected = &include_str!("../../../src/schemas/json_schema_2020_12.json");
    let expected: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(tool("json_schema_2020_12_tool")["inputSchema"], expected);
    assert_eq!(tools.get("nextCursor"), None);

    let resources = client.result("resources/list", json!({})).await;
    find(&resources["resources"], "uri", "test://watched-resource");
    let templates = client.result("resources/templates/list", json!({})).await;
    let template = "test://template/{id}/data";
    find(&templates["resourceTemplates"], "uriTemplate", template);
    let prompts = client.result("prompts/list", json!({})).await;
    let prompt = find(&prompts["prompts"], "name", "test_prompt_with_arguments");
    assert_eq!(prompt["arguments"][0]["name"], "arg1");
    assert_eq!(client.result("tools/list", json!({})).await, tools);
}

/// PAGE-05.
async fn refuses_cursors_it_did_not_give(client: &mut Client, _: &Value) {
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        let error = client.error(method, json!({"cursor": "bogus"})).await;
        assert_eq!(error["code"], -32602, "{method}");
    }
}

/// S003-26, PING-01, S002-09, C47; PING-03.
async fn answers_ping_where_it_exists(client: &mut Client, _: &Value) {
    if client.is_stateless() {
        assert_eq!(client.error("ping", json!({})).await["code"], -32601);
    } else {
        assert_eq!(client.result("ping", json!({})).await, json!({}));
    }
}

/// S000-38, S000-42, S000-53, C52, HTTP26-17, and what 2026-07-28 removed.
async fn knows_no_other_methods(client: &mut Client, _: &Value) {
    let mut unknown = vec!["unknown/method", "tasks/list", "tasks/result"];
    if client.is_stateless() {
        unknown.extend([
            "initialize",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ]);
    } else {
        unknown.push("subscriptions/listen");
    }
    for method in unknown {
        let error = client.error(method, json!({})).await;
        assert_eq!(error["code"], -32601, "{method}");
    }
}

fn find<'a>(list: &'a Value, member: &str, wanted: &str) -> &'a Value {
    let entries = list.as_array().unwrap();
    let found = entries.iter().find(|entry| entry[member] == wanted);
    found.unwrap_or_else(|| panic!("no {wanted} in {list}"))
}
