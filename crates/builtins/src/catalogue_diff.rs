//! Differences between the entries that a service lists and the stored ones.

use std::collections::{BTreeMap, HashSet};

use plexus_mcp_core::{LocalService, Raw, Section, Service};

/// The changes that bring a list of a service up to date.
#[derive(Debug)]
pub struct CatalogueDiff {
    /// Keys of entries to remove.
    pub removed: Vec<String>,
    /// Keys of entries to add or to replace.
    pub added: HashSet<String>,
}

/// Compares the entries of a list whose keys begin with `prefix` with `wanted`, the definitions that
/// the list should have. `None` if they are the same.
pub fn catalogue_diff(
    service: &LocalService,
    section: Section,
    prefix: &str,
    mut wanted: BTreeMap<String, Raw>,
) -> Option<CatalogueDiff> {
    let catalogue = service.catalogue();
    let catalogue = catalogue.borrow();
    let listed = catalogue.list(section).entries().iter();
    let mut removed = Vec::new();
    for entry in listed.filter(|entry| entry.key.starts_with(prefix)) {
        match wanted.get(&*entry.key) {
            None => removed.push(entry.key.as_ref().to_owned()),
            Some(definition) if *definition == entry.definition => {
                wanted.remove(&*entry.key);
            }
            Some(_) => {}
        }
    }
    let added: HashSet<String> = wanted.into_keys().collect();
    (!removed.is_empty() || !added.is_empty()).then_some(CatalogueDiff { removed, added })
}
