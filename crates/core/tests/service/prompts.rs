//! Prompts.

use std::collections::BTreeMap;

use plexus_mcp_core::{
    AskError, Builder, Context, Fault, IntoPrompt, NoArguments, Prompt, PromptArgument,
    PromptMessage,
};
use plexus_mcp_protocol::messages::GetPromptResult;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Caller, builder};

#[derive(Deserialize)]
struct Review {
    code: String,
    lines: Option<u32>,
}

fn review() -> Builder {
    builder().prompt(
        Prompt::new("review")
            .argument(PromptArgument::new("code").required())
            .argument(PromptArgument::new("lines")),
        async |Review { code, lines }: Review, _: Context| {
            PromptMessage::user(format!("{code} {lines:?}"))
        },
    )
}

async fn get(builder: Builder, arguments: Value) -> Result<Value, Fault> {
    let params = json!({ "name": "review", "arguments": arguments });
    Caller::of(builder).call("prompts/get", params).await
}

fn messages(texts: &[&str]) -> Value {
    let message = |text| json!({ "role": "user", "content": { "type": "text", "text": text } });
    json!({ "messages": texts.iter().map(message).collect::<Vec<_>>() })
}

#[tokio::test]
async fn arguments_come_typed_or_as_they_are() {
    let arguments = json!({ "code": "x", "lines": "7" });
    let answer = get(review(), arguments.clone()).await;
    assert_eq!(answer, Ok(messages(&["x Some(7)"])));

    let as_they_are = builder().prompt(
        Prompt::new("review"),
        async |arguments: BTreeMap<String, String>, _: Context| {
            PromptMessage::user(format!("{arguments:?}"))
        },
    );
    let answer = get(as_they_are, arguments).await;
    assert_eq!(answer, Ok(messages(&[r#"{"code": "x", "lines": "7"}"#])));
}

/// PRM-03: the error names the missing argument, and the handler does not run.
#[tokio::test]
async fn required_arguments_must_be_there() {
    let fault = get(review(), json!({ "lines": "7" })).await.unwrap_err();
    let expected = Fault::InvalidParams("missing prompt argument \"code\"".to_owned());
    assert_eq!(fault, expected);
}

/// PRM-03: arguments of the wrong type are invalid.
#[tokio::test]
async fn arguments_must_fit() {
    let arguments = json!({ "code": "x", "lines": "many" });
    let Err(Fault::InvalidParams(told)) = get(review(), arguments).await else {
        panic!("the argument does not fit")
    };
    assert!(told.starts_with("lines: "), "{told}");
    for arguments in [json!({ "code": 7 }), json!(["x"])] {
        let outcome = get(review(), arguments).await;
        assert!(
            matches!(outcome, Err(Fault::InvalidParams(_))),
            "{outcome:?}"
        );
    }
}

/// PRM-03.
#[tokio::test]
async fn unknown_prompts_are_named() {
    let outcome = get(builder(), json!({})).await;
    assert_eq!(outcome, Err(Fault::UnknownPrompt("review".to_owned())));
}

async fn returning<R>(returned: impl Fn() -> R + Send + Sync + 'static) -> Result<Value, Fault>
where
    R: IntoPrompt + Send + 'static,
{
    let handler = move |_: NoArguments, _: Context| std::future::ready(returned());
    get(builder().prompt(Prompt::new("review"), handler), json!({})).await
}

#[tokio::test]
async fn handlers_return_messages_or_faults() {
    let message = PromptMessage::user;
    assert_eq!(returning(move || message("a")).await, Ok(messages(&["a"])));
    let several = move || vec![message("a"), message("b")];
    assert_eq!(returning(several).await, Ok(messages(&["a", "b"])));
    let whole = move || GetPromptResult::new([message("a")]).description("b");
    let mut expected = messages(&["a"]);
    expected["description"] = "b".into();
    assert_eq!(returning(whole).await, Ok(expected));
    let gone = || Err::<PromptMessage, _>(AskError::Gone);
    assert_eq!(returning(gone).await, Err(Fault::Cancelled));
}
