//! Removing a server from the file that has it.

use anyhow::bail;
use plexus_hub::config::edit::{self, Document};
use plexus_hub::config::{Locations, Scope, Source};

use crate::announce;

/// Removes a server from all files of the scope, and says from which. Without a scope, it must be
/// in one only: which of them is meant could not be told.
pub(super) fn everywhere(
    locations: &Locations,
    name: &str,
    scope: Option<Scope>,
) -> anyhow::Result<Vec<Source>> {
    let mut holders: Vec<Source> = Vec::new();
    for source in locations.sources() {
        if !scope.is_none_or(|scope| is_of(&source, scope, locations)) {
            continue;
        }
        match Document::open(&source.file) {
            Ok(document) if document.servers().any(|(other, _)| other == name) => {
                holders.push(source);
            }
            Ok(_) => {}
            Err(problem) => announce::problem(&problem),
        }
    }
    let Some(first) = holders.first() else {
        let place = scope.map_or_else(String::new, |scope| {
            format!(" in the {} scope", scope.as_str())
        });
        bail!("there is no server {name:?}{place}; for those there are: plexus mcp list");
    };
    let is_in_one_scope = holders.iter().all(|holder| holder.scope == first.scope);
    if scope.is_none() && !is_in_one_scope {
        let places: Vec<_> = holders
            .iter()
            .map(|holder| format!("{} ({})", holder.scope.as_str(), holder.file.display()))
            .collect();
        let places = places.join(" and ");
        bail!("the server {name:?} is in several scopes, {places}; say which with --scope");
    }
    for holder in &holders {
        edit::remove(&holder.file, name)?;
    }
    Ok(holders)
}

/// In the home directory, the project's files are the user's.
fn is_of(source: &Source, scope: Scope, locations: &Locations) -> bool {
    source.scope == scope || locations.file(scope).as_ref() == Some(&source.file)
}
