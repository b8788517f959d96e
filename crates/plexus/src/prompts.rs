//! `plexus prompts` and `plexus prompt`: prompts of servers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use plexus_mcp_core::{Entry, Prompt, Raw, Role, Section};
use plexus_mcp_hub::Origin;
use plexus_mcp_protocol::messages::GetPromptResult;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Object;
use serde::Serialize;

use crate::ad_hoc::ServerChoiceArgs;
use crate::content;
use crate::conversation::Conversation;
use crate::output::{Misuse, as_json, print, print_data};
use crate::printable::Printable;
use crate::session::{self, Session};
use crate::suggest::{alike, did_you_mean};
use crate::terminal::{Canvas, Cell, Tone};
use crate::tools::{Failed, disabled, entries, failed, first_line, note_disabled};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus prompts
  plexus prompts --json | jq -r '.prompts[].name'

The exit code is 0 if they were listed, even if some server cannot be connected (a warning); 1 if
not; and 2 for wrong usage.";

pub(crate) const PROMPT_EXAMPLES: &str = "\
Examples:
  plexus prompt review__code language=rust
  plexus prompt review__code language=rust | llm

The exit code is 0 if it was fetched, 1 if not, and 2 for wrong usage, wrong arguments of the prompt
included.";

/// Arguments of `plexus prompts`.
#[derive(Debug, Args)]
pub(crate) struct PromptsArgs {
    #[command(flatten)]
    servers: ServerChoiceArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Arguments of `plexus prompt`.
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    servers: ServerChoiceArgs,

    /// The prompt, by any of its names.
    name: String,

    /// An argument of the prompt.
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,

    /// Print the result as JSON, as the server gave it.
    #[arg(long)]
    json: bool,

    /// Save images, audio and other binary content to this folder.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

#[derive(Serialize)]
struct PromptsOutput {
    prompts: Vec<PromptListing>,
    /// Servers whose prompts are not known.
    failed: Vec<Failed>,
    /// Servers whose prompts are not listed, because their definitions disable them.
    disabled: Vec<String>,
}

#[derive(Serialize)]
struct PromptListing {
    name: String,
    server: String,
    /// The server's name for it.
    prompt: String,
    definition: Raw,
}

/// Runs `plexus prompts`.
pub(crate) fn list(arguments: &PromptsArgs) -> anyhow::Result<ExitCode> {
    session::run_chosen(&arguments.servers, async |session| {
        session.connect_selected().await?;
        let entries = entries(session, Section::Prompts).into_iter();
        let prompts = entries.map(|(entry, origin)| PromptListing::new(&entry, &origin));
        let prompts = prompts.filter(|prompt| session.selects(&prompt.server));
        let output = PromptsOutput {
            prompts: prompts.collect(),
            failed: failed(session),
            disabled: disabled(session),
        };
        print(if arguments.json {
            as_json(&output)?.into()
        } else {
            output.text()
        })?;
        if !arguments.json {
            note_disabled(session)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs `plexus prompt`.
pub(crate) fn get(arguments: &PromptArgs) -> anyhow::Result<ExitCode> {
    session::run_chosen(&arguments.servers, async |session| {
        let (entry, name) = find(session, &arguments.name).await?;
        let given = given(&arguments.arguments, &entry).map_err(Misuse)?;
        let mut params = Object::new();
        params.set("name", Raw::encode(&name)?);
        params.set("arguments", given);
        let conversation = Conversation::about(&format!("getting {name}"), arguments.json);
        let ended = conversation
            .call(session, method::PROMPTS_GET, params, None)
            .await;
        let result = ended.outcome.context("the prompt could not be fetched")?;
        if arguments.json {
            print(&(result.as_str().to_owned() + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let got: GetPromptResult = result
            .decode()
            .context("the server's result cannot be read")?;
        let is_alone = got.messages.len() == 1;
        for message in &got.messages {
            let text = content::text_of(
                std::slice::from_ref(&message.content),
                arguments.save.as_deref(),
            )?;
            // Roles are shown only if there are several.
            let role = match message.role {
                _ if is_alone => "",
                Role::User => "user: ",
                Role::Assistant => "assistant: ",
            };
            print_data(&format!("{role}{text}"))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn find(session: &Session, name: &str) -> anyhow::Result<(Entry, String)> {
    let origin = session.find(Section::Prompts, name).await?;
    let prompts = entries(session, Section::Prompts);
    let of = |origin: Origin| prompts.iter().find(|(_, other)| *other == origin);
    if let Some((entry, _)) = origin.and_then(of) {
        return Ok((entry.clone(), entry.key.to_string()));
    }
    if let Some(owner) = session.disabled_owner(name) {
        bail!("the prompt {name:?} is unknown; {owner}");
    }
    let selected = prompts
        .iter()
        .filter(|(_, origin)| session.selects(&origin.member));
    let hint = did_you_mean(&alike(name, selected.map(|(entry, _)| &*entry.key)));
    bail!(
        "there is no prompt {name:?}{hint}\n\n  tip: {} all prompts",
        session.list_with("prompts")
    )
}

/// The arguments, which are all strings.
fn given(words: &[String], prompt: &Entry) -> Result<Raw, String> {
    let prompt: Prompt = prompt
        .definition
        .decode()
        .map_err(|error| error.to_string())?;
    let mut given = Object::new();
    for word in words {
        let (key, text) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is not an argument: write key=value"))?;
        if !prompt.arguments.iter().any(|argument| argument.name == key) {
            let known: Vec<_> = prompt
                .arguments
                .iter()
                .map(|known| known.name.as_str())
                .collect();
            let hint = did_you_mean(&alike(key, known.iter().copied()));
            return Err(format!(
                "the prompt has no argument {key:?}{hint} (it has: {})",
                known.join(", ")
            ));
        }
        let text = Raw::encode(text).map_err(|error| error.to_string())?;
        if given.set(key.to_owned(), text).is_some() {
            return Err(format!("{key:?} is given more than once"));
        }
    }
    let missing = prompt
        .arguments
        .iter()
        .find(|argument| argument.required && !given.contains(&argument.name));
    match missing {
        Some(missing) => {
            let text = missing.description.as_deref().unwrap_or("it is required");
            Err(format!("an argument is missing: {}: {text}", missing.name))
        }
        None => Ok(given.to_raw()),
    }
}

impl PromptListing {
    fn new(entry: &Entry, origin: &Origin) -> Self {
        Self {
            name: entry.key.to_string(),
            server: origin.member.to_string(),
            prompt: origin.name.to_string(),
            definition: entry.definition.clone(),
        }
    }

    fn row(&self) -> Vec<Cell> {
        let prompt = self.definition.decode::<Prompt>().ok();
        let arguments = prompt.iter().flat_map(|prompt| &prompt.arguments);
        let arguments: Vec<_> = arguments
            .map(|argument| {
                if argument.required {
                    argument.name.clone()
                } else {
                    format!("[{}]", argument.name)
                }
            })
            .collect();
        let text = prompt.and_then(|prompt| prompt.description.or(prompt.title));
        vec![
            Cell::new(Tone::Bold, &self.name),
            Cell::new(Tone::Dim, arguments.join(" ")),
            Cell::plain(first_line(&text.unwrap_or_default())),
        ]
    }
}

impl PromptsOutput {
    fn text(&self) -> Printable {
        if self.prompts.is_empty() {
            return "there are no prompts\n".into();
        }
        Canvas::output().table(
            &self
                .prompts
                .iter()
                .map(PromptListing::row)
                .collect::<Vec<_>>(),
        )
    }
}
