//! `plexus mcp`: shows and edits the configured servers, with the commands of `claude mcp` (C25).

mod add;
mod remove;
pub(crate) mod show;

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use plexus_mcp_config::edit::{self, Document, EditError};
use plexus_mcp_config::{self as config, Loaded, Locations, Scope, Source};
use plexus_mcp_core::{Limits, Raw};

use add::AddArgs;

use crate::announce;
use crate::gateway::{refuse_reserved, refused};
use crate::output::{as_json, print};
use crate::process_env::{environment, file_of, locations};
use crate::trust::{self, ProjectApprovals};

pub(crate) const EXAMPLES: &str = "\
Examples:
  A program that runs on this machine, for this project:
    plexus mcp add git -- mcp-server-git --repository .

  A remote server, for all projects; the token stays in the environment:
    plexus mcp add --scope user --transport http github https://example.com/mcp \\
      -H 'Authorization: Bearer ${TOKEN}'

  A definition as .mcp.json has it:
    plexus mcp add-json time '{\"command\": \"mcp-server-time\", \"timeout_ms\": 5000}'

  List the names of the servers in a script:
    plexus mcp list --json | jq -r '.servers[].name'

The files are, from the highest precedence to the lowest: ./.claude/settings.local.json (local),
./.mcp.json (project), ~/.config/plexus/servers.json, ~/.claude/settings.local.json and ~/.mcp.json
(user).

The exit code is 0 for success, 1 for failure, and 2 for wrong usage.";

/// Arguments of `plexus mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,

    /// Print one JSON object instead of text. Secrets are masked.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Add a server.
    #[command(after_help = add::EXAMPLES)]
    Add(AddArgs),
    /// Add a server by its definition in JSON.
    #[command(after_help = "\
Example:
  plexus mcp add-json time '{\"command\": \"mcp-server-time\", \"timeout_ms\": 5000}' --scope user")]
    AddJson {
        /// The name of the server.
        name: String,
        /// The definition, as in .mcp.json.
        #[arg(value_name = "JSON")]
        definition: String,
        /// The scope, which selects the file to add it to.
        #[arg(short, long, value_enum, default_value_t)]
        scope: ScopeName,
    },
    /// List the servers, and problems of the files. No server is connected.
    #[command(after_help = "\
Examples:
  plexus mcp list
  plexus mcp list --json | jq -r '.servers[] | [.name, .file] | @tsv'

To show the status of the servers: plexus status")]
    List,
    /// Show one server, with its secrets masked.
    #[command(after_help = "Example:\n  plexus mcp get git --json | jq .definition")]
    Get {
        /// Its name.
        name: String,
    },
    /// Remove a server.
    #[command(
        after_help = "Examples:\n  plexus mcp remove git\n  plexus mcp remove git --scope user"
    )]
    Remove {
        /// Its name.
        name: String,
        /// The scope to remove it from; required only if several files define it.
        #[arg(short, long, value_enum)]
        scope: Option<ScopeName>,
    },
}

/// The scope of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// You, in this project: ./.claude/settings.local.json.
    #[default]
    Local,
    /// The project, shared with others: ./.mcp.json.
    Project,
    /// You, in all projects: ~/.config/plexus/servers.json.
    User,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Local => Self::Local,
            ScopeName::Project => Self::Project,
            ScopeName::User => Self::User,
        }
    }
}

impl McpArgs {
    /// Rejects arguments that cannot be combined.
    ///
    /// # Errors
    /// The usage error.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        match &self.command {
            McpCommand::Add(arguments) => arguments.check(),
            _ => Ok(()),
        }
    }
}

/// Runs `plexus mcp`.
pub(crate) fn run(arguments: &McpArgs) -> anyhow::Result<ExitCode> {
    let locations = locations()?;
    let json = arguments.json;
    let text = match &arguments.command {
        McpCommand::Add(new) => {
            let source = source(&locations, new.scope)?;
            add(&locations, &new.name, &new.definition()?, &source)?;
            show::changed("added", &new.name, &[source], json)?
        }
        McpCommand::AddJson {
            name,
            definition,
            scope,
        } => {
            let definition = Raw::parse(definition.clone().into(), &Limits::default())
                .with_context(|| format!("the definition of {name:?} cannot be read"))?;
            let source = source(&locations, *scope)?;
            add(&locations, name, &definition, &source)?;
            show::changed("added", name, &[source], json)?
        }
        McpCommand::List => {
            let approvals = ProjectApprovals::read(&locations.project_dir)?;
            let mut loaded = config::load(&locations, &environment);
            refuse_reserved(&mut loaded);
            list(&loaded, &approvals, json)?
        }
        McpCommand::Get { name } => get(&config::load(&locations, &environment), name, json)?,
        McpCommand::Remove { name, scope } => {
            let sources = remove::remove_server(&locations, name, scope.map(Into::into))?;
            show::changed("removed", name, &sources, json)?
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn source(locations: &Locations, scope: ScopeName) -> anyhow::Result<Source> {
    let scope = scope.into();
    Ok(Source::new(scope, file_of(locations, scope)?))
}

/// Adds a server, if its definition is valid. A variable that is not set yet is only a warning.
fn add(locations: &Locations, name: &str, definition: &Raw, source: &Source) -> anyhow::Result<()> {
    match config::check(name, definition, source, locations, &environment) {
        Err(problem) if !problem.is_about_environment() => return Err(problem.into()),
        _ => {}
    }
    edit::add(&source.file, name, definition).map_err(|error| match error {
        EditError::Taken { ref name, .. } => {
            anyhow!("{error}; choose another name, or first: plexus mcp remove {name:?}")
        }
        other => other.into(),
    })?;

    let loaded = config::load(locations, &environment);
    for problem in &loaded.problems {
        if problem.file == source.file && problem.server.as_deref() == Some(name) {
            announce::problem(problem);
        }
    }
    match loaded.servers.iter().find(|entry| entry.name == name) {
        Some(other) if other.source.file != source.file => announce::problem(&format!(
            "it is not used here: the server {name:?} of {} has precedence",
            other.source.file.display()
        )),
        added => {
            if let Some(added) = added {
                trust::allow_added(&locations.project_dir, added);
            }
            announce_shadowed(locations, name, source);
        }
    }
    Ok(())
}

/// Says which files define `name` as well, and have lower precedence than `source`.
fn announce_shadowed(locations: &Locations, name: &str, source: &Source) {
    let sources = locations.sources().into_iter();
    let lower = sources
        .skip_while(|other| other.file != source.file)
        .skip(1);
    for other in lower {
        let document = Document::open(&other.file);
        if document.is_ok_and(|document| document.servers().any(|(other, _)| other == name)) {
            let file = other.file.display();
            announce::problem(&format!("it takes precedence over {name:?} in {file}"));
        }
    }
}

fn list(loaded: &Loaded, approvals: &ProjectApprovals, json: bool) -> anyhow::Result<String> {
    if json {
        return as_json(&show::ConfigOutput::of(loaded, approvals));
    }
    for problem in &loaded.problems {
        announce::problem(problem);
    }
    if loaded.servers.is_empty() && loaded.problems.is_empty() {
        return Ok("no server is configured; to add one, see: plexus mcp add --help\n".to_owned());
    }
    let servers = loaded.servers.iter();
    let servers = servers.map(|entry| show::line(entry, approvals));
    let refused = refused(&loaded.problems, &loaded.servers).into_iter();
    Ok(servers.chain(refused.map(show::refused_line)).collect())
}

fn get(loaded: &Loaded, name: &str, json: bool) -> anyhow::Result<String> {
    if let Some(entry) = loaded.servers.iter().find(|entry| entry.name == name) {
        return if json {
            as_json(&show::ShownServer::of(entry))
        } else {
            Ok(show::details(entry))
        };
    }
    let (about_it, others): (Vec<_>, Vec<_>) = loaded
        .problems
        .iter()
        .partition(|problem| problem.server.as_deref() == Some(name));
    if let Some(problem) = about_it.first() {
        return Err((*problem).clone().into());
    }
    for problem in others {
        announce::problem(problem);
    }
    Err(anyhow!(
        "there is no server {name:?}; to list all servers: plexus mcp list"
    ))
}
