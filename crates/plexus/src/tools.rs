//! `plexus tools`: lists tools.

use std::io;
use std::process::ExitCode;

use clap::Args;
use plexus_mcp_core::{Entry, Raw, Section, Service};
use plexus_mcp_hub::Origin;
use serde::{Deserialize, Serialize};

use crate::ad_hoc::ServerChoiceArgs;
use crate::arguments;
use crate::output::{as_json, is_terminal, print};
use crate::printable::{Printable, one_line};
use crate::session::{self, Session, problem};
use crate::terminal::{Canvas, Cell, Tone};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus tools
  plexus tools --server git
  plexus tools --server 'npx -y @modelcontextprotocol/server-memory'
  plexus tools --search create issue
  plexus tools -v --search create issue      What do these tools take?
  plexus tools --json | jq -r '.tools[] | select(.definition.annotations.readOnlyHint) | .name'

Where a tool comes from, and whether a call is allowed: plexus explain TOOL

The exit code is 0 if the tools were listed, even if some server cannot be asked (a warning);
1 if not; and 2 for wrong usage.";

/// Indentation of a tool's arguments.
const ARGUMENT_INDENT: usize = 4;

/// Arguments of `plexus tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    servers: ServerChoiceArgs,

    /// Only tools with all these words in their name, title or description.
    #[arg(long, value_name = "WORD", num_args = 1..)]
    search: Vec<String>,

    /// Show the arguments of each tool: their names, types and descriptions.
    ///
    /// With --json, the input schemas have them.
    #[arg(long, short)]
    verbose: bool,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The output.
#[derive(Serialize)]
struct ToolsOutput {
    tools: Vec<ToolListing>,
    /// Servers whose tools are not all known.
    failed: Vec<Failed>,
    /// Servers whose tools are not listed, because their definitions disable them.
    disabled: Vec<String>,
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
    session::run_chosen(&arguments.servers, async |session| {
        session.connect_selected().await?;
        let mut tools: Vec<_> = entries(session, Section::Tools)
            .into_iter()
            .map(|(entry, origin)| ToolListing::new(&entry, &origin))
            .filter(|tool| session.selects(&tool.server))
            .filter(|tool| tool.matches_words(&arguments.search))
            .collect();
        // Tools with the words in their name come first.
        tools.sort_by_key(|tool| !tool.is_named(&arguments.search));
        let failed = failed(session);
        if arguments.json {
            print(&as_json(&ToolsOutput {
                tools,
                failed,
                disabled: disabled(session),
            })?)?;
        } else if tools.is_empty() {
            print(if arguments.search.is_empty() {
                "there are no tools\n"
            } else {
                "no tool has all these words\n"
            })?;
        } else {
            print(table(&tools, arguments.verbose))?;
        }
        if !arguments.json {
            note_disabled(session)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The entries of a list, with their origin.
pub(crate) fn entries(session: &Session, section: Section) -> Vec<(Entry, Origin)> {
    let catalogue = session.hub.catalogue().borrow().clone();
    let entries = catalogue.list(section).entries().iter();
    entries
        .filter_map(|entry| Some((entry.clone(), session.hub.origin(section, &entry.key)?)))
        .collect()
}

/// The servers that could not be connected or listed.
pub(crate) fn failed(session: &Session) -> Vec<Failed> {
    let members = session.hub.status();
    let failed = members.iter().filter_map(|member| {
        Some(Failed {
            server: member.name.to_string(),
            reason: problem(member)?,
        })
    });
    failed.collect()
}

/// The names of the servers that are not listed, because their definitions disable them.
pub(crate) fn disabled(session: &Session) -> Vec<String> {
    let servers = session.disabled().into_iter();
    servers.map(|server| server.name.clone()).collect()
}

/// Says at a terminal which servers are not listed, because their definitions disable them.
pub(crate) fn note_disabled(session: &Session) -> io::Result<()> {
    let names = disabled(session);
    if names.is_empty() || !is_terminal() {
        return Ok(());
    }
    let canvas = Canvas::output();
    let note = format!(
        "not listed, because disabled: {}",
        one_line(&names.join(", "))
    );
    print(canvas.paint(Tone::Dim, canvas.wrap(&note, 0)) + "\n")
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

/// A line for each tool, and below it, if `verbose`, a line for each of its arguments.
fn table(tools: &[ToolListing], verbose: bool) -> Printable {
    let row = |tool: &ToolListing| {
        let text = tool
            .words
            .description
            .as_ref()
            .or(tool.words.title.as_ref());
        vec![
            Cell::new(Tone::Bold, &tool.name),
            Cell::plain(first_line(text.map_or("", String::as_str))),
        ]
    };
    let canvas = Canvas::output();
    let table = canvas.table(&tools.iter().map(row).collect::<Vec<_>>());
    if !verbose {
        return table;
    }
    let mut lines = Printable::default();
    for (line, tool) in table.lines().zip(tools) {
        lines = lines + line + "\n";
        for argument in arguments::described(&arguments::schema_of(&tool.definition)) {
            let argument = canvas.wrap(&one_line(&argument), ARGUMENT_INDENT + 2);
            lines.extend([" ".repeat(ARGUMENT_INDENT), argument, "\n".to_owned()]);
        }
    }
    lines
}

/// The first non-empty line of a text.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    one_line(lines.find(|line| !line.is_empty()).unwrap_or_default())
}
