//! Checks one configuration file, and finds the line of each problem.

use std::path::Path;

use plexus_mcp_wire::Raw;
use toml::de::{DeTable, DeValue};

use super::entry::{Scope, Source};
use super::load::{self, check};
use super::locations::{Locations, ServerFile};
use super::nearest::nearest;
use super::problem::{ConfigProblem, Position};
use super::server::SERVER_KEYS;
use super::settings::{Settings, SettingsFile};
use super::{disk, json};

/// Why a file was not checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// Its name does not show the kind of file.
    #[error("a file with settings ends with .toml, and a file with servers with .json")]
    UnknownKind,
}

/// The problems of one file: of a `.toml` file with settings, or of a `.json` file with servers. A
/// problem has the position in the file, if it is about something in it.
///
/// A project's own file is checked as such; any other file as one of the user.
///
/// # Errors
/// There is no such file, or its kind is unknown.
pub fn check_file(
    file: &Path,
    locations: &Locations,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ConfigProblem>, CheckError> {
    let is_settings = match file.extension().and_then(|end| end.to_str()) {
        Some("toml") => true,
        Some("json") => false,
        _ => return Err(CheckError::UnknownKind),
    };
    let text = match disk::read(file) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(CheckError::Missing),
        Err(problem) => return Ok(vec![problem]),
    };
    let (problems, locate): (_, Locate) = if is_settings {
        (settings_problems(file, &text, locations), in_settings)
    } else {
        (
            server_problems(file, &text, locations, environment),
            in_servers,
        )
    };
    let located = problems.into_iter().map(|problem| {
        if problem.position.is_some() || problem.file != *file {
            return problem;
        }
        match locate(&text, &problem) {
            Some(offset) => problem.at(Position::of_offset(&text, offset)),
            None => problem,
        }
    });
    Ok(located.collect())
}

/// Finds the offset of the place that a problem is about.
type Locate = fn(&str, &ConfigProblem) -> Option<usize>;

fn settings_problems(file: &Path, text: &str, locations: &Locations) -> Vec<ConfigProblem> {
    let known = locations.settings_files();
    let known = known.into_iter().find(|source| is_same(&source.file, file));
    let scope = known.map_or(Scope::User, |source| source.scope);
    match SettingsFile::parse(file, text) {
        Err(problem) => vec![problem],
        Ok(parsed) => {
            let mut problems = Vec::new();
            let source = Source::new(scope, file);
            parsed.merge_into(&mut Settings::default(), &source, &mut problems);
            problems
        }
    }
}

fn server_problems(
    file: &Path,
    text: &str,
    locations: &Locations,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<ConfigProblem> {
    let known = locations.server_files();
    let known = known
        .into_iter()
        .find(|place| is_same(&place.source.file, file));
    let scope = known.map_or(Scope::Explicit, |place| place.source.scope);
    let source = Source::new(scope, file);
    let place = ServerFile::new(source.clone(), locations);
    let mut problems = Vec::new();
    let definitions = match load::definitions(&place, text, &mut problems) {
        Ok(definitions) => definitions,
        Err(problem) => return vec![problem],
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, definition) in &definitions {
        if names.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
            let what = "the name is in the file twice, the first is used";
            let problem = ConfigProblem::new(file, what).server(name.as_str());
            problems.push(problem.advice("rename or remove one of them"));
            continue;
        }
        names.push(name);
        match check(name, definition, &source, locations, environment) {
            Ok(entry) => problems.extend(entry.other.iter().filter_map(|(key, _)| {
                let top_level = SERVER_KEYS
                    .iter()
                    .filter_map(|key| key.name.split('.').next());
                let meant = nearest(key, top_level)?;
                let problem = ConfigProblem::new(file, "the key is unknown").server(name.as_str());
                Some(problem.key(key).advice(format!("did you mean {meant}?")))
            })),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

fn is_same(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    a == b || canonical(a).is_some_and(|a| Some(a) == canonical(b))
}

/// The offset of the key in a TOML file, or of the innermost table of it that the file has.
fn in_settings(text: &str, problem: &ConfigProblem) -> Option<usize> {
    fn within(table: &DeTable<'_>, key: &str) -> Option<usize> {
        table.iter().find_map(|(name, value)| {
            let rest = key.strip_prefix(name.get_ref().as_ref())?;
            if !(rest.is_empty() || rest.starts_with(['.', '['])) {
                return None;
            }
            let inner = inside(value.get_ref(), rest);
            Some(inner.unwrap_or(name.span().start))
        })
    }
    fn inside(value: &DeValue<'_>, rest: &str) -> Option<usize> {
        match value {
            DeValue::Table(table) => within(table, rest.strip_prefix('.')?),
            DeValue::Array(items) => {
                let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
                let item = items.get(index.parse::<usize>().ok()?)?;
                Some(inside(item.get_ref(), rest).unwrap_or(item.span().start))
            }
            _ => None,
        }
    }
    let parsed = DeTable::parse(text).ok()?;
    within(parsed.get_ref(), problem.key.as_deref()?)
}

/// The offset of the value in a JSON file, or of the innermost object around it that the file has.
fn in_servers(text: &str, problem: &ConfigProblem) -> Option<usize> {
    fn within(raw: &Raw, key: &str) -> Option<Raw> {
        json::members(raw)?.into_iter().find_map(|(name, value)| {
            let rest = key.strip_prefix(name.as_str())?;
            match rest.chars().next() {
                None | Some('[') => Some(value),
                Some('.') => within(&value, rest.get(1..)?).or(Some(value)),
                Some(_) => None,
            }
        })
    }
    let root = json::parse(&problem.file, text).ok()?;
    let member = |raw: &Raw, wanted: &str| {
        let members = json::members(raw)?;
        let found = members.into_iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value)
    };
    let mut place = member(&root, "mcpServers")?;
    if let Some(server) = &problem.server {
        place = member(&place, server)?;
        if let Some(found) = problem.key.as_deref().and_then(|key| within(&place, key)) {
            place = found;
        }
    }
    // Parts of a value share its bytes. White space before the first value is not a part of it.
    let start = text.len() - text.trim_start().len();
    let offset = place.as_bytes().as_ptr().addr();
    let offset = offset.checked_sub(root.as_bytes().as_ptr().addr())?;
    Some(start + offset)
}

#[cfg(test)]
mod tests;
