//! Tools whose questions make a stateless client retry the call, once for each round of questions.
//!
//! The handlers have no code for rounds, states or retries: they await each answer and continue.

use plexus_mcp_core::{
    AskError, Builder, ClientCapability, Context, NoArguments, Tool, ToolResult,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{prompt_of, uris};

pub(super) fn add(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_input_required_result_elicitation").description("Asks for a name"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(format!("Hello, {}!", user_name(&ctx).await?))
            },
        )
        .tool(
            Tool::new("test_input_required_result_sampling").description("Asks the model"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let question = prompt_of("What is the capital of France?");
                let answer = ctx.sample_as("capital_question", question).await?;
                Ok(format!("The model said: {}", answer.text()))
            },
        )
        .tool(
            Tool::new("test_input_required_result_list_roots").description("Asks for the roots"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(format!("Roots: {}", client_roots(&ctx).await?))
            },
        )
        .tool(
            Tool::new("test_input_required_result_request_state")
                .description("Asks for a confirmation, which comes back with the state"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let confirmed = confirm(&ctx).await?;
                Ok(format!("state-ok, confirmed: {confirmed}"))
            },
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state")
                .description("Asks for a confirmation, and does not take a forged state with it"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                Ok(format!("Confirmed: {}", confirm(&ctx).await?))
            },
        )
        .tool(
            Tool::new("test_input_required_result_multiple_inputs")
                .description("Asks the user, the model and the client at once"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let (name, greeting, roots) =
                    tokio::join!(user_name(&ctx), greeting(&ctx), client_roots(&ctx));
                Ok(format!("{}, {}! Roots: {}", greeting?, name?, roots?))
            },
        )
        .tool(
            Tool::new("test_input_required_result_multi_round")
                .description("Asks for a name, then for a color"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let name = ctx.fill_in_as("step1", "What is your name?").await?;
                let name = name.map_or_else(unknown, |Name { name }| name);
                let question = format!("What is your favorite color, {name}?");
                let color = ctx.fill_in_as("step2", question).await?;
                let color = color.map_or_else(unknown, |Color { color }| color);
                Ok(format!("{name} likes {color}."))
            },
        )
        .tool(
            Tool::new("test_input_required_result_capabilities")
                .description("Asks only what the caller declared it can be asked"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let (name, greeting, roots) = tokio::join!(
                    if_supported(&ctx, ClientCapability::ElicitationForm, user_name(&ctx)),
                    if_supported(&ctx, ClientCapability::Sampling, greeting(&ctx)),
                    if_supported(&ctx, ClientCapability::Roots, client_roots(&ctx)),
                );
                Ok(format!("{}, {}! Roots: {}", greeting?, name?, roots?))
            },
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

async fn user_name(ctx: &Context) -> Result<String, AskError> {
    let answer = ctx.fill_in_as("user_name", "What is your name?").await?;
    Ok(answer.map_or_else(unknown, |Name { name }| name))
}

async fn greeting(ctx: &Context) -> Result<String, AskError> {
    let answer = ctx
        .sample_as("greeting", prompt_of("Say a short greeting."))
        .await?;
    Ok(answer.text())
}

async fn client_roots(ctx: &Context) -> Result<String, AskError> {
    Ok(uris(&ctx.roots_as("client_roots").await?))
}

async fn confirm(ctx: &Context) -> Result<bool, AskError> {
    let answer = ctx.fill_in_as("confirm", "Do you confirm?").await?;
    Ok(answer.is_some_and(|Confirmation { ok }| ok))
}

async fn if_supported(
    ctx: &Context,
    capability: ClientCapability,
    question: impl Future<Output = Result<String, AskError>>,
) -> Result<String, AskError> {
    if ctx.supports(capability) {
        question.await
    } else {
        Ok(unknown())
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}
