//! Tools that ask the caller something. The same handlers serve both eras.

mod forms;
mod rounds;

use plexus_service::{
    AskError, Builder, Context, CreateMessageParams, CreateMessageResult, ElicitAction,
    ElicitParams, ElicitResult, Raw, Root, SamplingMessage, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fixtures::NoArguments;

pub(crate) fn add(builder: Builder) -> Builder {
    let builder = builder
        .tool(
            Tool::new("test_sampling").description("Has the caller's model answer a prompt"),
            async |Sampling { prompt }: Sampling, ctx: Context| {
                let answer = ctx.sample(prompt_of(prompt)).await?;
                Ok::<_, ToolError>(format!("LLM response: {}", text_of(&answer)?))
            },
        )
        .tool(
            Tool::new("test_missing_capability").description("Needs a caller with a model"),
            async |_: NoArguments, ctx: Context| {
                let answer = ctx.sample(prompt_of("Say hello.")).await?;
                Ok::<_, ToolError>(format!("LLM response: {}", text_of(&answer)?))
            },
        )
        .tool(
            Tool::new("test_roots").description("Asks which roots the caller has"),
            async |_: NoArguments, ctx: Context| {
                let roots = ctx.roots().await?;
                Ok::<_, ToolError>(format!("Roots: {}", uris(&roots)))
            },
        )
        .tool(
            Tool::new("test_url_elicitation").description("Asks the user to visit a page"),
            async |_: NoArguments, ctx: Context| {
                let params = ElicitParams::url("Please sign in.", "https://example.com/sign-in");
                let answer = ctx.elicit(params).await?;
                Ok::<_, ToolError>(format!("URL elicitation completed: {}", described(&answer)))
            },
        );
    rounds::add(forms::add(builder))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sampling {
    /// What the model is asked.
    prompt: String,
}

/// Asks for a form with the fields of `T`, under the name `key`. `None` means that the user did not
/// fill it in.
pub(crate) async fn fill_in<T: DeserializeOwned + JsonSchema>(
    ctx: &Context,
    key: &str,
    message: &str,
) -> Result<Option<T>, AskError> {
    let answer = ctx
        .elicit_as(Some(key), form(message, &schemars::schema_for!(T))?)
        .await?;
    let content = answer
        .content
        .filter(|_| answer.action == ElicitAction::Accept);
    content
        .map(|content| content.decode().map_err(malformed))
        .transpose()
}

/// A form with the fields that `schema` describes.
fn form(message: impl Into<String>, schema: &impl Serialize) -> Result<ElicitParams, AskError> {
    Ok(ElicitParams::form(
        message,
        Raw::encode(schema).map_err(malformed)?,
    ))
}

fn prompt_of(prompt: impl Into<String>) -> CreateMessageParams {
    CreateMessageParams::new([SamplingMessage::user(prompt.into())], 100)
}

/// What the model said, as far as it is text.
fn text_of(answer: &CreateMessageResult) -> Result<String, AskError> {
    #[derive(Deserialize)]
    struct Block {
        text: Option<String>,
    }
    let content = Raw::encode(&answer.content).map_err(malformed)?;
    let blocks: Vec<Block> = content.decode().map_err(malformed)?;
    Ok(blocks.into_iter().filter_map(|block| block.text).collect())
}

fn uris(roots: &[Root]) -> String {
    roots
        .iter()
        .map(|root| root.uri.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn described(answer: &ElicitResult) -> String {
    let action = match answer.action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        ElicitAction::Cancel => "cancel",
    };
    let content = answer.content.as_ref().map_or("{}", Raw::as_str);
    format!("action={action}, content={content}")
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err calls")]
fn malformed(error: serde_json::Error) -> AskError {
    AskError::Malformed(error.to_string())
}
