//! Many servers as one service.

mod answer;
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

use plexus_mcp::messages::{CallToolResult, Implementation, ServerCapabilities};
use plexus_mcp::method;
use plexus_service::{Boxed, Call, Catalogue, Fault, Outcome, Peer, Service, Updates};
use plexus_wire::{Object, Raw};
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::clients::Clients;
use crate::config::ClientSettings;
use crate::manage::Desk;
use crate::member::Member;
use crate::policy::{Gate, Policy};
use crate::remembered::Remembered;
use crate::routes::{Offer, Owner, Routes, merge};
use crate::search::Index;

pub(crate) use management::WeakHub;

pub use events::HubEvent;
pub use inspect::Origin;
pub use lifecycle::SetMembers;
pub use status::MemberStatus;

/// How many events may wait for whoever listens before the oldest are lost to them.
const EVENTS: usize = 256;
/// How often a call looks for the member it is for, if members change in between.
const ATTEMPTS: usize = 8;

/// Many servers as one [`Service`]. Cheap to clone: all clones are one.
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
    /// What was searched last, and its words.
    indexed: Mutex<Option<(Arc<Catalogue>, Arc<Index>)>>,
    desk: OnceLock<Arc<Desk>>,
    changed: Arc<Notify>,
    /// What was merged last. One merges at a time.
    merging: Mutex<Vec<Offer>>,
    /// One changes the members at a time.
    changing: tokio::sync::Mutex<()>,
    /// Where it is kept what members offer.
    remembered: Option<Remembered>,
    events: broadcast::Sender<HubEvent>,
    tasks: TaskTracker,
    /// What is to be finished before the hub is closed: members on their way out, and writing.
    leaving: TaskTracker,
    /// Fires when the hub is gone.
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

    /// A hub without members, which keeps in `remembered` what they will offer, and offers that
    /// before they are connected.
    pub fn remembering(identity: Implementation, remembered: Remembered) -> Self {
        Self::build(identity, Some(remembered))
    }

    fn build(identity: Implementation, remembered: Option<Remembered>) -> Self {
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
                desk: OnceLock::new(),
                changed: Arc::default(),
                merging: Mutex::default(),
                changing: tokio::sync::Mutex::default(),
                remembered,
                events: broadcast::Sender::new(EVENTS),
                tasks: TaskTracker::new(),
                leaving: TaskTracker::new(),
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

    /// Makes this the policy for calls of tools from now on; until the first, every call is
    /// allowed. What humans allowed for always stays allowed where the same rule asks again.
    pub fn set_policy(&self, policy: Policy) {
        self.inner.gate.set(policy);
    }

    /// Shows each client that is named only the tools that its filter lets through, from now on, or
    /// tools to find them with; what is hidden from a client, it cannot call either.
    pub fn set_clients(&self, clients: BTreeMap<String, ClientSettings>) {
        let inner = &self.inner;
        let merging = inner.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Arc::clone(&inner.catalogue.borrow());
        inner.clients.set(clients, &whole, &self.routes());
        drop(merging);
        // Whoever has a filter now, or has none any more, is to compare.
        inner.catalogue.send_modify(|_whole| {});
    }

    /// Keeps what humans allow for always in `directory`, and heeds what they allowed before.
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

    /// Passes a call on to whoever it is for.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn keeps its parameters twice, and is copied with them"
    )]
    fn pass_on(self, mut call: Call) -> impl Future<Output = Outcome> + Send {
        async move {
            for _ in 0..ATTEMPTS {
                let Addressed { member, change } = self.address(&call)?;
                // What the caller wrote, should there be another attempt.
                let given = change.map(|(name, value)| (name, call.params.set(name, value)));
                if let Some(refusal) = self.refusal(&call, &member).await? {
                    return Ok(CallToolResult::error(refusal).to_raw());
                }
                let Some(entered) = member.enter() else {
                    // It was changed in between. Nothing was sent, so its successor is asked.
                    if let Some((name, Some(given))) = given {
                        call.params.set(name, given);
                    }
                    continue;
                };
                if !member.plain_names {
                    call.events = call.events.naming(&member.name);
                }
                let before = member.catalogue();
                let outcome = hand_over(&member, call, entered).await;
                // Whoever has changed a list sees it changed.
                if !Arc::ptr_eq(&before, &member.catalogue()) {
                    self.inner.merge();
                }
                return outcome;
            }
            Err(Fault::Internal(
                "the servers are being changed all the time; try again".to_owned(),
            ))
        }
    }

    /// Whom a call is for, and what must change in it on the way there.
    fn address(&self, call: &Call) -> Result<Addressed, Fault> {
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
                let owner = routes.resource(&called);
                let unknown = || Fault::ResourceNotFound(called.clone().into_owned());
                (owner.ok_or_else(unknown)?, "uri", called)
            }
            method::COMPLETE => return self.address_completion(&routes, &call.params),
            // A method that we do not know can only be meant for the one server there is.
            other => {
                let only = self.only_server();
                let unknown = || Fault::MethodNotFound(other.to_owned());
                return Ok(Addressed {
                    member: only.ok_or_else(unknown)?,
                    change: None,
                });
            }
        };
        Ok(Addressed {
            member: self.member(&owner.member)?,
            change: (*owner.key != *called).then(|| (name, Raw::string(&owner.key))),
        })
    }

    /// A completion is for whoever owns the prompt or the template that it refers to.
    fn address_completion(&self, routes: &Routes, params: &Object) -> Result<Addressed, Fault> {
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
        Ok(Addressed {
            member: self.member(&owner.member)?,
            change: Some(("ref", reference.to_raw())),
        })
    }
}

/// Whom a call is for.
struct Addressed {
    member: Arc<Member>,
    /// The parameter that must be another one on the way there.
    change: Option<(&'static str, Raw)>,
}

impl Inner {
    /// Makes one catalogue of what the members offer now.
    fn merge(&self) {
        // Two at once could store what is no longer so.
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
        let (merged, routes) = merge(self.identity.clone(), &offers);
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

/// Merges again whenever a member's offer changes, until the hub is gone.
async fn keep_merged(inner: Weak<Inner>, changed: Arc<Notify>, gone: CancellationToken) {
    while gone.run_until_cancelled(changed.notified()).await.is_some() {
        let Some(inner) = inner.upgrade() else { return };
        inner.merge();
    }
}

/// Has `member` carry out a call that it was let in with.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its parameters twice, and is copied with them"
)]
fn hand_over(
    member: &Member,
    call: Call,
    entered: TaskTrackerToken,
) -> impl Future<Output = Outcome> + Send {
    async move {
        let _entered = entered;
        let service = member.ready().await?;
        let began = Instant::now();
        let outcome = service.call(call).await;
        member.answered_within(began.elapsed());
        outcome
    }
}

impl Service for Hub {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue.subscribe()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        self.inner.clients.catalogue(peer)
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
