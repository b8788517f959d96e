//! Configured servers, as text and JSON, without secrets.

use std::path::Path;

use plexus_mcp_config::{ConfigProblem, Kind, Loaded, ServerEntry, Source};
use plexus_mcp_core::Raw;
use serde::Serialize;

use crate::output::{as_json, printable};

/// The whole configuration.
#[derive(Serialize)]
pub(crate) struct ConfigOutput<'a> {
    servers: Vec<Server<'a>>,
    problems: Vec<Problem<'a>>,
}

impl<'a> ConfigOutput<'a> {
    pub(crate) fn of(loaded: &'a Loaded) -> Self {
        Self {
            servers: loaded.servers.iter().map(Server::of).collect(),
            problems: loaded.problems.iter().map(Problem::of).collect(),
        }
    }
}

/// One server.
#[derive(Serialize)]
pub(crate) struct Server<'a> {
    name: &'a str,
    scope: &'static str,
    file: &'a Path,
    definition: Raw,
}

impl<'a> Server<'a> {
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
struct Changed<'a> {
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
        return as_json(&Changed { name, changed });
    }
    let line = |source: &Source| {
        let (scope, file) = (source.scope.as_str(), source.file.display());
        printable(&format!("{done} {name}: {file} ({scope} scope)")) + "\n"
    };
    Ok(sources.iter().map(line).collect())
}

/// One server in one line.
pub(super) fn line(entry: &ServerEntry) -> String {
    let disabled = if entry.disabled { ", disabled" } else { "" };
    let line = format!(
        "{}  {}  ({}, {}{disabled})",
        entry.name,
        summary(entry),
        entry.source.scope.as_str(),
        entry.source.file.display(),
    );
    printable(&line) + "\n"
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
    lines.iter().map(|line| printable(line) + "\n").collect()
}

/// The kind of a server, and its program or URL.
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
            let words: Vec<_> = text("command").into_iter().chain(args).collect();
            words.join(" ")
        }
        Kind::Http { .. } | Kind::Sse { .. } => text("url").unwrap_or_default(),
        Kind::Builtin(name) => name.clone(),
        Kind::Unsupported(reason) => reason.clone(),
    };
    format!("{}  {what}", entry.kind.name())
}
