//! `plexus config`: shows the settings in effect, and checks configuration files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plexus_mcp_agents::{Builtin, BuiltinSelection};
use plexus_mcp_config::{CheckError, ConfigProblem, EffectiveKey, check_file, effective_settings};
use plexus_mcp_hub::LIST_STARTUP_TIMEOUT;
use plexus_mcp_server::Options;
use plexus_mcp_server::http::HttpOptions;
use serde::Serialize;
use serde_json::Value;

use crate::announce;
use crate::cli::{DEFAULT_ADDRESS, existing_file};
use crate::mcp::show::Problem;
use crate::output::{Misuse, as_json, print};
use crate::process_env::{environment, locations};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus config show
  plexus config show --json | jq -r '.settings[] | select(.file) | .key'
  plexus config check plexus.toml
  plexus config check .mcp.json --json";

const SHOW_HELP: &str = "\
The keys are those of docs/configuration.md. Options of a command have precedence over them.

The exit code is 0, or 1 if a file has a problem, which is printed to standard error.";

const CHECK_HELP: &str = "\
Examples:
  plexus config check plexus.toml
  plexus config check .mcp.json servers.json

The exit code is 0 if the files are valid, 1 if a file has a problem, and 2 for wrong usage.";

/// The variable that has precedence over `builtin` under `[hub]`.
const BUILTIN_VARIABLE: &str = "PLEXUS_BUILTIN";

/// Arguments of `plexus config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,

    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every setting of plexus.toml with its value and the file that sets it.
    #[command(after_help = SHOW_HELP)]
    Show,
    /// Check files with settings (.toml) or servers (.json), and print each problem with its line.
    ///
    /// No server is started. The project's own plexus.toml is checked as the file of a project,
    /// which may not set everything.
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The files.
        #[arg(value_name = "FILE", required = true, value_parser = existing_file())]
        files: Vec<PathBuf>,
    },
}

/// Runs `plexus config`.
pub(crate) fn run(arguments: &ConfigArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        ConfigCommand::Show => show(arguments.json),
        ConfigCommand::Check { files } => check(files, arguments.json),
    }
}

/// The settings in effect.
#[derive(Serialize)]
struct SettingsOutput<'a> {
    settings: Vec<Setting>,
    problems: Vec<Problem<'a>>,
}

/// One key.
#[derive(Serialize)]
struct Setting {
    key: String,
    /// `null` if it has no default.
    value: Value,
    source: &'static str,
    /// The file that sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

impl Setting {
    fn of(effective: EffectiveKey) -> Self {
        if effective.key == "hub.builtin"
            && let Some(chosen) = environment(BUILTIN_VARIABLE)
        {
            return Self {
                key: effective.key,
                value: chosen.into(),
                source: BUILTIN_VARIABLE,
                file: None,
            };
        }
        let value = match effective.value {
            Some(value) => value,
            None => default_of(&effective.key),
        };
        Self {
            key: effective.key,
            value,
            source: if effective.file.is_some() {
                "file"
            } else {
                "default"
            },
            file: effective.file,
        }
    }

    fn line(&self) -> String {
        let value = if self.value.is_null() {
            "(none)".to_owned()
        } else {
            self.value.to_string()
        };
        let source = match &self.file {
            Some(file) => file.display().to_string(),
            None => self.source.to_owned(),
        };
        format!("{} = {value}  # {source}\n", self.key)
    }
}

/// The defaults that the parts of the program have which use them.
fn default_of(key: &str) -> Value {
    match key {
        "hub.builtin" => {
            let usual = BuiltinSelection::usual();
            usual.services().map(Builtin::as_str).collect()
        }
        "hub.startup_wait" => LIST_STARTUP_TIMEOUT.as_secs().into(),
        "hub.page_size" => Options::default().page_size.get().into(),
        "serve.http" => DEFAULT_ADDRESS.to_string().into(),
        "serve.path" => HttpOptions::default().path.into(),
        _ => Value::Null,
    }
}

fn show(json: bool) -> anyhow::Result<ExitCode> {
    let (keys, problems) = effective_settings(&locations()?);
    let settings: Vec<_> = keys.into_iter().map(Setting::of).collect();
    let text = if json {
        as_json(&SettingsOutput {
            settings,
            problems: problems.iter().map(Problem::of).collect(),
        })?
    } else {
        settings.iter().map(Setting::line).collect()
    };
    print(&text)?;
    for problem in &problems {
        announce::problem(&problem.to_string());
    }
    Ok(exit_code(&problems))
}

/// The problems of the files.
#[derive(Serialize)]
struct CheckOutput<'a> {
    problems: Vec<PlacedProblem<'a>>,
}

/// A problem with its place.
#[derive(Serialize)]
struct PlacedProblem<'a> {
    #[serde(flatten)]
    problem: Problem<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

fn check(files: &[PathBuf], json: bool) -> anyhow::Result<ExitCode> {
    let locations = locations()?;
    let mut problems = Vec::new();
    let mut valid: Vec<&Path> = Vec::new();
    for file in files {
        let found = check_file(file, &locations, &environment);
        let found =
            found.map_err(|error: CheckError| Misuse(format!("{}: {error}", file.display())))?;
        if found.is_empty() {
            valid.push(file);
        }
        problems.extend(found);
    }
    let text = if json {
        let placed = problems.iter().map(|problem| PlacedProblem {
            problem: Problem::of(problem),
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
        });
        as_json(&CheckOutput {
            problems: placed.collect(),
        })?
    } else {
        let valid = valid
            .iter()
            .map(|file| format!("{}: valid\n", file.display()));
        let lines = problems.iter().map(|problem| format!("{problem}\n"));
        lines.chain(valid).collect()
    };
    print(&text)?;
    Ok(exit_code(&problems))
}

fn exit_code(problems: &[ConfigProblem]) -> ExitCode {
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
