//! Per-client views of the catalogue.
//!
//! A client is identified by the name that it gives itself, so this is not a security boundary: it
//! keeps the lists short for clients that are honest. Calls that must be prevented are for the
//! policy to deny.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use plexus_mcp_core::{Catalogue, List, Peer, Section};
use tokio::sync::watch;

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
            let shown = Arc::new(shown(&settings, whole, routes));
            if let Some(view) = views.get_mut(&name) {
                view.settings = settings;
                view.show(shown);
            } else {
                let catalogue = watch::Sender::new(shown);
                let view = View {
                    settings,
                    catalogue,
                };
                views.insert(name, view);
            }
        }
    }

    /// Filters a new catalogue for every client.
    pub(crate) fn refresh(&self, whole: &Catalogue, routes: &Routes) {
        for view in self.views().values() {
            view.show(Arc::new(shown(&view.settings, whole, routes)));
        }
    }

    /// The catalogue that `peer` sees; `None` if it sees everything.
    pub(crate) fn catalogue(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        let views = self.views();
        view_of(&views, peer).map(|view| view.catalogue.subscribe())
    }

    /// Whether `peer` finds tools by searching.
    pub(crate) fn searches(&self, peer: &Peer) -> bool {
        let views = self.views();
        view_of(&views, peer).is_some_and(|view| view.settings.search)
    }

    /// Whether `peer` sees the tool of `owner`, or can find it by searching.
    pub(crate) fn shows(&self, peer: &Peer, routes: &Routes, owner: &Owner) -> bool {
        let views = self.views();
        let Some(view) = view_of(&views, peer) else {
            return true;
        };
        let shown = routes.shown_tool(&owner.member, &owner.key);
        shown.is_some_and(|shown| admits(&view.settings.tools, shown, owner))
    }

    fn views(&self) -> RwLockReadGuard<'_, HashMap<String, View>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    fn show(&self, shown: Arc<Catalogue>) {
        self.catalogue.send_if_modified(|known| {
            let differs = shown.differs_from(known);
            if differs {
                *known = shown;
            }
            differs
        });
    }
}

fn view_of<'a>(views: &'a HashMap<String, View>, peer: &Peer) -> Option<&'a View> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    // Most gateways filter nothing, and need not look at the peer.
    if views.is_empty() {
        return None;
    }
    let named = peer.client_info.as_ref().map(plexus_mcp_wire::Raw::decode);
    let own = match &named {
        Some(Ok(Named { name })) => views.get(name),
        _ => None,
    };
    own.or_else(|| views.get(ANY_CLIENT))
}

fn shown(settings: &ClientSettings, whole: &Catalogue, routes: &Routes) -> Catalogue {
    let tools = whole.list(Section::Tools).entries().iter();
    let owned = tools.filter_map(|entry| Some((entry, routes.tool(&entry.key)?)));
    let admitted = owned.filter(|(entry, owner)| admits(&settings.tools, &entry.key, owner));
    if settings.search {
        let mut servers: Vec<_> = admitted
            .map(|(_, owner)| Arc::clone(&owner.member))
            .collect();
        servers.dedup();
        return search::shown(whole, &servers);
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
