//! Prompts, and the completion of their arguments.

use plexus_mcp_core::{
    AskError, Builder, ContentBlock, Context, NoArguments, Prompt, PromptArgument, PromptMessage,
    ResourceContents,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::media;

pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .prompt(
            Prompt::new("test_simple_prompt").description("Has no arguments"),
            async |_: NoArguments, _: Context| {
                PromptMessage::user("This is a simple prompt for testing.")
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments")
                .description("Has two arguments")
                .argument(
                    PromptArgument::new("arg1")
                        .description("The first argument")
                        .required(),
                )
                .argument(
                    PromptArgument::new("arg2")
                        .description("The second argument")
                        .required(),
                ),
            async |TwoArguments { arg1, arg2 }: TwoArguments, _: Context| {
                PromptMessage::user(format!(
                    "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
                ))
            },
        )
        .complete_prompt(
            "test_prompt_with_arguments",
            "arg1",
            async |typed: String, _| {
                let words = ["paris", "park", "party", "test", "testValue1"].into_iter();
                words.filter(move |word| word.starts_with(&typed))
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource")
                .description("Shows a resource")
                .argument(
                    PromptArgument::new("resourceUri")
                        .description("Which resource")
                        .required(),
                ),
            async |Shown { resource_uri }: Shown, _: Context| {
                let text = "Embedded resource content for testing.";
                let contents = ResourceContents::text(resource_uri, text);
                vec![
                    PromptMessage::user(ContentBlock::resource(contents.mime_type("text/plain"))),
                    PromptMessage::user("Please process the embedded resource above."),
                ]
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_image").description("Shows a picture"),
            async |_: NoArguments, _: Context| {
                vec![
                    PromptMessage::user(media::picture()),
                    PromptMessage::user("Please analyze the image above."),
                ]
            },
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt")
                .description("Asks the user before it answers"),
            async |_: NoArguments, ctx: Context| -> Result<PromptMessage, AskError> {
                let question = "What context should the prompt use?";
                let answer = ctx.fill_in_as("user_context", question).await?;
                let context = match answer {
                    Some(UserContext { context }) => context,
                    None => "none".to_owned(),
                };
                Ok(PromptMessage::user(format!("Use this context: {context}")))
            },
        )
}

#[derive(Debug, Deserialize)]
struct TwoArguments {
    arg1: String,
    arg2: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    resource_uri: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UserContext {
    context: String,
}
