//! Merging of many catalogues into one, and routing from its entries to their owners.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_mcp_core::{Catalogue, Entry, List, Section, UriTemplate};
use plexus_mcp_protocol::messages::{
    Implementation, ListCapability, ResourcesCapability, ServerCapabilities,
};
use plexus_mcp_wire::{Object, Raw};

use crate::extensions::Extensions;
use crate::member::ToolFilter;
use crate::names::Names;
use crate::ui;

/// The prefix of URIs that name their owner.
const SCHEME: &str = "plexus://";

/// The member that owns an entry, and the member's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) member: Arc<str>,
    pub(crate) key: Arc<str>,
}

/// The offer of one member, in the order of the members.
pub(crate) struct Offer {
    pub(crate) member: Arc<str>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// Which of its tools are shown.
    pub(crate) shows_tool: ToolFilter,
    /// Its names are shown without a prefix where possible.
    pub(crate) plain_names: bool,
    /// Whether its offer is known; if not, it may turn out to offer anything.
    pub(crate) is_known: bool,
}

impl Offer {
    /// Whether both are the same offer, so that nothing can have changed.
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

/// The routes from shown names to owners.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// See [`Hub::set_notice`](crate::Hub::set_notice).
    pub(crate) notice: Option<String>,
    /// The members whose offers are not known yet.
    pub(crate) unknown_members: Vec<Arc<str>>,
    tools: Names<Owner>,
    /// The shown names of each member's tools, by the member's own names.
    shown_tools: HashMap<Arc<str>, HashMap<Arc<str>, Arc<str>>>,
    prompts: Names<Owner>,
    resources: HashMap<Arc<str>, Owner>,
    templates: Vec<Template>,
    /// Members by the qualifiers of their URIs.
    qualifiers: HashMap<String, Arc<str>>,
    /// Members by the schemes of the URIs that they list; `None` where several members list some.
    schemes: HashMap<String, Option<Arc<str>>>,
    extensions: Extensions,
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

    /// The shown names of all tools whose owners call them `name`.
    pub(crate) fn tools_called(&self, name: &str) -> &[Arc<str>] {
        self.tools.called(name)
    }

    /// The shown name of the tool that `member` calls `key`.
    pub(crate) fn shown_tool(&self, member: &str, key: &str) -> Option<&Arc<str>> {
        self.shown_tools.get(member)?.get(key)
    }

    /// Whether the tool is shown under any name.
    pub(crate) fn shows_tool(&self, owner: &Owner) -> bool {
        self.shown_tool(&owner.member, &owner.key).is_some()
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Owner> {
        self.prompts.find(name)
    }

    /// The shown names of all prompts whose owners call them `name`.
    pub(crate) fn prompts_called(&self, name: &str) -> &[Arc<str>] {
        self.prompts.called(name)
    }

    /// The member that serves a method of an extension.
    pub(crate) fn extension_owner(&self, method: &str) -> Option<&Arc<str>> {
        self.extensions.owner(method)
    }

    /// The owner of a resource: the member that its URI names, else the one that lists it, else the
    /// first with a matching template.
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
        // A server need not list its pages.
        if let Some((server, own)) = ui::split(uri)
            && let Some(member) = self.qualifiers.get(&format!("{SCHEME}{server}/"))
        {
            return Some(Owner {
                member: Arc::clone(member),
                key: own.into(),
            });
        }
        let fitting = self.templates.iter().find(|template| template.fits(uri));
        fitting.map(|template| Owner {
            member: Arc::clone(&template.owner.member),
            key: uri.into(),
        })
    }

    /// The likely owner of a resource: if it has no owner, the only member that lists URIs of its
    /// scheme. Servers need not list every resource that can be read or subscribed to.
    pub(crate) fn likely_resource(&self, uri: &str) -> Option<Owner> {
        let of_scheme = || {
            let member = self.schemes.get(scheme(uri)?)?.as_ref()?;
            Some(Owner {
                member: Arc::clone(member),
                key: uri.into(),
            })
        };
        self.resource(uri).or_else(of_scheme)
    }

    /// Records that `member` lists a URI.
    fn note_scheme(&mut self, uri: &str, member: &Arc<str>) {
        // The URI of a page names its owner.
        let Some(scheme) = scheme(uri).filter(|_| !ui::is_page(uri)) else {
            return;
        };
        let owner = self.schemes.entry(scheme.to_owned());
        let owner = owner.or_insert_with(|| Some(Arc::clone(member)));
        if owner.as_ref().is_some_and(|owner| owner != member) {
            *owner = None;
        }
    }

    /// The qualifier of `uri`, if it names a member.
    pub(crate) fn qualifier<'a>(&self, uri: &'a str) -> Option<&'a str> {
        let (qualifier, _) = split_qualified(uri)?;
        self.qualifiers.contains_key(qualifier).then_some(qualifier)
    }

    /// The owner of a template, or of the resource that matches one.
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
        // A template that we cannot parse still has a literal prefix.
        let literal = self.shown.split('{').next().unwrap_or_default();
        !literal.is_empty() && uri.starts_with(literal)
    }
}

/// Merges the offers of the members. Of two resources or templates with the same URI, the first
/// member's keeps it, and the second's gets a URI that names its owner.
///
/// In each list, entries of servers come first, in the order of the members, and entries of members
/// with plain names last: a client with room for only some tools takes the first ones.
pub(crate) fn merge(identity: Implementation, offers: &[Offer]) -> (Catalogue, Routes) {
    let mut routes = Routes::default();
    let qualifiers = offers
        .iter()
        .map(|offer| (qualifier(&offer.member), Arc::clone(&offer.member)));
    routes.qualifiers.extend(qualifiers);
    let unknown = offers.iter().filter(|offer| !offer.is_known);
    let unknown = unknown.map(|offer| Arc::clone(&offer.member));
    routes.unknown_members.extend(unknown);
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
                let with_page = (!plain_names)
                    .then(|| ui::shown_tool(&encoded(member), entry))
                    .flatten();
                let entry = with_page.as_ref().unwrap_or(entry);
                let shown_entry = renamed(Section::Tools, entry, &name);
                tools.extend(shown_entry.map(|shown| (*plain_names, shown)));
                let shown = routes.shown_tools.entry(Arc::clone(member)).or_default();
                shown.insert(Arc::clone(&entry.key), name);
            }
        }
        for entry in catalogue.list(Section::Prompts).entries() {
            let name = named(&mut routes.prompts, &entry.key);
            let shown_entry = renamed(Section::Prompts, entry, &name);
            prompts.extend(shown_entry.map(|shown| (*plain_names, shown)));
        }
        for entry in catalogue.list(Section::Resources).entries() {
            // A member cannot list a URI that names another member as its owner.
            let taken =
                routes.resources.contains_key(&entry.key) || routes.qualifier(&entry.key).is_some();
            routes.note_scheme(&entry.key, member);
            let uri = shown_uri(member, &entry.key, taken, *plain_names);
            if let Some(shown) = renamed(Section::Resources, entry, &uri) {
                routes.resources.insert(uri, owner(&entry.key));
                resources.push((*plain_names, shown));
            }
        }
        for entry in catalogue.list(Section::Templates).entries() {
            let taken = routes
                .templates
                .iter()
                .any(|template| template.shown == entry.key)
                || routes.qualifier(&entry.key).is_some();
            routes.note_scheme(&entry.key, member);
            let shown = shown_uri(member, &entry.key, taken, *plain_names);
            if let Some(renamed) = renamed(Section::Templates, entry, &shown) {
                routes.templates.push(Template {
                    owner: owner(&entry.key),
                    pattern: UriTemplate::parse(&shown).ok(),
                    shown,
                });
                templates.push((*plain_names, renamed));
            }
        }
    }
    routes.extensions = Extensions::of(offers);
    let mut merged = Catalogue::new(identity, capabilities(offers, &routes.extensions));
    merged.instructions = instructions(offers);
    for (section, mut entries) in [
        (Section::Tools, tools),
        (Section::Prompts, prompts),
        (Section::Resources, resources),
        (Section::Templates, templates),
    ] {
        entries.sort_by_key(|(is_plain, _): &(bool, Entry)| *is_plain);
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        // Names and URIs are unique at this point.
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

/// The result of reading a resource by a URI that names its owner, with the qualifier added to the
/// URIs in it.
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

/// The shown URI: unchanged, or if it is taken, with the qualifier of its owner. The URI of a server's
/// page always names its owner.
fn shown_uri(member: &str, uri: &Arc<str>, taken: bool, plain_names: bool) -> Arc<str> {
    let page = (!plain_names).then(|| ui::shown_uri(&encoded(member), uri));
    if let Some(page) = page.flatten() {
        page.into()
    } else if taken {
        format!("{}{uri}", qualifier(member)).into()
    } else {
        Arc::clone(uri)
    }
}

/// The qualifier of a member: the prefix of its URIs that name their owner.
fn qualifier(member: &str) -> String {
    format!("{SCHEME}{}/", encoded(member))
}

/// The name of a member as a part of a URI.
pub(crate) fn encoded(member: &str) -> String {
    let mut name = String::new();
    for byte in member.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            name.push(char::from(byte));
        } else {
            name.extend(["%", &format!("{byte:02X}")]);
        }
    }
    name
}

/// The scheme of a URI.
fn scheme(uri: &str) -> Option<&str> {
    uri.split_once(':').map(|(scheme, _)| scheme)
}

/// Splits a URI into what looks like a qualifier, and the URI behind it.
fn split_qualified(uri: &str) -> Option<(&str, &str)> {
    let end = uri.strip_prefix(SCHEME)?.find('/')?;
    uri.split_at_checked(SCHEME.len() + end + 1)
}

fn capabilities(offers: &[Offer], extensions: &Extensions) -> ServerCapabilities {
    // Most clients read the capabilities only once, perhaps before all members are connected.
    let of = |has: fn(&ServerCapabilities) -> bool| {
        offers
            .iter()
            .any(|offer| !offer.is_known || has(&offer.catalogue.capabilities))
    };
    // The lists of a hub change when members are added or removed, so every list declares `listChanged`.
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
    ServerCapabilities {
        tools: Some(list),
        resources: of(|c| c.resources.is_some()).then_some(resources),
        prompts: of(|c| c.prompts.is_some()).then_some(list),
        completions: of(|c| c.completions),
        logging: of(|c| c.logging),
        extensions: extensions.served(offers, |c| c.extensions.as_ref()),
        experimental: extensions.served(offers, |c| c.experimental.as_ref()),
    }
}

/// The instructions of every member, under its name.
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
