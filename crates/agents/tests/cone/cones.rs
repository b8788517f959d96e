//! Creating, finding and deleting cones.

use plexus_mcp_agents::model::Models;
use plexus_mcp_core::Section;
use plexus_testkit::model::{Dialect, MODELS, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::support::{Client, KEY, model_id, said, string};

const METHODS: [&str; 7] = [
    "create", "get", "list", "delete", "set_head", "chat", "registry",
];

fn without_model() -> Client {
    Client::with(Models::none(), &json!({}))
}

/// S003-04, S003-16: every method of Substrate is a tool, with the same parameters.
#[tokio::test]
async fn every_method_is_a_tool() {
    let tools = without_model().definitions(Section::Tools);
    let tools: Vec<_> = tools
        .into_iter()
        .filter(|tool| string(&tool["name"]).starts_with("cone."))
        .collect();
    let names: Vec<_> = tools.iter().map(|tool| string(&tool["name"])).collect();
    assert_eq!(names, METHODS.map(|method| format!("cone.{method}")));
    let required = |index: usize| tools[index]["inputSchema"]["required"].clone();
    assert_eq!(required(0), json!(["name", "model_id"]));
    assert_eq!(required(4), json!(["identifier", "node_id"]));
    assert_eq!(required(5), json!(["identifier", "prompt"]));
    assert_eq!(tools[5]["outputSchema"]["type"], "object");
}

#[tokio::test]
async fn a_cone_is_created_with_a_tree_of_its_own() {
    let client = without_model();
    let new = json!({
        "name": " helper ",
        "model_id": "claude-x",
        "system_prompt": "Be brief.",
        "metadata": { "team": "blue" },
    });
    let created = client.done("cone.create", new).await;
    let cone = client.cone("helper").await;
    assert_eq!(
        (&cone["id"], &cone["tree_id"], &cone["head"]),
        (&created["cone_id"], &created["tree_id"], &created["head"])
    );
    assert_eq!(cone["name"], "helper");
    assert_eq!(cone["metadata"]["team"], "blue");
    let tree = client.tree("helper").await["tree"].clone();
    assert_eq!(
        tree["owners"],
        json!([{ "owner_id": created["cone_id"], "count": 1 }])
    );
    assert_eq!(tree["metadata"]["name"], "helper");
    let listed = client.done("cone.list", json!({})).await;
    assert_eq!(listed["cones"], json!([cone]));
}

/// A cone is found by its id, its name, or an unambiguous prefix of either. The error for an
/// ambiguous prefix names the cones that match.
#[tokio::test]
async fn cones_are_found_by_name_id_or_beginning() {
    let client = without_model();
    let alpha = client.create("alpha", "claude-x").await["cone_id"].clone();
    client.create("alphabet", "claude-x").await;
    client.create("beta", "claude-x").await;
    for (identifier, name) in [
        ("alpha", "alpha"),
        ("alphab", "alphabet"),
        ("b", "beta"),
        (alpha.as_str().unwrap(), "alpha"),
    ] {
        assert_eq!(client.cone(identifier).await["name"], name, "{identifier}");
    }
    let id = string(&alpha);
    let but_one = id.split_at(id.len() - 1).0.to_owned();
    assert_eq!(client.cone(&but_one).await["name"], "alpha");

    let get = async |identifier: &str| {
        let arguments = json!({ "identifier": identifier });
        client.failed("cone.get", arguments).await
    };
    let text = get("al").await;
    assert!(text.contains("matches several cones"), "{text}");
    assert!(
        text.contains("\"alpha\" (") && text.contains("\"alphabet\" ("),
        "{text}"
    );
    for unknown in ["gamma", "", "ALPHA", "%", "alpha "] {
        assert_eq!(get(unknown).await, format!("cone not found: {unknown}"));
    }
    // A name that looks like another's id does not take its place.
    client.create(&id, "claude-x").await;
    assert_eq!(client.cone(&id).await["name"], "alpha");
}

#[tokio::test]
async fn invalid_cone_definitions_are_refused() {
    let client = without_model();
    client.create("helper", "claude-x").await;
    let create = async |arguments: Value| client.failed("cone.create", arguments).await;
    let new = |name: &str, model: &str| json!({ "name": name, "model_id": model });
    let text = create(new("helper", "claude-x")).await;
    assert_eq!(text, "there is a cone called \"helper\" already");
    for name in [" ", "a\nb"] {
        let text = create(new(name, "claude-x")).await;
        assert!(text.contains("1 to 100 characters"), "{text}");
    }
    // The model is checked first.
    let text = create(new("helper", "llama")).await;
    assert!(
        text.contains("the model \"llama\" has no known provider"),
        "{text}"
    );
    let text = create(json!({
        "name": "x", "model_id": "openai/x", "base_url": "ftp://here", "metadata": {},
    }))
    .await;
    assert!(
        text.starts_with("base_url is not a valid base url"),
        "{text}"
    );
    let text = create(json!({
        "name": "x", "model_id": "openai/x", "metadata": { "x": "y".repeat(70_000) },
    }))
    .await;
    assert!(text.contains("the metadata has"), "{text}");
    // None of them left anything behind.
    let cones = client.done("cone.list", json!({})).await;
    assert_eq!(cones["cones"].as_array().unwrap().len(), 1);
    let trees = client.done("arbor.tree_list", json!({})).await;
    assert_eq!(trees["tree_ids"].as_array().unwrap().len(), 1);
}

/// Deleting a cone keeps its tree, and releases the reference, so that the tree can be
/// claimed.
#[tokio::test]
async fn deleting_a_cone_keeps_its_tree() {
    let model = ScriptedModel::start([Turn::says(&["One."])]).await;
    let client = Client::of(&model);
    let created = client.create("helper", "anthropic/x").await;
    client.chat("helper", "First?").await;
    assert_eq!(
        client.memory("helper").await,
        said(&[("user", "First?"), ("assistant", "One.")])
    );
    let deleted = client
        .done("cone.delete", json!({ "identifier": "helper" }))
        .await;
    assert_eq!(
        deleted,
        json!({ "cone_id": created["cone_id"], "tree_id": created["tree_id"] })
    );
    let text = client.chat_failed("helper", "Still there?").await;
    assert_eq!(text, "cone not found: helper");
    let scheduled = client.done("arbor.tree_list_scheduled", json!({})).await;
    assert_eq!(scheduled["tree_ids"], json!([created["tree_id"]]));
    let of = json!({ "tree_id": created["tree_id"] });
    let tree = client.done("arbor.tree_get", of).await;
    assert_eq!(tree["nodes"].as_array().unwrap().len(), 3);
    // The name is free again.
    client.create("helper", "anthropic/x").await;
}

/// The registry lists the providers and the models that they report.
#[tokio::test]
async fn the_registry_lists_models() {
    let model = ScriptedModel::start([]).await;
    let client = Client::of(&model);
    let registry = client.done("cone.registry", json!({})).await;
    let providers = registry["providers"].as_array().unwrap();
    for (provider, name) in providers.iter().zip(["anthropic", "openai"]) {
        let models = MODELS.map(|model| format!("{name}/{model}"));
        assert_eq!(
            (&provider["name"], &provider["ready"], &provider["models"]),
            (&json!(name), &json!(true), &json!(models))
        );
    }
    assert_eq!(providers[2]["name"], "sampling");
    assert_eq!(providers[2]["ready"], false);
    assert!(!registry.to_string().contains(KEY));

    let registry = without_model().done("cone.registry", json!({})).await;
    for provider in registry["providers"].as_array().unwrap() {
        assert_eq!(provider["ready"], false);
        assert!(provider["problem"].is_string(), "{provider}");
    }
}

/// A cone's own base URL is used, and the key of the provider's origin is not sent to it.
#[tokio::test]
async fn a_cone_may_have_a_server_of_its_own() {
    for dialect in Dialect::ALL {
        let usual = ScriptedModel::start([]).await;
        let own = ScriptedModel::start([Turn::says(&["Hi."])]).await;
        let client = Client::of(&usual);
        let new = json!({
            "name": "helper",
            "model_id": model_id(dialect),
            "base_url": own.base_url(dialect),
        });
        client.done("cone.create", new).await;
        let result = client.chat("helper", "Hello?").await;
        assert_eq!(result["content"][0]["text"], "Hi.", "{result}");
        assert!(usual.questions().is_empty());
        let question = &own.questions()[0];
        assert!(!format!("{:?}", question.headers).contains(KEY));
    }
}
