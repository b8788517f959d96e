//! Prompts, and the completion of their arguments.

use std::collections::BTreeMap;

use plexus_service::{
    AskError, Builder, ContentBlock, Context, Prompt, PromptArgument, PromptMessage,
    ResourceContents,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::asking::fill_in;
use crate::media;

type Arguments = BTreeMap<String, String>;

pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .prompt(
            Prompt::new("test_simple_prompt").description("Has no arguments"),
            async |_: Arguments, _: Context| {
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
            async |arguments: Arguments, _: Context| {
                let [arg1, arg2] = ["arg1", "arg2"].map(|name| argument(&arguments, name));
                PromptMessage::user(format!(
                    "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
                ))
            },
        )
        .complete_prompt(
            "test_prompt_with_arguments",
            "arg1",
            async |typed: String, _| {
                let words = ["paris", "park", "party", "test", "testValue1"].map(str::to_owned);
                words
                    .into_iter()
                    .filter(|word| word.starts_with(&typed))
                    .collect::<Vec<_>>()
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
            async |arguments: Arguments, _: Context| {
                let text = "Embedded resource content for testing.";
                let contents = ResourceContents::text(argument(&arguments, "resourceUri"), text);
                vec![
                    PromptMessage::user(ContentBlock::resource(contents.mime_type("text/plain"))),
                    PromptMessage::user("Please process the embedded resource above."),
                ]
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_image").description("Shows a picture"),
            async |_: Arguments, _: Context| {
                vec![
                    PromptMessage::user(media::picture()),
                    PromptMessage::user("Please analyze the image above."),
                ]
            },
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt")
                .description("Asks the user before it answers"),
            async |_: Arguments, ctx: Context| {
                let question = "What context should the prompt use?";
                let answer: Option<UserContext> = fill_in(&ctx, "user_context", question).await?;
                let context = answer.map_or_else(|| "none".to_owned(), |answer| answer.context);
                Ok::<_, AskError>(PromptMessage::user(format!("Use this context: {context}")))
            },
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UserContext {
    context: String,
}

fn argument<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).map(String::as_str).unwrap_or_default()
}
