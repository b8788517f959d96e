//! Tools, resources, prompts and completion, in the format of each revision.

use plexus_mcp_protocol::Revision;
use plexus_testkit::Client;
use serde_json::{Value, json};

use crate::support::text;

every_client!(calls_tools);
every_client!(reports_bad_arguments_as_the_revision_wants);
every_client!(refuses_what_does_not_exist);
every_client!(lowers_structured_content);
every_client!(lowers_links_and_recordings);
every_client!(reads_resources);
every_client!(gets_prompts);
every_client!(completes_arguments);

/// S003-20, S002-22, S002-32: a failed tool is a result with `isError`, not a JSON-RPC error.
async fn calls_tools(client: &mut Client, _: &Value) {
    let result = client.call("test_simple_text", json!({})).await;
    assert_eq!(text(&result), "This is a simple text response for testing.");
    let without_arguments = json!({"name": "test_simple_text"});
    let result = client.result("tools/call", without_arguments).await;
    assert_eq!(text(&result), "This is a simple text response for testing.");
    let failed = client.call("test_error_handling", json!({})).await;
    assert_eq!(failed["isError"], true);
    let mixed = client.call("test_multiple_content_types", json!({})).await;
    let types = mixed["content"].as_array().unwrap().iter();
    let types: Vec<_> = types.map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["text", "image", "resource"]);
}

/// S000-43, C10, TOOL-13: invalid arguments get a JSON-RPC error up to 2025-06-18, and a result
/// with
/// `isError`, which the model reads, from 2025-11-25 on.
async fn reports_bad_arguments_as_the_revision_wants(client: &mut Client, _: &Value) {
    for count in [json!(0), json!(11), json!("three"), Value::Null] {
        let params = json!({"name": "test_validated", "arguments": {"count": count}});
        if client.revision() < Revision::V2025_11_25 {
            let error = client.error("tools/call", params).await;
            assert_eq!(error["code"], -32602, "{count}");
        } else {
            let result = client.result("tools/call", params).await;
            assert_eq!(result["isError"], true, "{count}");
        }
    }
    let good = client.call("test_validated", json!({"count": 10})).await;
    assert_eq!(text(&good), "Count: 10");
    let no_object = json!({"name": "test_validated", "arguments": [1]});
    let error = client.error("tools/call", no_object).await;
    assert_eq!(error["code"], -32602);
}

/// C45, S002-23, PRM-03, RES-03, RES-04.
async fn refuses_what_does_not_exist(client: &mut Client, _: &Value) {
    let error = client.error("tools/call", json!({"name": "nope"})).await;
    assert_eq!(error["code"], -32602);
    assert_eq!(error["message"], "Unknown tool: nope");
    let error = client.error("prompts/get", json!({"name": "nope"})).await;
    assert_eq!(error["code"], -32602);
    let uri = json!({"uri": "test://nope"});
    let error = client.error("resources/read", uri.clone()).await;
    let code = if client.is_stateless() {
        -32602
    } else {
        -32002
    };
    assert_eq!(error["code"], code);
    assert_eq!(error["data"], uri);
    let incomplete = json!({"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}});
    let error = client.error("prompts/get", incomplete).await;
    assert_eq!(error["code"], -32602);
}

/// TOOL-06, TOOL-08, TRANSLATION §6.10.
async fn lowers_structured_content(client: &mut Client, _: &Value) {
    let result = client.call("test_structured", json!({})).await;
    let weather = json!({"temperature": 22.5, "conditions": "Partly cloudy"});
    let as_text: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(as_text, weather);
    if client.revision() >= Revision::V2025_06_18 {
        assert_eq!(result["structuredContent"], weather);
    } else {
        assert_eq!(result.get("structuredContent"), None);
    }
}

/// TRANSLATION §6.10.
async fn lowers_links_and_recordings(client: &mut Client, _: &Value) {
    let revision = client.revision();
    let result = client.call("test_resource_link", json!({})).await;
    let link = &result["content"][0];
    if revision >= Revision::V2025_06_18 {
        assert_eq!(link["type"], "resource_link");
        assert_eq!(link["uri"], "test://static-text");
    } else {
        assert_eq!(link["type"], "text");
        assert_eq!(link["text"], "static-text <test://static-text>");
    }
    let result = client.call("test_audio_content", json!({})).await;
    let recording = &result["content"][0];
    if revision >= Revision::V2025_03_26 {
        assert_eq!(recording["type"], "audio");
        assert_eq!(recording["mimeType"], "audio/wav");
    } else {
        assert_eq!(recording["type"], "resource");
        assert_eq!(recording["resource"]["mimeType"], "audio/wav");
        assert!(recording["resource"]["blob"].is_string());
    }
}

/// S003-24.
async fn reads_resources(client: &mut Client, _: &Value) {
    for (uri, member) in [
        ("test://static-text", "text"),
        ("test://static-binary", "blob"),
        ("test://template/123/data", "text"),
    ] {
        let result = client.result("resources/read", json!({"uri": uri})).await;
        assert_eq!(result["contents"][0]["uri"], uri);
        assert!(result["contents"][0][member].is_string(), "{result}");
    }
}

/// S003-25.
async fn gets_prompts(client: &mut Client, _: &Value) {
    let arguments = json!({"arg1": "one", "arg2": "two"});
    let params = json!({"name": "test_prompt_with_arguments", "arguments": arguments});
    let prompt = client.result("prompts/get", params).await;
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        "Prompt with arguments: arg1='one', arg2='two'"
    );
    let image = json!({"name": "test_prompt_with_image"});
    let prompt = client.result("prompts/get", image).await;
    assert_eq!(prompt["messages"][0]["content"]["type"], "image");
}

/// COMP-02, COMP-03. The first revision has completion, though no capability says so.
async fn completes_arguments(client: &mut Client, _: &Value) {
    let prompt = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
    let typed = json!({"ref": prompt, "argument": {"name": "arg1", "value": "par"}});
    let result = client.result("completion/complete", typed).await;
    assert_eq!(
        result["completion"]["values"],
        json!(["paris", "park", "party"])
    );
    let template = json!({"type": "ref/resource", "uri": "test://template/{id}/data"});
    let typed = json!({"ref": template, "argument": {"name": "id", "value": "4"}});
    let result = client.result("completion/complete", typed).await;
    assert_eq!(result["completion"]["values"], json!(["456"]));
    let unknown = json!({"ref": {"type": "ref/prompt", "name": "nope"},
        "argument": {"name": "arg1", "value": ""}});
    let error = client.error("completion/complete", unknown).await;
    assert_eq!(error["code"], -32602);
}
