//! The hub: many services as one.

mod answer;
mod by_server;
mod events;
mod inspect;
mod lifecycle;
mod management;
mod permission;
mod resolve;
mod searching;
mod status;
mod subscriptions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use plexus_mcp_client::{StartSlots, Upstream};
use plexus_mcp_core::{Boxed, Call, Catalogue, Fault, Outcome, Peer, Service, Updates};
use plexus_mcp_protocol::messages::{CallToolResult, Implementation, ServerCapabilities};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Object, Raw};
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::catalogue_cache::CatalogueCache;
use crate::clients::{Clients, PeerView};
use crate::manage::SubscriptionRegistry;
use crate::member::Member;
use crate::policy::{Gate, Policy};
use crate::routes::{Offer, Owner, Routes, encoded, merge};
use crate::search::Index;
use crate::ui;
use plexus_mcp_config::ClientSettings;

pub(crate) use management::WeakHub;

pub use events::HubEvent;
pub use inspect::Origin;
pub use lifecycle::SetMembers;
pub use status::MemberStatus;

/// How many events are queued for a receiver before it loses the oldest.
const EVENT_QUEUE_CAPACITY: usize = 256;

/// Many servers as one [`Service`]. Clones are cheap and share one hub.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Implementation,
    members: RwLock<Vec<Arc<Member>>>,
    routes: RwLock<Arc<Routes>>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    gate: Gate,
    clients: Clients,
    /// The search index, and the catalogue that it was built from.
    indexed: Mutex<Option<(Arc<Catalogue>, Arc<Index>)>>,
    registry: OnceLock<Arc<SubscriptionRegistry>>,
    changed: Arc<Notify>,
    /// The offers that were merged last. The lock serializes merging.
    merging: Mutex<Vec<Offer>>,
    /// See [`Hub::set_notice`].
    notice: Mutex<Option<String>>,
    /// Serializes changes of the members.
    changing: tokio::sync::Mutex<()>,
    /// Stores the offers of members across processes.
    cache: Option<CatalogueCache>,
    events: broadcast::Sender<HubEvent>,
    tasks: TaskTracker,
    /// Tasks to finish before the hub is closed: removed members, and writes to the cache.
    leaving: TaskTracker,
    /// Limits how many programs start at once.
    slots: StartSlots,
    /// Cancelled when the hub is closed: members that leave wait for their calls no longer.
    closing: CancellationToken,
    /// Cancelled when the hub is dropped.
    gone: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

impl Hub {
    /// A hub without members.
    pub fn new(identity: Implementation) -> Self {
        Self::build(identity, None)
    }

    /// A hub without members. It stores the offers of its members in `cache`, and uses them before
    /// the members are connected.
    pub fn with_cache(identity: Implementation, cache: CatalogueCache) -> Self {
        Self::build(identity, Some(cache))
    }

    fn build(identity: Implementation, cache: Option<CatalogueCache>) -> Self {
        let nothing = Catalogue::new(identity.clone(), ServerCapabilities::default());
        let hub = Self {
            inner: Arc::new(Inner {
                identity,
                members: RwLock::default(),
                routes: RwLock::default(),
                catalogue: watch::Sender::new(Arc::new(nothing)),
                gate: Gate::default(),
                clients: Clients::default(),
                indexed: Mutex::default(),
                registry: OnceLock::new(),
                changed: Arc::default(),
                merging: Mutex::default(),
                notice: Mutex::default(),
                changing: tokio::sync::Mutex::default(),
                cache,
                events: broadcast::Sender::new(EVENT_QUEUE_CAPACITY),
                tasks: TaskTracker::new(),
                leaving: TaskTracker::new(),
                slots: StartSlots::default(),
                closing: CancellationToken::new(),
                gone: CancellationToken::new(),
            }),
        };
        let inner = &hub.inner;
        let (changed, gone) = (Arc::clone(&inner.changed), inner.gone.clone());
        inner
            .tasks
            .spawn(keep_merged(Arc::downgrade(inner), changed, gone));
        hub
    }

    /// Sets the policy for tool calls; before the first, every call is allowed. An "always allow"
    /// of a user still holds if the same rule asks again.
    pub fn set_policy(&self, policy: Policy) {
        self.inner.gate.set(policy);
    }

    /// Sets which tools each client sees, by client name, or that it finds tools by searching. A
    /// client cannot call a tool that is hidden from it.
    pub fn set_clients(&self, clients: BTreeMap<String, ClientSettings>) {
        let inner = &self.inner;
        let merging = inner.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Arc::clone(&inner.catalogue.borrow());
        inner.clients.set(clients, &whole, &self.routes());
        drop(merging);
        // Wake every subscriber: its filtered catalogue may have changed.
        inner.catalogue.send_modify(|_whole| {});
    }

    /// Sets a notice that follows the instructions of the members, such as how many servers are not
    /// available.
    pub fn set_notice(&self, notice: Option<String>) {
        let mut known = self.inner.notice();
        if *known != notice {
            *known = notice;
            drop(known);
            self.inner.merge_again();
        }
    }

    /// Stores "always allow" answers in `directory`, and uses those that are already there.
    pub fn keep_consents_in(&self, directory: impl Into<std::path::PathBuf>) {
        self.inner.gate.keep_consents_in(directory.into());
    }

    fn members(&self) -> Vec<Arc<Member>> {
        self.inner
            .members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn member(&self, name: &str) -> Result<Arc<Member>, Fault> {
        let members = self.inner.members.read();
        let members = members.unwrap_or_else(PoisonError::into_inner);
        let found = members.iter().find(|member| *member.name == *name);
        found
            .cloned()
            .ok_or_else(|| Fault::InvalidParams(format!("there is no server {name:?}")))
    }

    fn routes(&self) -> Arc<Routes> {
        Arc::clone(
            &self
                .inner
                .routes
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Routes a call to its owner, checks permission, and runs it there.
    async fn forward(self, mut call: Call) -> Outcome {
        let mut has_waited = false;
        let mut permit = None;
        // Each further round follows a change of the members.
        loop {
            let Destination { member, change } = match self.address(&call) {
                Ok(addressed) => addressed,
                Err(fault) if has_waited => return Err(fault),
                Err(fault) => {
                    has_waited = true;
                    Box::pin(self.wait_for_owner(&call, fault)).await?;
                    continue;
                }
            };
            // The caller's own value, in case of another attempt.
            let given = change.map(|(name, value)| (name, call.params.set(name, value)));
            // The user is asked at most once per call.
            let refusal = match &permit {
                Some(permit) => self.revoked(permit, &call, &member)?,
                None => match self.permit(&call, &member).await? {
                    Ok(given) => {
                        permit = Some(given);
                        None
                    }
                    Err(refusal) => Some(refusal),
                },
            };
            if let Some(refusal) = refusal {
                return Ok(CallToolResult::error(refusal).to_raw());
            }
            let Some(admitted) = member.admit().await? else {
                // The member was replaced in between. Nothing was sent, so the call goes to its
                // successor.
                if let Some((name, Some(given))) = given {
                    call.params.set(name, given);
                }
                continue;
            };
            if !member.plain_names {
                call.events = call.events.naming(&member.name);
            }
            let before = member.catalogue();
            let outcome = run_on_member(&member, call, admitted).await;
            // A caller that has changed a list sees the change at once.
            if !Arc::ptr_eq(&before, &member.catalogue()) {
                self.inner.merge();
            }
            return if member.plain_names {
                outcome
            } else {
                let server = encoded(&member.name);
                outcome.map(|result| ui::shown_result(&server, result))
            };
        }
    }

    /// The member that a call is for, and the parameter that must be translated for it.
    fn address(&self, call: &Call) -> Result<Destination, Fault> {
        let routes = self.routes();
        let text = |member: &str| {
            let missing = || format!("params: {member} must be a string");
            let text = call.params.text(member);
            text.ok_or_else(|| Fault::InvalidParams(missing()))
        };
        let (owner, name, called) = match &*call.method {
            method::TOOLS_CALL => {
                let called = text("name")?;
                let owner = self.tool_called(call.peer(), &routes, &called)?;
                (owner, "name", called)
            }
            method::PROMPTS_GET => {
                let called = text("name")?;
                (Self::prompt_called(&routes, &called)?, "name", called)
            }
            method::RESOURCES_READ => {
                let called = text("uri")?;
                let owner = routes.likely_resource(&called);
                let unknown = || Fault::ResourceNotFound(called.clone().into_owned());
                (owner.ok_or_else(unknown)?, "uri", called)
            }
            method::COMPLETE => return self.address_completion(&routes, &call.params),
            // A method of an extension is for the server that has it. If there is exactly one server,
            // it gets all methods that we do not know.
            other => {
                let of_extension = || self.member(routes.extension_owner(other)?).ok();
                let member = self.only_server().or_else(of_extension);
                let unknown = || Fault::MethodNotFound(other.to_owned());
                return Ok(Destination {
                    member: member.ok_or_else(unknown)?,
                    change: None,
                });
            }
        };
        Ok(Destination {
            member: self.member(&owner.member)?,
            change: (*owner.key != *called).then(|| (name, Raw::string(&owner.key))),
        })
    }

    /// A completion is for the owner of the prompt or template that it refers to.
    fn address_completion(&self, routes: &Routes, params: &Object) -> Result<Destination, Fault> {
        let invalid = || Fault::InvalidParams("params.ref names no prompt or resource".to_owned());
        let mut reference = params
            .get("ref")
            .and_then(|raw| Object::parse(raw).ok())
            .ok_or_else(invalid)?;
        let (owner, member): (Owner, _) = match (reference.text("name"), reference.text("uri")) {
            (Some(name), _) => (Self::prompt_called(routes, &name)?, "name"),
            (None, Some(uri)) => {
                let unknown = || Fault::ResourceNotFound(uri.clone().into_owned());
                (routes.template(&uri).ok_or_else(unknown)?, "uri")
            }
            (None, None) => return Err(invalid()),
        };
        reference.set(member, Raw::string(&owner.key));
        Ok(Destination {
            member: self.member(&owner.member)?,
            change: Some(("ref", reference.to_raw())),
        })
    }
}

/// The member that a call is for.
struct Destination {
    member: Arc<Member>,
    /// The parameter to replace before the call is forwarded.
    change: Option<(&'static str, Raw)>,
}

impl Inner {
    /// Merges the current offers of all members into one catalogue.
    fn merge(&self) {
        // Two concurrent merges could store an outdated catalogue.
        let mut merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let members = self
            .members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let enabled = members.iter().filter(|member| member.is_enabled());
        let offers: Vec<Offer> = enabled
            .map(|member| Offer {
                member: Arc::clone(&member.name),
                catalogue: member.catalogue(),
                shows_tool: member.shows_tool(),
                plain_names: member.plain_names,
                is_known: member.is_known(),
            })
            .collect();
        let same = offers.len() == merging.len()
            && offers
                .iter()
                .zip(merging.iter())
                .all(|(new, old)| new.is(old));
        if same {
            return;
        }
        self.merge_into(&mut merging, offers);
    }

    fn notice(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges the same offers again, because the notice changed.
    fn merge_again(&self) {
        let mut merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let offers = std::mem::take(&mut *merging);
        self.merge_into(&mut merging, offers);
    }

    fn merge_into(&self, merging: &mut Vec<Offer>, offers: Vec<Offer>) {
        let (mut merged, mut routes) = merge(self.identity.clone(), &offers);
        if let Some(notice) = &*self.notice() {
            let said = merged.instructions.take();
            merged.instructions = Some(match said {
                Some(said) => format!("{said}\n\n{notice}"),
                None => notice.clone(),
            });
        }
        routes.notice.clone_from(&self.notice());
        self.clients.refresh(&merged, &routes);
        *merging = offers;
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
        self.catalogue.send_if_modified(|known| {
            let differs = merged.differs_from(known);
            if differs {
                *known = Arc::new(merged);
            }
            differs
        });
    }
}

/// Merges again whenever a member's offer changes, until the hub is dropped.
async fn keep_merged(inner: Weak<Inner>, changed: Arc<Notify>, gone: CancellationToken) {
    while gone.run_until_cancelled(changed.notified()).await.is_some() {
        let Some(inner) = inner.upgrade() else { return };
        inner.merge();
    }
}

/// Runs a call on `member`. The token `entered` keeps the member until the call has ended.
async fn run_on_member(member: &Member, call: Call, admitted: TaskTrackerToken) -> Outcome {
    let _admitted = admitted;
    let service = member.service()?;
    let was_connected = member.upstream().is_none_or(Upstream::is_connected);
    let began = Instant::now();
    let outcome = service.call(call).await;
    // The time until a server is connected is not its latency.
    if was_connected && matches!(outcome, Ok(_) | Err(Fault::Upstream(_))) {
        member.answered_within(began.elapsed());
    }
    outcome
}

impl Service for Hub {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue.subscribe()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        let inner = &self.inner;
        match inner.clients.view(peer) {
            PeerView::Whole => None,
            PeerView::Known(shown) => Some(shown),
            PeerView::Missing(key) => {
                // The lock keeps the catalogue from changing before the view is stored.
                let merging = inner.merging.lock().unwrap_or_else(PoisonError::into_inner);
                let whole = Arc::clone(&inner.catalogue.borrow());
                let shown = inner.clients.add_view(key, &whole, &self.routes());
                drop(merging);
                Some(shown)
            }
        }
    }

    fn settling(&self) -> Option<Boxed<()>> {
        self.awaited_members()
    }

    fn settling_for(&self, peer: &Arc<Peer>) -> Option<Boxed<()>> {
        self.awaited_lists(peer)
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        self.answer(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        Box::pin(self.clone().watch(Arc::clone(peer), uri.to_owned()))
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self
            .members()
            .iter()
            .map(|member| Arc::clone(&member.name))
            .collect();
        f.debug_struct("Hub")
            .field("members", &names)
            .finish_non_exhaustive()
    }
}
