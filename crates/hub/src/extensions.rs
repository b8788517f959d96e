//! The extensions and experimental capabilities of the members: which of them the hub declares, and
//! which member their methods are for.
//!
//! The names and URIs in an extension's messages belong to one server, so an extension is served by
//! the only server that has it. An extension that several servers have is not declared, unless it
//! has no methods.

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_mcp_protocol::messages::ServerCapabilities;
use plexus_mcp_wire::{Object, Raw};

use crate::routes::Offer;
use crate::ui;

/// Extensions with methods that are not named after them.
const OTHER_METHODS: [(&str, &str); 1] =
    [("io.modelcontextprotocol/skills", "resources/directory/")];

/// The members that serve extensions, by the ids of the extensions.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    owners: BTreeMap<String, Arc<str>>,
}

impl Extensions {
    pub(crate) fn of(offers: &[Offer]) -> Self {
        let mut owners: BTreeMap<String, Option<Arc<str>>> = BTreeMap::new();
        for offer in offers {
            for (id, _) in declared(&offer.catalogue.capabilities) {
                let owner = owners
                    .entry(id)
                    .or_insert_with(|| Some(Arc::clone(&offer.member)));
                if owner.as_ref().is_some_and(|owner| *owner != offer.member) {
                    *owner = None;
                }
            }
        }
        let owners = owners.into_iter();
        Self {
            owners: owners
                .filter_map(|(id, owner)| Some((id, owner?)))
                .collect(),
        }
    }

    /// The member that serves a method that is not one of the protocol.
    pub(crate) fn owner(&self, method: &str) -> Option<&Arc<str>> {
        let owned = self.owners.iter().find(|(id, _)| has_method(id, method));
        owned.map(|(_, owner)| owner)
    }

    /// The extensions in `of` each member that the hub serves; `None` if there are none.
    pub(crate) fn served(
        &self,
        offers: &[Offer],
        of: fn(&ServerCapabilities) -> Option<&Raw>,
    ) -> Option<Raw> {
        let mut served = Object::new();
        for offer in offers {
            for (id, value) in members(of(&offer.catalogue.capabilities)) {
                let is_served = id == ui::EXTENSION || self.owners.contains_key(&id);
                if is_served && !served.contains(&id) {
                    served.set(id, value);
                }
            }
        }
        (!served.is_empty()).then(|| served.to_raw())
    }
}

/// Whether `method` belongs to the extension: its name is the part of the id behind the last slash.
fn has_method(id: &str, method: &str) -> bool {
    let name = id.rsplit('/').next().unwrap_or(id);
    let is_named = method
        .strip_prefix(name)
        .is_some_and(|rest| rest.starts_with('/'));
    let mut other = OTHER_METHODS.iter();
    is_named || other.any(|(owner, prefix)| *owner == id && method.starts_with(prefix))
}

fn declared(capabilities: &ServerCapabilities) -> impl Iterator<Item = (String, Raw)> {
    let experimental = members(capabilities.experimental.as_ref());
    members(capabilities.extensions.as_ref()).chain(experimental)
}

fn members(raw: Option<&Raw>) -> impl Iterator<Item = (String, Raw)> + use<> {
    let object = raw.and_then(|raw| Object::parse(raw).ok());
    let members: Vec<_> = object
        .iter()
        .flat_map(Object::iter)
        .map(|(id, value)| (id.to_owned(), value.clone()))
        .collect();
    members.into_iter()
}

#[cfg(test)]
mod tests {
    use super::has_method;

    #[test]
    fn methods_are_named_after_their_extension() {
        let skills = "io.modelcontextprotocol/skills";
        for (id, method, expected) in [
            (skills, "skills/list", true),
            (skills, "resources/directory/read", true),
            (skills, "skillset/list", false),
            (skills, "groups/list", false),
            ("events", "events/poll", true),
            ("com.example/x", "resources/directory/read", false),
        ] {
            assert_eq!(has_method(id, method), expected, "{id} {method}");
        }
    }
}
