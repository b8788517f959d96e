//! Edits servers in the files that define them.

use std::path::PathBuf;

use anyhow::bail;
use plexus_mcp_config::edit::{self, Document};
use plexus_mcp_config::{self as config, Locations, Scope, Source};
use plexus_mcp_core::Raw;
use plexus_mcp_wire::Object;

use crate::announce;
use crate::process_env::environment;
use crate::suggest::{alike, did_you_mean};

const DISABLED: &str = "disabled";

/// A server as its file defines it.
struct FileEntry {
    source: Source,
    definition: Object,
}

/// Whether the file of a server enables it.
///
/// # Errors
/// No file has such a server.
pub(super) fn is_enabled(locations: &Locations, name: &str) -> anyhow::Result<bool> {
    let entry = find(locations, name)?;
    let disabled = entry.definition.get(DISABLED);
    Ok(disabled.is_none_or(|disabled| disabled.as_str() != "true"))
}

/// Enables or disables a server in its file, and returns the file.
///
/// # Errors
/// No file has such a server, or it cannot be written.
pub(super) fn enable(locations: &Locations, name: &str, enabled: bool) -> anyhow::Result<PathBuf> {
    let FileEntry {
        source,
        mut definition,
    } = find(locations, name)?;
    if enabled {
        definition.remove(DISABLED);
    } else {
        definition.set(DISABLED, Raw::encode(&true)?);
    }
    write(source, name, &definition.to_raw())
}

/// Replaces a server in its file, and returns the file.
///
/// # Errors
/// No file has such a server, the definition is invalid, or the file cannot be written.
pub(super) fn replace(
    locations: &Locations,
    name: &str,
    definition: &Raw,
) -> anyhow::Result<PathBuf> {
    let FileEntry { source, .. } = find(locations, name)?;
    match config::check(name, definition, &source, locations, &environment) {
        Err(problem) if !problem.is_about_environment() => return Err(problem.into()),
        // The server is used as soon as the variable is set.
        Err(problem) => announce::problem(&problem),
        Ok(_) => {}
    }
    if source.scope == Scope::Project {
        announce::problem(&format!(
            "it is in the project's file, and must be approved again: plexus trust {name}"
        ));
    }
    write(source, name, definition)
}

/// The server in the file with precedence.
fn find(locations: &Locations, name: &str) -> anyhow::Result<FileEntry> {
    let mut names = Vec::new();
    for source in locations.sources() {
        let document = match Document::open(&source.file) {
            Ok(document) => document,
            Err(problem) => {
                announce::problem(&problem);
                continue;
            }
        };
        if let Some((_, definition)) = document.servers().find(|(other, _)| *other == name) {
            let definition = Object::parse(definition).unwrap_or_default();
            return Ok(FileEntry { source, definition });
        }
        names.extend(document.servers().map(|(name, _)| name.to_owned()));
    }
    let hint = did_you_mean(&alike(name, names.iter().map(String::as_str)));
    bail!(
        "no file has a server {name:?}{hint}\n\n  tip: to add one, see: plexus mcp add-json --help"
    )
}

fn write(source: Source, name: &str, definition: &Raw) -> anyhow::Result<PathBuf> {
    edit::change(&source.file, |document| document.set(name, definition))?;
    Ok(source.file)
}
