//! Completion of prompt arguments and template variables.

use plexus_mcp_core::{
    Builder, Context, Fault, NoArguments, Prompt, PromptMessage, ResourceContents,
    ResourceTemplate, Variables,
};
use serde_json::{Value, json};

use crate::support::{Caller, builder};

const TEMPLATE: &str = "test://{id}";

fn offering() -> Builder {
    builder()
        .prompt(Prompt::new("prompt"), async |_: NoArguments, _: Context| {
            PromptMessage::user("")
        })
        .template(
            ResourceTemplate::new(TEMPLATE, "template"),
            async |uri: String, _: Variables, _: Context| ResourceContents::text(uri, ""),
        )
        .complete_prompt("prompt", "word", async |typed: String, _| {
            let words = ["paris", "park", "rome"].into_iter();
            words.filter(move |word| word.starts_with(&typed))
        })
        .complete_prompt("prompt", "many", async |_: String, _| {
            (0..250).map(|number: u32| number.to_string())
        })
        .complete_template(TEMPLATE, "id", async |typed: String, known: Variables| {
            vec![format!("{typed} knowing {known:?}")]
        })
}

async fn complete(builder: Builder, reference: Value, argument: Value) -> Result<Value, Fault> {
    let known = json!({ "arguments": { "a": "b" } });
    let params = json!({ "ref": reference, "argument": argument, "context": known });
    let result = Caller::of(builder)
        .call("completion/complete", params)
        .await?;
    Ok(result["completion"].clone())
}

fn prompt(name: &str) -> Value {
    json!({ "type": "ref/prompt", "name": name })
}

fn resource(uri: &str) -> Value {
    json!({ "type": "ref/resource", "uri": uri })
}

#[tokio::test]
async fn values_are_proposed_for_what_was_typed() {
    let argument = json!({ "name": "word", "value": "par" });
    let completion = complete(offering(), prompt("prompt"), argument).await;
    let expected = json!({ "values": ["paris", "park"], "total": 2, "hasMore": false });
    assert_eq!(completion, Ok(expected));
}

/// A service without anything to propose has no such method.
#[tokio::test]
async fn without_completers_there_is_no_completion() {
    let builder = builder().prompt(Prompt::new("prompt"), async |_: NoArguments, _: Context| {
        PromptMessage::user("")
    });
    let argument = json!({ "name": "word", "value": "par" });
    let refused = complete(builder, prompt("prompt"), argument).await;
    let method = "completion/complete".to_owned();
    assert_eq!(refused, Err(Fault::MethodNotFound(method)));
}

#[tokio::test]
async fn known_arguments_are_passed_to_the_completer() {
    let argument = json!({ "name": "id", "value": "7" });
    let completion = complete(offering(), resource(TEMPLATE), argument)
        .await
        .unwrap();
    assert_eq!(completion["values"], json!([r#"7 knowing {"a": "b"}"#]));
}

/// COMP-03.
#[tokio::test]
async fn at_most_a_hundred_values_are_proposed() {
    let argument = json!({ "name": "many", "value": "" });
    let completion = complete(offering(), prompt("prompt"), argument)
        .await
        .unwrap();
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!(completion["values"][99], "99");
    assert_eq!(completion["total"], 250);
    assert_eq!(completion["hasMore"], true);
}

#[tokio::test]
async fn without_a_completer_nothing_is_proposed() {
    let argument = json!({ "name": "other", "value": "" });
    for reference in [prompt("prompt"), resource(TEMPLATE), resource("test://7")] {
        let completion = complete(offering(), reference, argument.clone()).await;
        assert_eq!(completion.unwrap()["values"], json!([]));
    }
}

/// COMP-02.
#[tokio::test]
async fn unknown_references_are_faults() {
    let argument = json!({ "name": "word", "value": "" });
    let outcome = complete(offering(), prompt("other"), argument.clone()).await;
    assert_eq!(outcome, Err(Fault::UnknownPrompt("other".to_owned())));
    for reference in [
        resource("other://7"),
        json!({ "type": "ref/tool", "name": "a" }),
    ] {
        let outcome = complete(offering(), reference, argument.clone()).await;
        assert!(
            matches!(outcome, Err(Fault::InvalidParams(_))),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_newer_completer_replaces_the_older() {
    let builder = offering().complete_prompt("prompt", "word", async |_: String, _| ["new"]);
    let argument = json!({ "name": "word", "value": "" });
    let completion = complete(builder, prompt("prompt"), argument).await.unwrap();
    assert_eq!(completion["values"], json!(["new"]));
}
