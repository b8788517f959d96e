//! Many catalogues made one, and the way from each of its entries to its owner.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_mcp::messages::{
    Implementation, ListCapability, ResourcesCapability, ServerCapabilities,
};
use plexus_service::{Catalogue, Entry, List, Section, UriTemplate};
use plexus_wire::{Object, Raw};

use crate::member::ToolFilter;
use crate::names::Names;

/// Which member owns an entry, and under which name it knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) member: Arc<str>,
    pub(crate) key: Arc<str>,
}

/// What one member offers, in the order of the members.
pub(crate) struct Offer {
    pub(crate) member: Arc<str>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// Which of its tools are shown.
    pub(crate) shows_tool: ToolFilter,
    /// Its names are shown as they are where they can be.
    pub(crate) plain_names: bool,
    /// Whether it is known what it offers; if not, it may turn out to be anything.
    pub(crate) is_known: bool,
}

impl Offer {
    /// Whether it is one and the same, so that nothing can have changed.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let Self {
            member,
            catalogue,
            shows_tool,
            plain_names,
            is_known,
        } = self;
        *member == other.member
            && Arc::ptr_eq(catalogue, &other.catalogue)
            && Arc::ptr_eq(shows_tool, &other.shows_tool)
            && *plain_names == other.plain_names
            && *is_known == other.is_known
    }
}

/// The way from names to owners.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    tools: Names<Owner>,
    prompts: Names<Owner>,
    resources: HashMap<Arc<str>, Owner>,
    templates: Vec<(Owner, Option<UriTemplate>)>,
}

impl Routes {
    pub(crate) fn tool(&self, name: &str) -> Option<&Owner> {
        self.tools.find(name)
    }

    /// Whether the tool is shown under some name.
    pub(crate) fn shows_tool(&self, owner: &Owner) -> bool {
        self.tools.stands_for(owner)
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Owner> {
        self.prompts.find(name)
    }

    /// The owner of a resource: of the listed one, else of the first template that fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<Owner> {
        if let Some(owner) = self.resources.get(uri) {
            return Some(owner.clone());
        }
        // A template beyond what we understand still says how its resources begin.
        let begins = |pattern: &str| {
            let literal = pattern.split('{').next().unwrap_or_default();
            !literal.is_empty() && uri.starts_with(literal)
        };
        let fits = |template: &Option<UriTemplate>, pattern: &str| {
            let matches = template
                .as_ref()
                .map(|template| template.matches(uri).is_some());
            matches.unwrap_or_else(|| begins(pattern))
        };
        let owner = self
            .templates
            .iter()
            .find(|(owner, template)| fits(template, &owner.key));
        owner.map(|(owner, _)| Owner {
            member: Arc::clone(&owner.member),
            key: uri.into(),
        })
    }

    /// The owner of a template, or of the resource that fits one.
    pub(crate) fn template(&self, uri_template: &str) -> Option<Owner> {
        let listed = self
            .templates
            .iter()
            .find(|(owner, _)| &*owner.key == uri_template);
        listed
            .map(|(owner, _)| owner.clone())
            .or_else(|| self.resource(uri_template))
    }
}

/// Merges what the members offer. Order is theirs; of two resources with one URI the first is
/// reached by it, the second by a URI that names its owner.
pub(crate) fn merge(identity: Implementation, offers: &[Offer]) -> (Catalogue, Routes) {
    let mut routes = Routes::default();
    let mut tools = Vec::new();
    let mut prompts = Vec::new();
    let mut resources = Vec::new();
    let mut templates = Vec::new();
    for Offer {
        member,
        catalogue,
        shows_tool,
        plain_names,
        ..
    } in offers
    {
        let owner = |key: &Arc<str>| Owner {
            member: Arc::clone(member),
            key: Arc::clone(key),
        };
        let named = |names: &mut Names<Owner>, key: &Arc<str>| {
            let plain = plain_names
                .then(|| names.add_plain(key, owner(key)))
                .flatten();
            plain.unwrap_or_else(|| names.add(member, key, owner(key)))
        };
        for entry in catalogue.list(Section::Tools).entries() {
            if shows_tool(&entry.key) {
                let name = named(&mut routes.tools, &entry.key);
                tools.extend(renamed(Section::Tools, entry, &name));
            }
        }
        for entry in catalogue.list(Section::Prompts).entries() {
            let name = named(&mut routes.prompts, &entry.key);
            prompts.extend(renamed(Section::Prompts, entry, &name));
        }
        for entry in catalogue.list(Section::Resources).entries() {
            let uri = if routes.resources.contains_key(&entry.key) {
                qualified(member, &entry.key)
            } else {
                Arc::clone(&entry.key)
            };
            if routes
                .resources
                .insert(Arc::clone(&uri), owner(&entry.key))
                .is_none()
            {
                resources.extend(renamed(Section::Resources, entry, &uri));
            }
        }
        for entry in catalogue.list(Section::Templates).entries() {
            let taken = routes
                .templates
                .iter()
                .any(|(owner, _)| owner.key == entry.key);
            if !taken {
                let pattern = UriTemplate::parse(&entry.key).ok();
                routes.templates.push((owner(&entry.key), pattern));
                templates.push(entry.clone());
            }
        }
    }
    let mut merged = Catalogue::new(identity, capabilities(offers));
    merged.instructions = instructions(offers);
    for (section, entries) in [
        (Section::Tools, tools),
        (Section::Prompts, prompts),
        (Section::Resources, resources),
        (Section::Templates, templates),
    ] {
        // Names and URIs were made unique.
        merged.set_list(section, List::new(entries).unwrap_or_default());
    }
    (merged, routes)
}

fn renamed(section: Section, entry: &Entry, name: &str) -> Option<Entry> {
    if &*entry.key == name {
        return Some(entry.clone());
    }
    entry.renamed(section, name).ok()
}

/// A URI that also says whose resource it is.
fn qualified(member: &str, uri: &str) -> Arc<str> {
    let mut name = String::new();
    for byte in member.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            name.push(char::from(byte));
        } else {
            name.extend(["%", &format!("{byte:02X}")]);
        }
    }
    format!("plexus://{name}/{uri}").into()
}

fn capabilities(offers: &[Offer]) -> ServerCapabilities {
    // Most clients hear what can be done only once, perhaps before all members have been heard.
    let of = |has: fn(&ServerCapabilities) -> bool| {
        offers
            .iter()
            .any(|offer| !offer.is_known || has(&offer.catalogue.capabilities))
    };
    // Lists of a hub change when members come and go, so whoever has a list is told of changes.
    let list = ListCapability { list_changed: true };
    let subscribe = of(|c| {
        c.resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe)
    });
    let resources = ResourcesCapability {
        subscribe,
        list_changed: true,
    };
    let first = |raw: fn(&ServerCapabilities) -> Option<&Raw>| {
        let mut all = Object::new();
        for offer in offers {
            let members =
                raw(&offer.catalogue.capabilities).and_then(|raw| Object::parse(raw).ok());
            for (name, value) in members.iter().flat_map(Object::iter) {
                if !all.contains(name) {
                    all.set(name, value.clone());
                }
            }
        }
        (!all.is_empty()).then(|| all.into_raw())
    };
    ServerCapabilities {
        tools: Some(list),
        resources: of(|c| c.resources.is_some()).then_some(resources),
        prompts: of(|c| c.prompts.is_some()).then_some(list),
        completions: of(|c| c.completions),
        logging: of(|c| c.logging),
        extensions: first(|c| c.extensions.as_ref()),
        experimental: first(|c| c.experimental.as_ref()),
    }
}

/// Every member's own instructions, under its name.
fn instructions(offers: &[Offer]) -> Option<String> {
    let parts: Vec<String> = offers
        .iter()
        .filter_map(|offer| {
            let text = offer.catalogue.instructions.as_deref()?.trim();
            let headed = || format!("# {}\n\n{text}", offer.member);
            match text {
                "" => None,
                text if offer.plain_names => Some(text.to_owned()),
                _ => Some(headed()),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
