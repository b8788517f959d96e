//! Tools: the arguments and the return values of handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plexus_mcp_core::{
    AskError, CallToolResult, ContentBlock, Context, Fault, IntoToolResult, Json, NoArguments, Raw,
    Section, Tool, ToolError, ToolResult,
};
use plexus_mcp_protocol::messages::ClientCapability;
use plexus_mcp_wire::RpcError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Caller, builder, failure, raw, text, texts, value};

/// The outcome of a tool that returns what `returned` does.
async fn outcome<R>(returned: impl Fn() -> R + Send + Sync + 'static) -> Result<Value, Fault>
where
    R: IntoToolResult + Send + 'static,
{
    let tool = move |_: NoArguments, _: Context| std::future::ready(returned());
    let caller = Caller::of(builder().tool(Tool::new("tool"), tool));
    caller.call_tool("tool", json!({})).await
}

#[tokio::test]
async fn texts_and_blocks_become_content() {
    assert_eq!(outcome(|| "a").await, Ok(text("a")));
    assert_eq!(outcome(|| "a".to_owned()).await, Ok(text("a")));
    assert_eq!(outcome(|| ContentBlock::text("a")).await, Ok(text("a")));
    let blocks = || {
        vec![
            ContentBlock::text("a"),
            ContentBlock::image(b"b", "image/png"),
        ]
    };
    let content = json!([
        { "type": "text", "text": "a" },
        { "type": "image", "data": "Yg==", "mimeType": "image/png" },
    ]);
    let expected = json!({ "content": content, "isError": false });
    assert_eq!(outcome(blocks).await, Ok(expected));
    assert_eq!(outcome(|| ()).await, Ok(texts(&[])));
}

#[tokio::test]
async fn a_whole_result_stays_as_it_is() {
    let result = || {
        let mut result = CallToolResult::error("a");
        result.structured_content = Some(raw(&json!({ "b": 1 })));
        result
    };
    let mut expected = failure("a");
    expected["structuredContent"] = json!({ "b": 1 });
    assert_eq!(outcome(result).await, Ok(expected));
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    /// In degrees Celsius.
    temperature: f64,
}

/// TOOL-08: structured content is also there as text, and its schema is declared.
#[tokio::test]
async fn json_is_structured_content_with_a_schema() {
    let weather = |_: NoArguments, _: Context| async { Json(Weather { temperature: 22.5 }) };
    let maybe =
        |_: NoArguments, _: Context| async { ToolResult::Ok(Json(Weather { temperature: 22.5 })) };
    let builder = builder()
        .tool(Tool::new("weather"), weather)
        .tool(Tool::new("maybe"), maybe);
    let caller = Caller::of(builder);
    for tool in ["weather", "maybe"] {
        let mut expected = text(r#"{"temperature":22.5}"#);
        expected["structuredContent"] = json!({ "temperature": 22.5 });
        assert_eq!(caller.call_tool(tool, json!({})).await, Ok(expected));

        let catalogue = caller.catalogue();
        let definition = &catalogue.list(Section::Tools).get(tool).unwrap().definition;
        let temperature = json!({
            "type": "number",
            "description": "In degrees Celsius.",
        });
        let schema = json!({
            "type": "object",
            "properties": { "temperature": temperature },
            "required": ["temperature"],
        });
        assert_eq!(value(definition)["outputSchema"], schema);
    }
}

/// TOOL-13: a tool that fails has a result, for the model to read; everything else is an error.
#[tokio::test]
async fn failures_are_results_and_faults_are_errors() {
    assert_eq!(outcome(|| ToolResult::Ok("a")).await, Ok(text("a")));
    assert_eq!(outcome(|| Err::<(), _>("a")).await, Ok(failure("a")));
    assert_eq!(
        outcome(|| Err::<(), _>("a".to_owned())).await,
        Ok(failure("a"))
    );
    let failed = || ToolResult::<()>::Err(ToolError::failed(std::fmt::Error));
    assert_eq!(
        outcome(failed).await,
        Ok(failure(&std::fmt::Error.to_string()))
    );
    let fault = || Fault::Busy("later".to_owned());
    assert_eq!(outcome(move || Err::<(), _>(fault())).await, Err(fault()));
    let tool_error = move || ToolResult::<()>::Err(fault().into());
    assert_eq!(outcome(tool_error).await, Err(fault()));
}

/// If the client refuses a question or its answer is malformed, the tool fails with an error that
/// the model reads. If the client cannot be asked or is gone, the call fails.
#[tokio::test]
async fn unanswered_questions_fail_the_tool_or_the_call() {
    let refused = RpcError {
        code: -1,
        message: "no".to_owned(),
        data: None,
    };
    for (error, expected) in [
        (AskError::Refused(refused), Ok("the client refused: no")),
        (
            AskError::Malformed("x".to_owned()),
            Ok("the client's answer is malformed: x"),
        ),
        (AskError::Gone, Err(Fault::Cancelled)),
        (
            AskError::Unsupported(ClientCapability::Sampling),
            Err(Fault::MissingCapability(ClientCapability::Sampling)),
        ),
        (
            AskError::Unaskable("x".to_owned()),
            Err(Fault::Internal("the question cannot be put: x".to_owned())),
        ),
    ] {
        let outcome = outcome(move || Err::<(), _>(error.clone())).await;
        assert_eq!(outcome, expected.map(failure));
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repeat {
    word: String,
    #[schemars(range(min = 1, max = 3))]
    count: u8,
}

/// S000-37, C10, S004-K103: arguments that violate the schema do not reach the handler. The fault
/// names each error in words that a model can use to correct the call.
#[tokio::test]
async fn arguments_are_validated_before_the_handler_runs() {
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let repeat = move |Repeat { word, count }: Repeat, _: Context| {
        runs.store(true, Ordering::Relaxed);
        async move { word.repeat(count.into()) }
    };
    let caller = Caller::of(builder().tool(Tool::new("repeat"), repeat));
    for (arguments, hints) in [
        (json!({}), &["word", "count"][..]),
        (
            json!({ "word": "a", "count": 4 }),
            &["arguments.count", "4", "3"],
        ),
        (
            json!({ "word": 7, "count": 1 }),
            &["arguments.word", "string"],
        ),
        (json!({ "word": "a", "count": 1, "loud": true }), &["loud"]),
    ] {
        let outcome = caller.call_tool("repeat", arguments).await;
        let Err(Fault::InvalidArguments(told)) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(hints.iter().all(|hint| told.contains(hint)), "{told}");
    }
    assert!(!ran.load(Ordering::Relaxed));

    let arguments = json!({ "word": "a", "count": 3 });
    assert_eq!(caller.call_tool("repeat", arguments).await, Ok(text("aaa")));
}

/// A type may be stricter than its schema can say.
#[tokio::test]
async fn arguments_that_only_the_type_refuses_are_invalid_too() {
    #[derive(Deserialize, JsonSchema)]
    struct Address {
        #[schemars(with = "String")]
        ip: std::net::IpAddr,
    }
    let tool = async |Address { ip }: Address, _: Context| ip.to_string();
    let caller = Caller::of(builder().tool(Tool::new("tool"), tool));
    let outcome = caller.call_tool("tool", json!({ "ip": "localhost" })).await;
    assert!(
        matches!(outcome, Err(Fault::InvalidArguments(_))),
        "{outcome:?}"
    );
}

/// C10: a call without a name, or with arguments that are not an object, has invalid parameters.
#[tokio::test]
async fn malformed_parameters_are_invalid_everywhere() {
    let caller =
        Caller::of(builder().tool(Tool::new("tool"), async |_: NoArguments, _: Context| ()));
    for params in [
        json!({}),
        json!({ "name": 7 }),
        json!({ "name": "tool", "arguments": [] }),
        json!({ "name": "tool", "arguments": "{}" }),
    ] {
        let outcome = caller.call("tools/call", params).await;
        assert!(
            matches!(outcome, Err(Fault::InvalidParams(_))),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn arguments_may_be_left_out() {
    let tool = async |_: NoArguments, _: Context| "done";
    let caller = Caller::of(builder().tool(Tool::new("tool"), tool));
    let outcome = caller.call("tools/call", json!({ "name": "tool" })).await;
    assert_eq!(outcome, Ok(text("done")));
    let outcome = caller.call_tool("tool", json!({ "x": 1 })).await;
    assert!(
        matches!(outcome, Err(Fault::InvalidArguments(_))),
        "{outcome:?}"
    );
}

/// A tool with a schema written by hand gets its arguments as raw JSON, after validation.
#[tokio::test]
async fn a_schema_written_by_hand_is_held_up_too() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } } });
    let tool = Tool::new("tool").input_schema(raw(&schema));
    let echo = async |arguments: Raw, _: Context| arguments.as_str().to_owned();
    let caller = Caller::of(builder().tool_with_schema(tool, echo));
    let outcome = caller.call_tool("tool", json!({ "a": 1.5, "b": [] })).await;
    assert_eq!(outcome, Ok(text(r#"{"a":1.5,"b":[]}"#)));
    let outcome = caller.call_tool("tool", json!({ "a": "1.5" })).await;
    assert!(
        matches!(outcome, Err(Fault::InvalidArguments(_))),
        "{outcome:?}"
    );
}

/// TOOL-13, S002-32: the error about an unknown tool has the name that was called.
#[tokio::test]
async fn unknown_tools_and_methods_are_named() {
    let caller = Caller::of(builder());
    let outcome = caller.call_tool("nothing", json!({})).await;
    assert_eq!(outcome, Err(Fault::UnknownTool("nothing".to_owned())));
    let outcome = caller.call("tools/undo", json!({})).await;
    assert_eq!(outcome, Err(Fault::MethodNotFound("tools/undo".to_owned())));
}
