//! Per-client views of the catalogue.
//!
//! A client is identified by the name that it gives itself, so this is not a security boundary: it
//! only shortens the lists. The policy denies calls that must be prevented.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use plexus_mcp_core::{Catalogue, List, Peer, Section};
use tokio::sync::watch;

use crate::capability_sets::{CapabilitySet, HiddenTools};
use crate::policy::ToolFacts;
use crate::routes::{Owner, Routes};
use crate::search;
use plexus_mcp_config::{ClientSettings, ToolFilter};

/// The key of the filter for every client without a filter of its own.
const ANY_CLIENT: &str = "*";

/// The filters of clients, and the filtered catalogue for each.
#[derive(Default)]
pub(crate) struct Clients {
    views: RwLock<HashMap<String, View>>,
    hidden: HiddenTools,
    /// The views of clients from which servers hide tools.
    by_capabilities: RwLock<HashMap<ViewKey, watch::Sender<Arc<Catalogue>>>>,
}

/// The name of a client's filter, if it has one, and its set of capabilities.
type ViewKey = (Option<String>, Arc<str>);

/// What a client sees.
pub(crate) enum PeerView {
    /// The whole catalogue.
    Whole,
    /// This part of it.
    Known(watch::Receiver<Arc<Catalogue>>),
    /// A part that is to be added under this key.
    Missing(ViewKey),
}

struct View {
    settings: ClientSettings,
    catalogue: watch::Sender<Arc<Catalogue>>,
}

impl Clients {
    /// Replaces the settings of all clients that do not see everything.
    pub(crate) fn set(
        &self,
        clients: BTreeMap<String, ClientSettings>,
        whole: &Catalogue,
        routes: &Routes,
    ) {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        views.retain(|name, _| clients.contains_key(name));
        for (name, settings) in clients {
            let shown = shown(&settings, whole, routes);
            if let Some(view) = views.get_mut(&name) {
                view.settings = settings;
                show(&view.catalogue, shown);
            } else {
                let catalogue = watch::Sender::new(Arc::new(shown));
                let view = View {
                    settings,
                    catalogue,
                };
                views.insert(name, view);
            }
        }
        drop(views);
        self.refresh_by_capabilities(whole, routes);
    }

    /// Filters a new catalogue for every client.
    pub(crate) fn refresh(&self, whole: &Catalogue, routes: &Routes) {
        for view in self.views().values() {
            show(&view.catalogue, shown(&view.settings, whole, routes));
        }
        self.refresh_by_capabilities(whole, routes);
    }

    fn refresh_by_capabilities(&self, whole: &Catalogue, routes: &Routes) {
        let known = self.by_capabilities.read();
        for (key, view) in &*known.unwrap_or_else(PoisonError::into_inner) {
            show(view, self.shown_to(key, whole, routes));
        }
    }

    /// What `peer` sees.
    pub(crate) fn view(&self, peer: &Peer) -> PeerView {
        let views = self.views();
        let own = view_of(&views, peer);
        // Most gateways hide nothing, and need not look at the capabilities.
        let set = (!self.hidden.is_empty()).then(|| CapabilitySet::of(peer));
        let set = set.flatten().filter(|set| self.hidden.hides_any(set));
        let Some(set) = set else {
            return match own {
                Some((_, view)) => PeerView::Known(view.catalogue.subscribe()),
                None => PeerView::Whole,
            };
        };
        let key = (own.map(|(name, _)| name.to_owned()), Arc::clone(set.key()));
        let known = self.by_capabilities.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        match known.get(&key) {
            Some(view) => PeerView::Known(view.subscribe()),
            None => PeerView::Missing(key),
        }
    }

    /// Adds a view for clients from which servers hide tools.
    pub(crate) fn add_view(
        &self,
        key: ViewKey,
        whole: &Catalogue,
        routes: &Routes,
    ) -> watch::Receiver<Arc<Catalogue>> {
        let shown = self.shown_to(&key, whole, routes);
        let known = self.by_capabilities.write();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let view = known.entry(key);
        view.or_insert_with(|| watch::Sender::new(Arc::new(shown)))
            .subscribe()
    }

    /// The tools that servers hide from clients.
    pub(crate) fn hidden(&self) -> &HiddenTools {
        &self.hidden
    }

    /// Whether a server hides the tool of `owner` from clients with the capabilities of `peer`.
    pub(crate) fn hides(&self, peer: &Peer, owner: &Owner) -> bool {
        let set = (!self.hidden.is_empty()).then(|| CapabilitySet::of(peer));
        set.flatten()
            .is_some_and(|set| self.hidden.hides(set.key(), owner))
    }

    /// The catalogue without the tools that servers hide.
    fn shown_to(&self, (name, set): &ViewKey, whole: &Catalogue, routes: &Routes) -> Catalogue {
        let views = self.views();
        let view = name.as_ref().and_then(|name| views.get(name));
        let mut catalogue = match view {
            Some(view) => shown(&view.settings, whole, routes),
            None => whole.clone(),
        };
        let tools = catalogue.list(Section::Tools).entries().iter();
        let offered = tools.filter(|tool| {
            let owner = routes.tool(&tool.key);
            owner.is_none_or(|owner| !self.hidden.hides(set, owner))
        });
        // A part of a list without duplicates has no duplicates.
        let list = List::new(offered.cloned().collect()).unwrap_or_default();
        catalogue.set_list(Section::Tools, list);
        catalogue.cache.public = false;
        catalogue
    }

    /// Whether `peer` finds tools by searching.
    pub(crate) fn searches(&self, peer: &Peer) -> bool {
        let views = self.views();
        view_of(&views, peer).is_some_and(|(_, view)| view.settings.search)
    }

    /// Whether `peer` sees the tool of `owner`, or can find it by searching.
    pub(crate) fn shows(&self, peer: &Peer, routes: &Routes, owner: &Owner) -> bool {
        let views = self.views();
        let Some((_, view)) = view_of(&views, peer) else {
            return true;
        };
        let shown = routes.shown_tool(&owner.member, &owner.key);
        shown.is_some_and(|shown| admits(&view.settings.tools, shown, owner))
    }

    fn views(&self) -> RwLockReadGuard<'_, HashMap<String, View>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn show(view: &watch::Sender<Arc<Catalogue>>, shown: Catalogue) {
    view.send_if_modified(|known| {
        let differs = shown.differs_from(known);
        if differs {
            *known = Arc::new(shown);
        }
        differs
    });
}

/// The view of a client, with its name.
fn view_of<'a>(views: &'a HashMap<String, View>, peer: &Peer) -> Option<(&'a str, &'a View)> {
    #[derive(serde::Deserialize)]
    struct ClientName {
        name: String,
    }
    // Most gateways filter nothing, and need not look at the peer.
    if views.is_empty() {
        return None;
    }
    let named = peer.client_info.as_ref().map(plexus_mcp_wire::Raw::decode);
    let own = match &named {
        Some(Ok(ClientName { name })) => views.get_key_value(name),
        _ => None,
    };
    let own = own.or_else(|| views.get_key_value(ANY_CLIENT));
    own.map(|(name, view)| (name.as_str(), view))
}

fn shown(settings: &ClientSettings, whole: &Catalogue, routes: &Routes) -> Catalogue {
    let tools = whole.list(Section::Tools).entries().iter();
    let owned = tools.filter_map(|entry| Some((entry, routes.tool(&entry.key)?)));
    let admitted = owned.filter(|(entry, owner)| admits(&settings.tools, &entry.key, owner));
    if settings.search {
        // A server that is not connected yet is named as well: many clients read this only once.
        let unknown = routes.unknown_members.iter().cloned();
        let mut servers: Vec<_> = unknown
            .chain(admitted.map(|(_, owner)| Arc::clone(&owner.member)))
            .collect();
        servers.dedup();
        return search::shown(whole, &servers, routes.notice.as_deref());
    }
    let mut shown = whole.clone();
    // A part of a list without duplicates has no duplicates.
    let list = List::new(admitted.map(|(entry, _)| entry.clone()).collect()).unwrap_or_default();
    shown.set_list(Section::Tools, list);
    shown.cache.public = false;
    shown
}

/// Filters match any of a tool's names, as the rules of a policy do.
fn admits(filter: &ToolFilter, shown: &str, owner: &Owner) -> bool {
    let facts = ToolFacts::new(shown, &owner.member, &owner.key);
    filter.admits_any(facts.names())
}
