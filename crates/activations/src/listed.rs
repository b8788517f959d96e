//! Lists of a service that follow what is stored.

use std::collections::{BTreeMap, HashSet};

use plexus_service::{LocalService, Raw, Section, Service};

/// What a service must list differently.
pub(crate) struct Difference {
    /// What it must no longer list.
    pub(crate) gone: Vec<String>,
    /// What it does not list yet, or not like this.
    pub(crate) new: HashSet<String>,
}

/// How what a service lists, of that whose keys begin with `prefix`, differs from what it should;
/// `None` if it does not.
pub(crate) fn difference(
    service: &LocalService,
    section: Section,
    prefix: &str,
    mut wanted: BTreeMap<String, Raw>,
) -> Option<Difference> {
    let catalogue = service.catalogue();
    let catalogue = catalogue.borrow();
    let shown = catalogue.list(section).entries().iter();
    let mut gone = Vec::new();
    for entry in shown.filter(|entry| entry.key.starts_with(prefix)) {
        match wanted.get(&*entry.key) {
            None => gone.push(entry.key.as_ref().to_owned()),
            Some(definition) if *definition == entry.definition => {
                wanted.remove(&*entry.key);
            }
            Some(_) => {}
        }
    }
    let new: HashSet<String> = wanted.into_keys().collect();
    (!gone.is_empty() || !new.is_empty()).then_some(Difference { gone, new })
}
