//! The tools that servers offer only to clients with certain capabilities.
//!
//! The catalogue of a server is that for a client with all capabilities of the protocol. A server
//! that is told the capabilities of each caller may list fewer tools for a client without some of
//! them. Such a server is asked once for each set of capabilities, and the tools that are missing in
//! its answer are hidden from clients with this set.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{Call, EventSender, Fault, List, Object, Peer, Principal, Raw, Section};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::{Revision, method};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::member::{LIST_STARTUP_TIMEOUT, Member};
use crate::routes::Owner;

/// The most sets of capabilities that are kept. Clients with further ones see all tools.
const MAX_CAPABILITY_SETS: usize = 64;
/// The most pages of one list.
const MAX_PAGES: usize = 1000;
/// The most bytes of all pages of one list.
const MAX_LISTED_BYTES: usize = 64 * 1024 * 1024;

/// A set of capabilities that some client has; not that with all of them.
#[derive(Debug, Clone)]
pub(crate) struct CapabilitySet {
    capabilities: ClientCapabilities,
    /// Equal for equal sets.
    key: Arc<str>,
}

impl CapabilitySet {
    /// The capabilities of a client; `None` if it has all, so that no tool is hidden from it.
    pub(crate) fn of(peer: &Peer) -> Option<Self> {
        let capabilities = peer.capabilities.profile();
        let is_whole = capabilities == ClientCapabilities::everything();
        (!is_whole).then(|| Self {
            key: capabilities.raw().as_str().into(),
            capabilities,
        })
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }
}

/// The hidden tools, by sets of capabilities and by servers.
#[derive(Debug, Default)]
pub(crate) struct HiddenTools {
    sets: RwLock<HashMap<Arc<str>, HiddenByServer>>,
}

type HiddenByServer = HashMap<Arc<str>, Hidden>;

/// The hidden tools of one server.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// The server's list when it was asked.
    list: Arc<List>,
    names: HashSet<Arc<str>>,
}

impl HiddenTools {
    /// Whether any tool is hidden from clients with these capabilities.
    pub(crate) fn hides_any(&self, set: &CapabilitySet) -> bool {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let servers = sets.get(&set.key).into_iter().flat_map(HashMap::values);
        servers.into_iter().any(|hidden| !hidden.names.is_empty())
    }

    pub(crate) fn hides(&self, set: &str, owner: &Owner) -> bool {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let hidden = sets.get(set).and_then(|servers| servers.get(&owner.member));
        hidden.is_some_and(|hidden| hidden.names.contains(&owner.key))
    }

    /// Whether no server was asked yet, so that nothing can be hidden.
    pub(crate) fn is_empty(&self) -> bool {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.is_empty()
    }

    /// The servers that have not been asked with these capabilities since their list changed.
    pub(crate) fn unasked(
        &self,
        set: &CapabilitySet,
        members: Vec<Arc<Member>>,
    ) -> Vec<Arc<Member>> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let known = sets.get(&set.key);
        if known.is_none() && sets.len() >= MAX_CAPABILITY_SETS {
            return Vec::new();
        }
        let is_unasked = |member: &Arc<Member>| {
            let hidden = known.and_then(|servers| servers.get(&member.name));
            let catalogue = member.catalogue();
            member.is_enabled()
                && member
                    .upstream()
                    .is_some_and(Upstream::lists_by_capabilities)
                && hidden
                    .is_none_or(|hidden| !Arc::ptr_eq(&hidden.list, catalogue.list(Section::Tools)))
        };
        members.into_iter().filter(is_unasked).collect()
    }

    /// Stores the answer of a server. Returns whether it replaces another one.
    pub(crate) fn set(&self, set: &CapabilitySet, member: &Arc<str>, hidden: Hidden) -> bool {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let servers = sets.entry(Arc::clone(&set.key)).or_default();
        let names = hidden.names.clone();
        let before = servers.insert(Arc::clone(member), hidden);
        before.is_some_and(|before| before.names != names)
    }
}

/// The tools that a server hides from clients with these capabilities. If it does not answer in
/// time, or with an error, it hides none.
pub(crate) async fn hidden_tools(member: &Member, set: &CapabilitySet) -> Hidden {
    let list = Arc::clone(member.catalogue().list(Section::Tools));
    let asking = timeout(LIST_STARTUP_TIMEOUT, offered(member, set)).await;
    let late = || Fault::Internal("it did not answer in time".to_owned());
    let offered = match asking.unwrap_or_else(|_elapsed| Err(late())) {
        Ok(offered) => offered,
        Err(reason) => {
            let server = &*member.name;
            tracing::warn!(
                server,
                %reason,
                "cannot list the tools for a client's capabilities; all tools are shown"
            );
            let names = HashSet::new();
            return Hidden { list, names };
        }
    };
    let keys = list.entries().iter().map(|tool| &tool.key);
    let names = keys
        .filter(|key| !offered.contains(&***key))
        .map(Arc::clone)
        .collect();
    Hidden { list, names }
}

/// The names of the tools that a server lists for a client with these capabilities. The client is
/// no caller in particular, because the answer is used for all with these capabilities.
async fn offered(member: &Member, set: &CapabilitySet) -> Result<HashSet<String>, Fault> {
    let service = member.service()?;
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        set.capabilities.clone(),
        None,
        Principal::anonymous(),
    );
    let peer = Arc::new(peer);
    let mut names = HashSet::new();
    let mut params = Object::new();
    let mut bytes: usize = 0;
    for _ in 0..MAX_PAGES {
        let (events, _queue) = EventSender::channel(Arc::clone(&peer), false, None);
        let cancel = CancellationToken::new();
        let call = Call::new(method::TOOLS_LIST, params.clone(), events, cancel);
        let page = service.call(call).await?;
        bytes = bytes.saturating_add(page.len());
        if bytes > MAX_LISTED_BYTES {
            return Err(Fault::Internal(format!(
                "its list is larger than {MAX_LISTED_BYTES} bytes"
            )));
        }
        let invalid = || Fault::Internal("its list of tools is invalid".to_owned());
        let page = Object::parse(&page).map_err(|_error| invalid())?;
        let tools = page
            .get("tools")
            .and_then(Raw::elements)
            .ok_or_else(invalid)?;
        names.extend(tools.filter_map(|tool| {
            let tool = Object::parse(&tool).ok()?;
            tool.text("name").map(Cow::into_owned)
        }));
        match page.text("nextCursor") {
            Some(cursor) => params.set("cursor", Raw::string(&cursor)),
            None => return Ok(names),
        };
    }
    Err(Fault::Internal(format!(
        "its list has more than {MAX_PAGES} pages"
    )))
}
