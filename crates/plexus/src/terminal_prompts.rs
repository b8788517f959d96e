//! Answers questions of a server (elicitation, roots) by prompting the user at the terminal.

mod field;

use plexus_mcp_core::{AskError, ElicitParams, ElicitResult, Question, Raw, Root};
use plexus_mcp_protocol::messages::{ElicitFormParams, ElicitUrlParams, ListRootsResult};
use plexus_mcp_wire::{Object, RpcError};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::output::{self, say};
use crate::terminal::{Canvas, Tone};
use field::Field;

/// The error code of a refusal by the user, as clients use it.
const USER_REFUSED_CODE: i64 = -1;

/// Prompts on the terminal.
pub(crate) struct TerminalPrompts {
    /// Standard input; `None` if it is not a terminal.
    typed: Option<Lines<BufReader<Stdin>>>,
}

/// The result of a prompt.
enum PromptResult {
    Line(String),
    /// Ctrl-D: the user declines.
    End,
}

impl TerminalPrompts {
    /// Prompts on the terminal, if there is one.
    pub(crate) fn new() -> Self {
        let typed = Self::can_ask().then(|| BufReader::new(tokio::io::stdin()).lines());
        Self { typed }
    }

    /// Whether there is a terminal to ask at.
    pub(crate) fn can_ask() -> bool {
        output::can_ask()
    }

    /// The answer to a question.
    pub(crate) async fn answer(&mut self, question: &Question) -> Result<Raw, AskError> {
        match question {
            Question::Roots => roots(),
            Question::Sample(_) => Err(AskError::Refused(RpcError {
                code: USER_REFUSED_CODE,
                message: "there is no model here: plexus was called from a command line".to_owned(),
                data: None,
            })),
            Question::Elicit(params) => {
                let params = params.decode().map_err(|error| malformed(&error))?;
                Ok(self.elicit(params).await?.to_raw())
            }
        }
    }

    async fn elicit(&mut self, params: ElicitParams) -> Result<ElicitResult, AskError> {
        let (ElicitParams::Form(ElicitFormParams { message, .. })
        | ElicitParams::Url(ElicitUrlParams { message, .. })) = &params;
        let canvas = Canvas::errors();
        say(canvas.paint(Tone::Bold, message));
        if self.typed.is_none() {
            say(
                "  (this question cannot be answered: standard input and standard error must be a terminal)",
            );
            return Ok(ElicitResult::cancel());
        }
        let answered = match params {
            ElicitParams::Form(form) => self.fill_in(&form.requested_schema).await?,
            ElicitParams::Url(page) => self.visit(&page.url).await,
        };
        Ok(answered.unwrap_or_else(ElicitResult::decline))
    }

    /// Prompts for one field after the other; `None` if the user declines.
    async fn fill_in(&mut self, schema: &Raw) -> Result<Option<ElicitResult>, AskError> {
        let fields = Field::all(schema).map_err(AskError::Unaskable)?;
        say("  (Enter takes the value in brackets, Ctrl-D declines)");
        let mut content = Object::new();
        for field in &fields {
            say(field.description());
            let value = loop {
                let PromptResult::Line(line) = self.prompt(&field.prompt()).await else {
                    return Ok(None);
                };
                match field.read(&line) {
                    Ok(value) => break value,
                    Err(wrong) => say(format!("  {wrong}")),
                }
            };
            if let Some(value) = value {
                content.set(field.name.clone(), value);
            }
        }
        Ok(Some(ElicitResult::accept(content.to_raw())))
    }

    /// Shows a link, and waits until the user has opened it. The link is never opened
    /// automatically.
    async fn visit(&mut self, url: &str) -> Option<ElicitResult> {
        let host = url.parse::<http::Uri>().ok();
        let host = host.and_then(|uri| uri.host().map(str::to_owned));
        let host = host.unwrap_or_else(|| "an unreadable URL".to_owned());
        say(format!("  the server wants you to visit {host}:\n  {url}"));
        loop {
            let PromptResult::Line(line) = self.prompt("  will you visit it? [y/N] ").await else {
                return None;
            };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Some(ElicitResult::accept_url()),
                "" | "n" | "no" => return None,
                _ => say("  type y or n"),
            }
        }
    }

    async fn prompt(&mut self, prompt: &str) -> PromptResult {
        output::say_in_line(prompt);
        let line = match &mut self.typed {
            Some(typed) => typed.next_line().await.ok().flatten(),
            None => None,
        };
        if let Some(line) = line {
            PromptResult::Line(line)
        } else {
            // The cursor is still in the line of the prompt.
            say("");
            PromptResult::End
        }
    }
}

/// The root for servers: the current directory.
fn roots() -> Result<Raw, AskError> {
    let root = project_root().map_err(|error| malformed(&error))?;
    Ok(ListRootsResult { roots: vec![root] }.to_raw())
}

/// The current directory as a root.
///
/// # Errors
/// There is no current directory.
pub(crate) fn project_root() -> std::io::Result<Root> {
    let directory = std::env::current_dir()?;
    let mut root = Root::new(file_uri(&directory));
    root.name = directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    Ok(root)
}

fn file_uri(path: &std::path::Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.extend(["%", &format!("{byte:02X}")]);
        }
    }
    uri
}

fn malformed(error: &dyn std::error::Error) -> AskError {
    AskError::Unaskable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_uris() {
        let uri = file_uri(std::path::Path::new("/home/ada/my project/é"));
        assert_eq!(uri, "file:///home/ada/my%20project/%C3%A9");
    }

    /// A stateless server may ask for sampling although we did not declare it.
    #[tokio::test]
    async fn there_is_no_model_here() {
        let question = Question::Sample(Raw::empty_object());
        let refused = TerminalPrompts { typed: None }.answer(&question).await;
        assert!(matches!(refused, Err(AskError::Refused(_))), "{refused:?}");
    }
}
