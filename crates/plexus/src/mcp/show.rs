//! Configured servers, as text and JSON, without secrets.

use std::path::Path;

use plexus_mcp_client::Program;
use plexus_mcp_config::{ConfigProblem, Kind, Loaded, ServerEntry, Source};
use plexus_mcp_core::Raw;
use serde::Serialize;

use crate::gateway::refused;
use crate::output::as_json;
use crate::printable::one_line;
use crate::trust::ProjectApprovals;

/// The whole configuration.
#[derive(Serialize)]
pub(crate) struct ConfigOutput<'a> {
    servers: Vec<ShownServer<'a>>,
    /// The servers that are not available, because their definitions or names cannot be used, or
    /// because they are not trusted.
    unavailable: Vec<UnavailableServer<'a>>,
    problems: Vec<Problem<'a>>,
}

impl<'a> ConfigOutput<'a> {
    pub(crate) fn of(loaded: &'a Loaded, approvals: &ProjectApprovals) -> Self {
        Self {
            servers: loaded.servers.iter().map(ShownServer::of).collect(),
            unavailable: unavailable(loaded, approvals),
            problems: loaded.problems.iter().map(Problem::of).collect(),
        }
    }
}

/// A server that is not available.
#[derive(Serialize)]
struct UnavailableServer<'a> {
    name: &'a str,
    file: &'a Path,
    reason: String,
}

fn unavailable<'a>(loaded: &'a Loaded, approvals: &ProjectApprovals) -> Vec<UnavailableServer<'a>> {
    let refused = refused(&loaded.problems, &loaded.servers).into_iter();
    let refused = refused.map(|problem| UnavailableServer {
        name: problem.server.as_deref().unwrap_or_default(),
        file: &problem.file,
        reason: problem.to_string(),
    });
    let others = loaded.servers.iter().filter_map(|entry| {
        Some(UnavailableServer {
            name: &entry.name,
            file: &entry.source.file,
            reason: approvals.reason_against(entry)?,
        })
    });
    refused.chain(others).collect()
}

/// A server that cannot be used, in one line.
pub(super) fn refused_line(problem: &ConfigProblem) -> String {
    let name = problem.server.as_deref().unwrap_or_default();
    let file = problem.file.display();
    one_line(&format!(
        "{name}  not available: {}  ({file})",
        problem.what
    )) + "\n"
}

/// One server.
#[derive(Serialize)]
pub(crate) struct ShownServer<'a> {
    name: &'a str,
    scope: &'static str,
    file: &'a Path,
    definition: Raw,
}

impl<'a> ShownServer<'a> {
    pub(crate) fn of(entry: &'a ServerEntry) -> Self {
        Self {
            name: &entry.name,
            scope: entry.source.scope.as_str(),
            file: &entry.source.file,
            definition: entry.shown().to_raw(),
        }
    }
}

/// A problem of a file.
#[derive(Serialize)]
pub(crate) struct Problem<'a> {
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The whole problem in one line.
    message: String,
}

impl<'a> Problem<'a> {
    pub(crate) fn of(problem: &'a ConfigProblem) -> Self {
        Self {
            file: &problem.file,
            server: problem.server.as_deref(),
            key: problem.key.as_deref(),
            message: problem.to_string(),
        }
    }
}

/// The changed files.
#[derive(Serialize)]
struct ChangedFiles<'a> {
    name: &'a str,
    changed: Vec<ChangedFile<'a>>,
}

#[derive(Serialize)]
struct ChangedFile<'a> {
    scope: &'static str,
    file: &'a Path,
}

/// Prints the change that was `done` to a server, and the files that it was made in.
pub(super) fn changed(
    done: &str,
    name: &str,
    sources: &[Source],
    json: bool,
) -> anyhow::Result<String> {
    if json {
        let changed_file = |source| {
            let Source { scope, file, .. }: &Source = source;
            ChangedFile {
                scope: scope.as_str(),
                file,
            }
        };
        let changed = sources.iter().map(changed_file).collect();
        return as_json(&ChangedFiles { name, changed });
    }
    let line = |source: &Source| {
        let (scope, file) = (source.scope.as_str(), source.file.display());
        one_line(&format!("{done} {name}: {file} ({scope} scope)")) + "\n"
    };
    Ok(sources.iter().map(line).collect())
}

/// One server in one line.
pub(super) fn line(entry: &ServerEntry, approvals: &ProjectApprovals) -> String {
    let disabled = if entry.disabled { ", disabled" } else { "" };
    let reason = approvals.reason_against(entry);
    let reason = reason.map_or_else(String::new, |reason| format!(", {reason}"));
    let line = format!(
        "{}  {}  ({}, {}{disabled}{reason})",
        entry.name,
        summary(entry),
        entry.source.scope.as_str(),
        entry.source.file.display(),
    );
    one_line(&line) + "\n"
}

/// One server, with each key of its definition on a line.
pub(super) fn details(entry: &ServerEntry) -> String {
    let mut lines = vec![
        entry.name.clone(),
        format!("  scope: {}", entry.source.scope.as_str()),
        format!("  file: {}", entry.source.file.display()),
    ];
    for (key, value) in entry.shown().iter() {
        let text = value.decode::<String>();
        let text = text.unwrap_or_else(|_| value.as_str().to_owned());
        lines.push(format!("  {key}: {text}"));
    }
    lines.iter().map(|line| one_line(line) + "\n").collect()
}

/// The kind of a server, and its program, quoted as for a shell, or URL.
pub(crate) fn summary(entry: &ServerEntry) -> String {
    let shown = entry.shown();
    let text = |key: &str| {
        let value = shown.get(key)?;
        value.decode::<String>().ok()
    };
    let what = match &entry.kind {
        Kind::Stdio { .. } => {
            let args = shown.get("args").map(Raw::decode::<Vec<String>>);
            let args = args.and_then(Result::ok).unwrap_or_default();
            let command = text("command").unwrap_or_default();
            Program::new(command).args(args).to_string()
        }
        Kind::Http { .. } | Kind::Sse { .. } => text("url").unwrap_or_default(),
        Kind::Builtin(name) => name.clone(),
        Kind::Unsupported(reason) => reason.clone(),
    };
    format!("{}  {what}", entry.kind.name())
}
