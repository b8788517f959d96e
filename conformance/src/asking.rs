//! Tools that ask the caller something. The same handlers serve both eras.

mod forms;
mod rounds;

use plexus_mcp_core::{
    Builder, Context, CreateMessageParams, ElicitParams, ElicitResult, NoArguments, Raw, Root,
    SamplingMessage, Tool, ToolResult,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn add(builder: Builder) -> Builder {
    let builder = builder
        .tool(
            Tool::new("test_sampling").description("Has the caller's model answer a prompt"),
            async |Sampling { prompt }: Sampling, ctx: Context| -> ToolResult<String> {
                let answer = ctx.sample(prompt_of(prompt)).await?;
                Ok(format!("LLM response: {}", answer.text()))
            },
        )
        .tool(
            Tool::new("test_missing_capability").description("Needs a caller with a model"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let answer = ctx.sample(prompt_of("Say hello.")).await?;
                Ok(format!("LLM response: {}", answer.text()))
            },
        )
        .tool(
            Tool::new("test_roots").description("Asks which roots the caller has"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let roots = ctx.roots().await?;
                Ok(format!("Roots: {}", uris(&roots)))
            },
        )
        .tool(
            Tool::new("test_url_elicitation").description("Asks the user to visit a page"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let params = ElicitParams::url("Please sign in.", "https://example.com/sign-in");
                let answer = ctx.elicit(params).await?;
                Ok(format!("URL elicitation completed: {}", described(&answer)))
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

fn prompt_of(prompt: impl Into<String>) -> CreateMessageParams {
    CreateMessageParams::new([SamplingMessage::user(prompt.into())], 100)
}

fn uris(roots: &[Root]) -> String {
    roots
        .iter()
        .map(|root| root.uri.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn described(ElicitResult { action, content }: &ElicitResult) -> String {
    let content = content.as_ref().map_or("{}", Raw::as_str);
    format!("action={action}, content={content}")
}
