//! Cones as prompts.

use plexus_mcp_agents::model::Models;
use plexus_mcp_core::{Fault, Section, Service};
use serde_json::{Value, json};

use crate::support::{Client, string};

fn names(client: &Client) -> Vec<String> {
    let prompts = client.definitions(Section::Prompts);
    prompts
        .iter()
        .map(|prompt| string(&prompt["name"]))
        .collect()
}

async fn get(client: &Client, name: &str, query: Option<&str>) -> Result<Value, Fault> {
    let arguments = query.map_or(json!({}), |query| json!({ "query": query }));
    let params = json!({ "name": name, "arguments": arguments });
    client.request("prompts/get", &params).await
}

/// S003-25, S003-51, C43, C44: cones with a system prompt are listed as prompts. The list follows
/// created and deleted cones, and is complete after a restart.
#[tokio::test]
async fn cones_are_prompts() {
    let client = Client::with(Models::none(), &json!({}));
    let catalogue = client.service.catalogue();
    let declared = catalogue.borrow().capabilities.prompts;
    assert!(declared.is_some_and(|prompts| prompts.list_changed));
    assert!(names(&client).is_empty());

    client.create("plain", "claude-x").await;
    assert!(names(&client).is_empty(), "it would add nothing");
    let new = json!({
        "name": "poet",
        "model_id": "claude-x",
        "system_prompt": "Answer in verse.",
    });
    client.done("cone.create", new).await;
    assert_eq!(names(&client), ["cone:poet"]);
    assert_eq!(names(&client.another(Models::none())), ["cone:poet"]);
    let definition = &client.definitions(Section::Prompts)[0];
    assert_eq!(definition["arguments"][0]["name"], "query");
    assert_eq!(definition["arguments"][0]["required"], true);

    let got = get(&client, "cone:poet", Some("What is rain?"))
        .await
        .unwrap();
    assert_eq!(
        got["messages"],
        json!([{
            "role": "user",
            "content": { "type": "text", "text": "Answer in verse.\n\nWhat is rain?" },
        }])
    );
    let fault = get(&client, "cone:poet", None).await.unwrap_err();
    assert!(matches!(fault, Fault::InvalidParams(_)), "{fault}");

    client
        .done("cone.delete", json!({ "identifier": "poet" }))
        .await;
    assert!(names(&client).is_empty());
    let fault = get(&client, "cone:poet", Some("?")).await.unwrap_err();
    assert_eq!(fault, Fault::UnknownPrompt("cone:poet".to_owned()));
}

/// A prompt is not found after another process has deleted its cone.
#[tokio::test]
async fn a_prompt_may_have_lost_its_cone() {
    let client = Client::with(Models::none(), &json!({}));
    let other = client.another(Models::none());
    for name in ["poet", "poet laureate"] {
        let new = json!({ "name": name, "model_id": "claude-x", "system_prompt": "x" });
        client.done("cone.create", new).await;
    }
    other
        .done("cone.delete", json!({ "identifier": "poet" }))
        .await;
    let fault = get(&client, "cone:poet", Some("?")).await.unwrap_err();
    assert_eq!(fault, Fault::UnknownPrompt("cone:poet".to_owned()));
    // The next change here brings the list up to date.
    client.create("plain", "claude-x").await;
    assert_eq!(names(&client), ["cone:poet laureate"]);
}
