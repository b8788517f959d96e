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

/// How all URIs begin that say whose they are.
const SCHEME: &str = "plexus://";

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
    /// Under which names the tools of each member are shown, by its own names for them.
    shown_tools: HashMap<Arc<str>, HashMap<Arc<str>, Arc<str>>>,
    prompts: Names<Owner>,
    resources: HashMap<Arc<str>, Owner>,
    templates: Vec<Template>,
    /// Members by how URIs begin that say whose they are.
    qualifiers: HashMap<String, Arc<str>>,
}

#[derive(Debug)]
struct Template {
    owner: Owner,
    shown: Arc<str>,
    pattern: Option<UriTemplate>,
}

impl Routes {
    pub(crate) fn tool(&self, name: &str) -> Option<&Owner> {
        self.tools.find(name)
    }

    /// The names under which all tools are shown that their owners call `name`.
    pub(crate) fn tools_called(&self, name: &str) -> &[Arc<str>] {
        self.tools.called(name)
    }

    /// The name under which the tool is shown that `member` calls `key`.
    pub(crate) fn shown_tool(&self, member: &str, key: &str) -> Option<&Arc<str>> {
        self.shown_tools.get(member)?.get(key)
    }

    /// Whether the tool is shown under some name.
    pub(crate) fn shows_tool(&self, owner: &Owner) -> bool {
        self.shown_tool(&owner.member, &owner.key).is_some()
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Owner> {
        self.prompts.find(name)
    }

    /// The names under which all prompts are shown that their owners call `name`.
    pub(crate) fn prompts_called(&self, name: &str) -> &[Arc<str>] {
        self.prompts.called(name)
    }

    /// The owner of a resource: whom its URI names, else who lists it, else who has the first
    /// template that fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<Owner> {
        if let Some((qualifier, own)) = split_qualified(uri)
            && let Some(member) = self.qualifiers.get(qualifier)
        {
            return Some(Owner {
                member: Arc::clone(member),
                key: own.into(),
            });
        }
        if let Some(owner) = self.resources.get(uri) {
            return Some(owner.clone());
        }
        let fitting = self.templates.iter().find(|template| template.fits(uri));
        fitting.map(|template| Owner {
            member: Arc::clone(&template.owner.member),
            key: uri.into(),
        })
    }

    /// How the URIs of the member begin that `uri` names, if it names one.
    pub(crate) fn qualifier<'a>(&self, uri: &'a str) -> Option<&'a str> {
        let (qualifier, _) = split_qualified(uri)?;
        self.qualifiers.contains_key(qualifier).then_some(qualifier)
    }

    /// The owner of a template, or of the resource that fits one.
    pub(crate) fn template(&self, uri_template: &str) -> Option<Owner> {
        let listed = self
            .templates
            .iter()
            .find(|template| &*template.shown == uri_template);
        listed
            .map(|template| template.owner.clone())
            .or_else(|| self.resource(uri_template))
    }
}

impl Template {
    fn fits(&self, uri: &str) -> bool {
        if let Some(pattern) = &self.pattern {
            return pattern.matches(uri).is_some();
        }
        // A template beyond what we understand still says how its resources begin.
        let literal = self.shown.split('{').next().unwrap_or_default();
        !literal.is_empty() && uri.starts_with(literal)
    }
}

/// Merges what the members offer. Order is theirs; of two resources or templates with one URI the
/// first is reached by it, the second by a URI that names its owner.
pub(crate) fn merge(identity: Implementation, offers: &[Offer]) -> (Catalogue, Routes) {
    let mut routes = Routes::default();
    let qualifiers = offers
        .iter()
        .map(|offer| (qualifier(&offer.member), Arc::clone(&offer.member)));
    routes.qualifiers.extend(qualifiers);
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
            plain.unwrap_or_else(|| names.add(Arc::clone(member), Arc::clone(key), owner(key)))
        };
        for entry in catalogue.list(Section::Tools).entries() {
            if shows_tool(&entry.key) {
                let name = named(&mut routes.tools, &entry.key);
                tools.extend(renamed(Section::Tools, entry, &name));
                let shown = routes.shown_tools.entry(Arc::clone(member)).or_default();
                shown.insert(Arc::clone(&entry.key), name);
            }
        }
        for entry in catalogue.list(Section::Prompts).entries() {
            let name = named(&mut routes.prompts, &entry.key);
            prompts.extend(renamed(Section::Prompts, entry, &name));
        }
        for entry in catalogue.list(Section::Resources).entries() {
            // Nobody lists what another's URIs stand for.
            let taken =
                routes.resources.contains_key(&entry.key) || routes.qualifier(&entry.key).is_some();
            let uri = shown_uri(member, &entry.key, taken);
            if let Some(shown) = renamed(Section::Resources, entry, &uri) {
                routes.resources.insert(uri, owner(&entry.key));
                resources.push(shown);
            }
        }
        for entry in catalogue.list(Section::Templates).entries() {
            let taken = routes
                .templates
                .iter()
                .any(|template| template.shown == entry.key)
                || routes.qualifier(&entry.key).is_some();
            let shown = shown_uri(member, &entry.key, taken);
            if let Some(renamed) = renamed(Section::Templates, entry, &shown) {
                routes.templates.push(Template {
                    owner: owner(&entry.key),
                    pattern: UriTemplate::parse(&shown).ok(),
                    shown,
                });
                templates.push(renamed);
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

/// The result of reading a resource of which the URI named the owner, with URIs that do so, too.
pub(crate) fn qualified_contents(result: &Raw, qualifier: &str) -> Option<Raw> {
    let mut result = Object::parse(result).ok()?;
    let contents: Vec<Raw> = result.get("contents")?.decode().ok()?;
    let qualified = |content: &Raw| {
        let mut content = Object::parse(content).ok()?;
        let uri: String = content.get("uri")?.decode().ok()?;
        content.set("uri", Raw::encode(&format!("{qualifier}{uri}")).ok()?);
        Some(content.to_raw())
    };
    let contents: Option<Vec<Raw>> = contents.iter().map(qualified).collect();
    result.set("contents", Raw::encode(&contents?).ok()?);
    Some(result.to_raw())
}

/// How a URI is shown: as it is, or if it is taken, so that it also says whose it is.
fn shown_uri(member: &str, uri: &Arc<str>, taken: bool) -> Arc<str> {
    if taken {
        format!("{}{uri}", qualifier(member)).into()
    } else {
        Arc::clone(uri)
    }
}

/// How the URIs begin that say that they are the member's.
fn qualifier(member: &str) -> String {
    let mut name = String::new();
    for byte in member.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            name.push(char::from(byte));
        } else {
            name.extend(["%", &format!("{byte:02X}")]);
        }
    }
    format!("{SCHEME}{name}/")
}

/// What looks like a qualifier, and the URI behind it.
fn split_qualified(uri: &str) -> Option<(&str, &str)> {
    let end = uri.strip_prefix(SCHEME)?.find('/')?;
    uri.split_at_checked(SCHEME.len() + end + 1)
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
                    all.set(name.to_owned(), value.clone());
                }
            }
        }
        (!all.is_empty()).then(|| all.to_raw())
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
