//! What each client is shown.
//!
//! A client is known by the name that it gives itself, so this is no fence around a client that
//! lies: it keeps the lists of honest ones short. What must not be done at all is the policy's.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use plexus_service::{Catalogue, List, Peer, Section};
use tokio::sync::watch;

use crate::config::ToolFilter;
use crate::policy::ToolFacts;
use crate::routes::{Owner, Routes};

/// The name under which every client is filtered that has no filter of its own.
const OTHERS: &str = "*";

/// The filters of clients, and what is left of the catalogue by each.
#[derive(Default)]
pub(crate) struct Clients {
    views: RwLock<HashMap<String, View>>,
}

struct View {
    filter: ToolFilter,
    catalogue: watch::Sender<Arc<Catalogue>>,
}

impl Clients {
    /// Makes these the filters.
    pub(crate) fn set(
        &self,
        filters: BTreeMap<String, ToolFilter>,
        whole: &Catalogue,
        routes: &Routes,
    ) {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        views.retain(|name, _| filters.contains_key(name));
        for (name, filter) in filters {
            let shown = Arc::new(filtered(&filter, whole, routes));
            if let Some(view) = views.get_mut(&name) {
                view.filter = filter;
                view.show(shown);
            } else {
                let catalogue = watch::Sender::new(shown);
                views.insert(name, View { filter, catalogue });
            }
        }
    }

    /// Takes note of a new catalogue.
    pub(crate) fn refresh(&self, whole: &Catalogue, routes: &Routes) {
        for view in self.views().values() {
            view.show(Arc::new(filtered(&view.filter, whole, routes)));
        }
    }

    /// What `peer` is shown; `None` if that is everything.
    pub(crate) fn catalogue(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        let views = self.views();
        view_of(&views, peer).map(|view| view.catalogue.subscribe())
    }

    /// Whether `peer` is shown the tool of `owner`.
    pub(crate) fn shows(&self, peer: &Peer, routes: &Routes, owner: &Owner) -> bool {
        let views = self.views();
        let Some(view) = view_of(&views, peer) else {
            return true;
        };
        let shown = routes.shown_tool(&owner.member, &owner.key);
        shown.is_some_and(|shown| admits(&view.filter, shown, owner))
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
    // Most gateways filter nothing, and need not read who is calling.
    if views.is_empty() {
        return None;
    }
    let named = peer.client_info.as_ref().map(plexus_wire::Raw::decode);
    let own = match &named {
        Some(Ok(Named { name })) => views.get(name),
        _ => None,
    };
    own.or_else(|| views.get(OTHERS))
}

fn filtered(filter: &ToolFilter, whole: &Catalogue, routes: &Routes) -> Catalogue {
    let mut shown = whole.clone();
    let tools = whole.list(Section::Tools).entries().iter();
    let admitted = tools.filter(|entry| {
        let owner = routes.tool(&entry.key);
        owner.is_some_and(|owner| admits(filter, &entry.key, owner))
    });
    // A part of a list has no two of one name either.
    let list = List::new(admitted.cloned().collect()).unwrap_or_default();
    shown.set_list(Section::Tools, list);
    shown.cache.public = false;
    shown
}

/// Filters are written as the rules of a policy are: for any of a tool's names.
fn admits(filter: &ToolFilter, shown: &str, owner: &Owner) -> bool {
    let facts = ToolFacts::new(shown, &owner.member, &owner.key);
    filter.admits_any(facts.names())
}
