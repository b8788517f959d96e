//! Removes a server from the file that defines it.

use anyhow::bail;
use plexus_mcp_config::edit::{self, Document};
use plexus_mcp_config::{Locations, Scope, Source};

use crate::announce;

/// Removes a server from all files of the scope, and returns which. Without a scope, only one file
/// may define it, because the choice would be ambiguous.
pub(super) fn remove_server(
    locations: &Locations,
    name: &str,
    scope: Option<Scope>,
) -> anyhow::Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for source in locations.sources() {
        if !scope.is_none_or(|scope| is_of(&source, scope, locations)) {
            continue;
        }
        match Document::open(&source.file) {
            Ok(document) if document.servers().any(|(other, _)| other == name) => {
                sources.push(source);
            }
            Ok(_) => {}
            Err(problem) => announce::problem(&problem),
        }
    }
    let Some(first) = sources.first() else {
        let in_scope = scope.map_or_else(String::new, |scope| {
            format!(" in the {} scope", scope.as_str())
        });
        bail!("there is no server {name:?}{in_scope}; to list all servers: plexus mcp list");
    };
    let is_in_one_scope = sources.iter().all(|source| source.scope == first.scope);
    if scope.is_none() && !is_in_one_scope {
        let scopes: Vec<_> = sources
            .iter()
            .map(|source| format!("{} ({})", source.scope.as_str(), source.file.display()))
            .collect();
        let scopes = scopes.join(" and ");
        bail!("the server {name:?} is in several scopes, {scopes}; say which with --scope");
    }
    for source in &sources {
        edit::remove(&source.file, name)?;
    }
    Ok(sources)
}

/// Whether a file is of this scope. In the home directory, the project's files are the user's.
fn is_of(source: &Source, scope: Scope, locations: &Locations) -> bool {
    source.scope == scope || locations.file(scope).as_ref() == Some(&source.file)
}
