//! `plexus tools`: lists tools.

use std::process::ExitCode;

use clap::Args;
use plexus_mcp_core::{Entry, Raw, Section, Service};
use plexus_mcp_hub::Origin;
use serde::{Deserialize, Serialize};

use crate::output::{as_json, print, printable};
use crate::session::{self, ConfigArgs, Session, failure};
use crate::terminal::{Canvas, Cell, Tone};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus tools
  plexus tools --server git
  plexus tools --search create issue
  plexus tools --json | jq -r '.tools[] | select(.definition.annotations.readOnlyHint) | .name'

What a tool takes, and where it comes from: plexus explain TOOL

The exit code is 0 if the tools were listed, even if some server cannot be connected (a warning);
1 if not; and 2 for wrong usage.";

/// Arguments of `plexus tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Only tools with all these words in their name, title or description.
    #[arg(long, value_name = "WORD", num_args = 1..)]
    search: Vec<String>,

    /// Only tools of this server; no other is started.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The output.
#[derive(Serialize)]
struct ToolsOutput {
    tools: Vec<ToolListing>,
    /// Servers whose tools are not known.
    failed: Vec<Failed>,
}

/// A tool, as its server defines it, with its origin.
#[derive(Serialize)]
struct ToolListing {
    name: String,
    server: String,
    /// The server's name for it.
    tool: String,
    definition: Raw,
    #[serde(skip)]
    words: ToolText,
}

#[derive(Serialize)]
pub(crate) struct Failed {
    server: String,
    reason: String,
}

/// The searched parts of a definition.
#[derive(Default, Deserialize)]
struct ToolText {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// Runs `plexus tools`.
pub(crate) fn run(arguments: &ToolsArgs) -> anyhow::Result<ExitCode> {
    session::run(&arguments.config, async |session| {
        connect(session, arguments.server.as_deref()).await?;
        let mut tools: Vec<_> = entries(session, Section::Tools)
            .into_iter()
            .map(|(entry, origin)| ToolListing::new(&entry, &origin))
            .filter(|tool| {
                arguments
                    .server
                    .as_deref()
                    .is_none_or(|server| *tool.server == *server)
            })
            .filter(|tool| tool.matches_words(&arguments.search))
            .collect();
        // Tools with the words in their name come first.
        tools.sort_by_key(|tool| !tool.is_named(&arguments.search));
        let failed = failed(session);
        if arguments.json {
            print(&as_json(&ToolsOutput { tools, failed })?)?;
        } else if tools.is_empty() {
            print(if arguments.search.is_empty() {
                "there are no tools\n"
            } else {
                "no tool has all these words\n"
            })?;
        } else {
            print(&table(&tools))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Connects one server, or all.
///
/// # Errors
/// There is no such server, or it cannot be connected.
pub(crate) async fn connect(session: &Session, server: Option<&str>) -> anyhow::Result<()> {
    let Some(name) = server else {
        session.connect_all().await;
        return Ok(());
    };
    session.check_server(name)?;
    session.connect(|member| member == name).await;
    match session.status(name).as_ref().and_then(failure) {
        // The reason has already been printed.
        Some(_) => anyhow::bail!("the server {name:?} is not connected"),
        None => Ok(()),
    }
}

/// The entries of a list, with their origin.
pub(crate) fn entries(session: &Session, section: Section) -> Vec<(Entry, Origin)> {
    let catalogue = session.hub.catalogue().borrow().clone();
    let entries = catalogue.list(section).entries().iter();
    entries
        .filter_map(|entry| Some((entry.clone(), session.hub.origin(section, &entry.key)?)))
        .collect()
}

/// The servers that could not be asked.
pub(crate) fn failed(session: &Session) -> Vec<Failed> {
    let members = session.hub.status();
    let failed = members.iter().filter_map(|member| {
        Some(Failed {
            server: member.name.to_string(),
            reason: failure(member)?,
        })
    });
    failed.collect()
}

impl ToolListing {
    fn new(entry: &Entry, origin: &Origin) -> Self {
        Self {
            name: entry.key.to_string(),
            server: origin.member.to_string(),
            tool: origin.name.to_string(),
            definition: entry.definition.clone(),
            words: entry.definition.decode().unwrap_or_default(),
        }
    }

    fn matches_words(&self, words: &[String]) -> bool {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (title, description) = (text(&self.words.title), text(&self.words.description));
        let text = format!("{} {title} {description}", self.name).to_lowercase();
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    }

    fn is_named(&self, words: &[String]) -> bool {
        let name = self.name.to_lowercase();
        words.iter().all(|word| name.contains(&word.to_lowercase()))
    }
}

fn table(tools: &[ToolListing]) -> String {
    let row = |tool: &ToolListing| {
        let text = tool
            .words
            .description
            .as_ref()
            .or(tool.words.title.as_ref());
        vec![
            Cell::new(Tone::Bold, printable(&tool.name)),
            Cell::plain(first_line(text.map_or("", String::as_str))),
        ]
    };
    Canvas::output().table(&tools.iter().map(row).collect::<Vec<_>>())
}

/// The first non-empty line of a text.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    printable(lines.find(|line| !line.is_empty()).unwrap_or_default())
}
