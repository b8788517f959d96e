//! Questions to the caller.

use plexus_mcp_core::{
    AskError, Builder, Context, CreateMessageParams, ElicitParams, Event, Fault, NoArguments,
    Question, SamplingMessage, Tool, ToolResult,
};
use plexus_mcp_protocol::messages::ClientCapability;
use plexus_mcp_wire::RpcError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Caller, builder, failure, raw, text};

#[derive(Deserialize, JsonSchema)]
struct Guest {
    /// As it should be on the card.
    name: String,
    #[schemars(range(min = 18))]
    age: Option<u8>,
}

fn guest_text(guest: Option<Guest>) -> String {
    match guest {
        Some(Guest { name, age }) => format!("{name}, {age:?}"),
        None => "declined".to_owned(),
    }
}

fn guest_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "As it should be on the card." },
            "age": { "type": "integer", "minimum": 18, "maximum": 255 },
        },
        "required": ["name"],
    })
}

fn asking() -> Builder {
    builder()
        .tool(
            Tool::new("fill_in"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(guest_text(ctx.fill_in("Who are you?").await?))
            },
        )
        .tool(
            Tool::new("fill_in_as"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(guest_text(ctx.fill_in_as("guest", "Who are you?").await?))
            },
        )
        .tool(
            Tool::new("elicit"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let form = ElicitParams::form("Who are you?", raw(&guest_schema()));
                let answer = ctx.elicit(form).await?;
                Ok(format!("{} {:?}", answer.action, answer.content))
            },
        )
        .tool(
            Tool::new("visit"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let visit = ElicitParams::url("Please sign in.", "https://example.com/");
                Ok(ctx.elicit_as("visit", visit).await?.action.to_string())
            },
        )
        .tool(
            Tool::new("sample"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let question = CreateMessageParams::new([SamplingMessage::user("Capital?")], 100);
                Ok(ctx.sample(question).await?.text())
            },
        )
        .tool(
            Tool::new("roots"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(format!("{:?}", ctx.roots_as("roots").await?))
            },
        )
}

fn able() -> Caller {
    Caller::of(asking()).declaring(&json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": {},
        "roots": {},
    }))
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// ELIC-03, SAMP-01, ROOT-01: a caller that did not declare the capability is not asked.
#[tokio::test]
async fn a_caller_without_the_capability_is_not_asked() {
    for (tool, needed) in [
        ("fill_in", ClientCapability::ElicitationForm),
        ("elicit", ClientCapability::ElicitationForm),
        ("visit", ClientCapability::ElicitationUrl),
        ("sample", ClientCapability::Sampling),
        ("roots", ClientCapability::Roots),
    ] {
        // `call_tool` panics on any event.
        let outcome = Caller::of(asking()).call_tool(tool, json!({})).await;
        assert_eq!(outcome, Err(Fault::MissingCapability(needed)), "{tool}");
    }
    let forms_only = Caller::of(asking()).declaring(&json!({ "elicitation": {} }));
    let outcome = forms_only.call_tool("visit", json!({})).await;
    let needed = ClientCapability::ElicitationUrl;
    assert_eq!(outcome, Err(Fault::MissingCapability(needed)));
}

/// ELIC-07: the form's schema comes from the Rust type, and the answer is decoded to that type.
#[tokio::test]
async fn a_form_is_filled_in() {
    let answer = accept(&json!({ "name": "Kim", "age": 30 }));
    let (asked, outcome) = able().answer_tool("fill_in", Ok(answer.clone())).await;
    let expected = json!({
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": guest_schema(),
    });
    assert_eq!((asked.key, asked.params), (None, Some(expected)));
    let guest = text("Kim, Some(30)");
    assert_eq!(outcome, Ok(guest.clone()));

    let (asked, outcome) = able().answer_tool("fill_in_as", Ok(answer)).await;
    assert_eq!(asked.key.as_deref(), Some("guest"));
    assert_eq!(outcome, Ok(guest));
}

/// ELIC-19: declining and cancelling are answers, too.
#[tokio::test]
async fn a_form_may_be_declined() {
    for action in ["decline", "cancel"] {
        // Content that comes with a refusal is not validated.
        for answer in [
            json!({ "action": action }),
            json!({ "action": action, "content": {} }),
        ] {
            let (_, outcome) = able().answer_tool("fill_in", Ok(answer)).await;
            assert_eq!(outcome, Ok(text("declined")));
        }
        let (_, outcome) = able()
            .answer_tool("elicit", Ok(json!({ "action": action })))
            .await;
        assert_eq!(outcome, Ok(text(&format!("{action} None"))));
    }
}

/// ELIC-15: an answer that violates the schema does not reach the handler.
#[tokio::test]
async fn an_answer_must_fit_the_form() {
    for (content, hint) in [
        (json!({}), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "name": "Kim", "age": 17 }), "age"),
        (json!({ "name": "Kim", "age": "old" }), "age"),
        (json!(["Kim"]), "object"),
    ] {
        for tool in ["fill_in", "elicit"] {
            let (_, outcome) = able().answer_tool(tool, Ok(accept(&content))).await;
            let result = outcome.unwrap();
            assert_eq!(result["isError"], true);
            let told = result["content"][0]["text"].as_str().unwrap();
            assert!(
                told.starts_with("the client's answer is malformed: "),
                "{told}"
            );
            assert!(told.contains(hint), "{told}");
        }
    }
    let content = json!({ "name": "Kim", "shoe size": 43 });
    let (_, outcome) = able().answer_tool("elicit", Ok(accept(&content))).await;
    let told = r#"accept Some(Raw({"name":"Kim","shoe size":43}))"#;
    assert_eq!(outcome, Ok(text(told)));
}

/// ELIC-07: a schema that is not a form is an error of the service, and is not sent to the client.
#[tokio::test]
async fn a_schema_that_is_not_a_form_is_not_sent() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Nested {
        guest: Guest,
    }
    let builder = builder().tool(
        Tool::new("tool"),
        async |_: NoArguments, ctx: Context| -> ToolResult<()> {
            ctx.fill_in::<Nested>("Who are you?").await?;
            Ok(())
        },
    );
    let caller = Caller::of(builder).declaring(&json!({ "elicitation": {} }));
    let outcome = caller.call_tool("tool", json!({})).await;
    let Err(Fault::Internal(told)) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(told.contains("guest"), "{told}");
}

#[tokio::test]
async fn a_page_is_visited() {
    let answer = json!({ "action": "accept" });
    let (asked, outcome) = able().answer_tool("visit", Ok(answer)).await;
    assert_eq!(asked.key.as_deref(), Some("visit"));
    assert_eq!(asked.params.unwrap()["url"], "https://example.com/");
    assert_eq!(outcome, Ok(text("accept")));
}

/// The texts of all blocks are joined; blocks of other types are skipped.
#[tokio::test]
async fn a_model_answers() {
    let answer = |content: Value| json!({ "role": "assistant", "model": "m", "content": content });
    let block = |said: &str| json!({ "type": "text", "text": said });
    let picture = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    for content in [block("Paris"), json!([block("Pa"), picture, block("ris")])] {
        let (asked, outcome) = able().answer_tool("sample", Ok(answer(content))).await;
        assert!(matches!(asked.question, Question::Sample(_)));
        assert_eq!(asked.params.unwrap()["maxTokens"], 100);
        assert_eq!(outcome, Ok(text("Paris")));
    }
}

#[tokio::test]
async fn roots_are_named() {
    let (asked, outcome) = able()
        .answer_tool("roots", Ok(json!({ "roots": [] })))
        .await;
    assert!(matches!(asked.question, Question::Roots));
    assert_eq!((asked.key.as_deref(), asked.params), (Some("roots"), None));
    assert_eq!(outcome, Ok(text("[]")));
}

/// An answer that is malformed by the protocol fails the tool, not the process.
#[tokio::test]
async fn malformed_answers_fail_the_tool() {
    for tool in ["fill_in", "elicit", "visit", "sample", "roots"] {
        for answer in [json!(null), json!({ "action": "shrug" }), json!([])] {
            let (_, outcome) = able().answer_tool(tool, Ok(answer)).await;
            let result = outcome.unwrap();
            let told = result["content"][0]["text"].as_str().unwrap();
            assert!(
                told.starts_with("the client's answer is malformed: "),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn a_refused_question_is_an_error_result_of_the_tool() {
    let refusal = RpcError {
        code: -32000,
        message: "not today".to_owned(),
        data: None,
    };
    let refused = Err(AskError::Refused(refusal));
    let (_, outcome) = able().answer_tool("sample", refused).await;
    assert_eq!(outcome, Ok(failure("the client refused: not today")));
}

/// ELIC-19: a question that is dropped without an answer cancels the call.
#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_call() {
    let caller = able();
    let outcome = caller.hear_tool("sample", |event| match event {
        Event::Ask(ask) => drop(ask),
        other => panic!("{other:?}"),
    });
    assert_eq!(outcome.await, Err(Fault::Cancelled));
}

/// When a call is dropped, its question is withdrawn.
#[tokio::test]
async fn a_question_is_withdrawn_with_its_call() {
    let service = able();
    let mut asked = None;
    {
        let call = service.hear_tool("sample", |event| {
            if let Event::Ask(ask) = event {
                asked = Some(ask);
            }
        });
        tokio::select! {
            biased;
            _ = call => panic!("the question has no answer"),
            () = tokio::task::yield_now() => {}
        }
    }
    let mut ask = asked.unwrap();
    assert!(!ask.is_wanted());
    ask.withdrawn().await;
    ask.answer(Ok(raw(&json!({}))));
}
