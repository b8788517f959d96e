//! The user's servers in `~/.mcp.json`, and their move to the file of Plexus alone.
//!
//! Claude Code looks for `.mcp.json` in every parent of its directory, so it finds the file in the
//! home directory as well, and loads its servers beside Plexus.

use std::path::{Path, PathBuf};

use anyhow::Context;
use plexus_mcp_config::edit::{self, Document};
use plexus_mcp_config::{Locations, Scope};
use plexus_mcp_core::Raw;

use super::Finding;
use crate::process_env::file_of;

/// Notes that `~/.mcp.json` has servers.
pub(super) fn check(locations: &Locations) -> Option<Finding> {
    let shared = locations.shared_user_file()?;
    // A file that cannot be parsed is reported with the other problems.
    let document = Document::open(&shared).ok()?;
    let names: Vec<_> = document.servers().map(|(name, _)| name).collect();
    if names.is_empty() {
        return None;
    }
    let what = format!(
        "{} has servers ({}), and Claude Code loads them from there as well",
        shared.display(),
        names.join(", ")
    );
    let finding = Finding::note("user-file", what);
    Some(finding.fix("to move them to Plexus's own file: plexus doctor --fix"))
}

/// Moves the servers of `~/.mcp.json` to the user's file of Plexus, and returns what was done, one
/// line each.
///
/// # Errors
/// A file cannot be read or written. Then no server is lost; some may be in both files.
pub(super) fn fix(locations: &Locations) -> anyhow::Result<Vec<String>> {
    let Some(shared) = locations.shared_user_file() else {
        return Ok(Vec::new());
    };
    let own = file_of(locations, Scope::User)?;
    let document = Document::open(&shared)?;
    let others = other_documents(locations, &shared)?;
    let mut moved: Vec<(String, Raw)> = Vec::new();
    let mut lines = Vec::new();
    for (name, definition) in document.servers() {
        match conflict(&others, name, definition) {
            Some(file) => lines.push(format!(
                "the server {name:?} stays in {}: {} defines it differently; remove the one that \
                 is not wanted",
                shared.display(),
                file.display()
            )),
            None => moved.push((name.to_owned(), definition.clone())),
        }
    }
    if moved.is_empty() {
        return Ok(lines);
    }
    // They are added before they are removed, so that none is lost if something fails in between.
    edit::change(&own, |document| {
        let mut added = moved.iter();
        added.try_for_each(|(name, definition)| document.set(name, definition))
    })?;
    edit::change(&shared, |document| {
        moved.iter().try_for_each(|(name, _)| document.remove(name))
    })
    .with_context(|| format!("the servers are now in {} as well", own.display()))?;
    let names: Vec<_> = moved.iter().map(|(name, _)| name.as_str()).collect();
    let (from, to) = (shared.display(), own.display());
    lines.insert(0, format!("moved {} from {from} to {to}", names.join(", ")));
    Ok(lines)
}

/// The other files of the user that may define servers.
fn other_documents(
    locations: &Locations,
    shared: &Path,
) -> anyhow::Result<Vec<(PathBuf, Document)>> {
    let sources = locations.sources().into_iter();
    let others = sources.filter(|source| source.scope == Scope::User && source.file != shared);
    let others = others.map(|source| Ok((source.file.clone(), Document::open(&source.file)?)));
    others.collect()
}

/// The file that defines a server of this name in another way. Names that differ only in case cannot
/// be in one file.
fn conflict<'a>(
    others: &'a [(PathBuf, Document)],
    name: &str,
    definition: &Raw,
) -> Option<&'a Path> {
    let folded = name.to_lowercase();
    others.iter().find_map(|(file, document)| {
        let mut servers = document.servers();
        let differs = servers.any(|(other, theirs)| {
            other.to_lowercase() == folded && (other != name || theirs != definition)
        });
        differs.then_some(file.as_path())
    })
}
