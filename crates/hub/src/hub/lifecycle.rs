//! Adding, connecting and removing members.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{ListProblem, Report, ServerState, Status, Upstream};
use plexus_mcp_core::{Boxed, Catalogue, Fault, Peer};
use tokio::sync::watch;

use super::{Hub, HubEvent, Inner};
use crate::capability_sets::{CapabilitySet, hidden_tools};
use crate::catalogue_cache::CachedOffer;
use crate::member::{Member, MemberSpec};

/// How long the calls of a removed member may take to finish.
const LEAVING_CALLS_MAX: Duration = Duration::from_secs(10);
/// How long processes may take to exit when Plexus shuts down: a client that stops Plexus waits for
/// no more than two seconds in all.
const CLOSING_GRACE: Grace = Grace::new(Duration::from_millis(350), Duration::from_millis(350));

/// Cached offers, by the fingerprint of their server.
type Recalled = HashMap<[u8; 32], CachedOffer>;

/// The changes that [`Hub::set_members`] made (S004-53, C38).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetMembers {
    /// New members.
    pub added: Vec<String>,
    /// Removed members.
    pub removed: Vec<String>,
    /// Members whose definition changed, and which reconnect.
    pub updated: Vec<String>,
    /// Members that could not be used, and why.
    pub errors: BTreeMap<String, String>,
}

impl SetMembers {
    /// Whether nothing changed.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Hub {
    /// Replaces the members, in this order. Unchanged members keep their connections and calls. New
    /// ones are connected when they are needed, or by [`Hub::connect_all`] or
    /// [`Hub::connect_in_background`].
    ///
    /// The calls of a removed member may finish in the background. Of two members whose names
    /// differ at most in case, the first is used.
    pub async fn set_members(&self, specs: Vec<MemberSpec>) -> SetMembers {
        let process = Grace::default();
        self.change_members(specs, LEAVING_CALLS_MAX, process).await
    }

    /// Connects all enabled members concurrently. When this returns, each is connected or has
    /// failed.
    pub async fn connect_all(&self) {
        let connecting = self.enabled().into_iter().map(async |member| {
            // A failure is recorded in the member's status.
            drop(member.connect().await);
        });
        join_all(connecting).await;
        self.inner.merge();
    }

    /// If lists would be incomplete because members with an unknown offer are starting: a future
    /// that ends when each of them has listed or failed, or when its startup wait is over.
    pub(super) fn awaited_members(&self) -> Option<Boxed<()>> {
        let mut members = self.members();
        members.retain(|member| member.awaited_until().is_some());
        if members.is_empty() {
            return None;
        }
        let inner = Arc::clone(&self.inner);
        Some(Box::pin(async move {
            join_all(members.iter().map(|member| member.settled())).await;
            inner.merge();
        }))
    }

    /// The same, and then for servers that have not been asked which tools they offer to a client
    /// with the capabilities of `peer`.
    pub(super) fn awaited_lists(&self, peer: &Peer) -> Option<Boxed<()>> {
        let awaited = self.awaited_members();
        let Some(set) = CapabilitySet::of(peer) else {
            return awaited;
        };
        let hub = self.clone();
        let Some(awaited) = awaited else {
            let unasked = hub.unasked(&set);
            return (!unasked.is_empty())
                .then(|| -> Boxed<()> { Box::pin(async move { hub.ask(&set, unasked).await }) });
        };
        Some(Box::pin(async move {
            awaited.await;
            let unasked = hub.unasked(&set);
            hub.ask(&set, unasked).await;
        }))
    }

    fn unasked(&self, set: &CapabilitySet) -> Vec<Arc<Member>> {
        self.inner.clients.hidden().unasked(set, self.members())
    }

    /// Asks servers which tools they offer to clients with these capabilities.
    async fn ask(&self, set: &CapabilitySet, members: Vec<Arc<Member>>) {
        let inner = &self.inner;
        let asking = members.iter().map(async |member| {
            let hidden = hidden_tools(member, set).await;
            inner.clients.hidden().set(set, &member.name, hidden)
        });
        let is_replaced = join_all(asking).await.contains(&true);
        let merging = inner.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Arc::clone(&inner.catalogue.borrow());
        inner.clients.refresh(&whole, &self.routes());
        drop(merging);
        // Other clients with these capabilities have the previous list.
        if is_replaced {
            inner.catalogue.send_modify(|_whole| {});
        }
    }

    /// Starts to connect every enabled member in the background; connected members are left alone.
    /// Members with an unknown offer come first, since lists wait for them.
    pub fn connect_in_background(&self) {
        self.connect_unknown_in_background();
        for member in self.enabled() {
            member.start();
        }
    }

    /// As [`Hub::connect_in_background`], for members with an unknown offer only. The others are
    /// connected by their first call.
    pub fn connect_unknown_in_background(&self) {
        for member in self.enabled() {
            if !member.is_known() {
                member.start();
            }
        }
    }

    /// Stops starting programs, because this process is shutting down.
    pub fn start_nothing_new(&self) {
        self.inner.slots.close();
    }

    /// Whether this process is shutting down, so that no program is started any more.
    pub fn starts_nothing_new(&self) -> bool {
        self.inner.slots.is_closed()
    }

    /// Connects a member, unless it is connected (S004-51).
    ///
    /// # Errors
    /// There is no such member, or it cannot be connected.
    pub async fn connect(&self, name: &str) -> Result<(), Fault> {
        let member = self.member(name)?;
        member.connect().await?;
        self.inner.merge();
        Ok(())
    }

    /// Closes a member's connection; its tools, resources and prompts are no longer listed
    /// (S004-51). It stays a member, and can be connected again.
    ///
    /// # Errors
    /// There is no such member.
    pub async fn disconnect(&self, name: &str) -> Result<(), Fault> {
        let member = self.member(name)?;
        if let Some(upstream) = member.upstream() {
            upstream.disconnect().await;
        }
        self.inner.merge();
        Ok(())
    }

    /// Closes a member's connection and opens a new one (S004-51). The error is for the operator:
    /// it has the last lines that the server's process printed.
    ///
    /// # Errors
    /// There is no such member, it has no connection, it is disabled, or it cannot be connected.
    pub async fn reconnect(&self, name: &str) -> Result<(), Fault> {
        self.member(name)?.reconnect().await?;
        self.inner.merge();
        Ok(())
    }

    /// Enables or disables a member (S004-52, C39). Its connection stays open; its entries are
    /// listed or hidden. A member that was never connected is connected in the background when it
    /// is enabled.
    ///
    /// # Errors
    /// There is no such member.
    pub fn toggle(&self, name: &str, enabled: bool) -> Result<(), Fault> {
        let member = self.member(name)?;
        let was_enabled = member.enable(enabled);
        self.inner.merge();
        if enabled != was_enabled {
            self.inner.tell_status(&member);
            if enabled {
                member.start();
            }
        }
        Ok(())
    }

    /// Closes all connections without waiting for calls. When this returns, the catalogue cache is
    /// written, and no process of a member is left.
    pub async fn close(&self) {
        self.start_nothing_new();
        self.inner.closing.cancel();
        self.change_members(Vec::new(), Duration::ZERO, CLOSING_GRACE)
            .await;
        self.inner.leaving.close();
        self.inner.leaving.wait().await;
    }

    async fn change_members(
        &self,
        specs: Vec<MemberSpec>,
        calls: Duration,
        process: Grace,
    ) -> SetMembers {
        let _one_at_a_time = self.inner.changing.lock().await;
        let mut changes = SetMembers::default();
        let mut leaving: HashMap<Arc<str>, Arc<Member>> = self
            .members()
            .into_iter()
            .map(|member| (Arc::clone(&member.name), member))
            .collect();
        let stays = |spec: &MemberSpec| {
            let member = leaving.get(spec.name.as_str());
            member.is_some_and(|member| member.serves(spec))
        };
        let recalled = self.recall(specs.iter().filter(|spec| !stays(spec)));
        let mut members = Vec::with_capacity(specs.len());
        let mut ended = Vec::new();
        let mut taken = HashSet::new();
        for spec in specs {
            if !taken.insert(spec.name.to_lowercase()) {
                let why = "another server has this name, or one that differs only in case";
                changes.errors.insert(spec.name, why.to_owned());
                continue;
            }
            match leaving.remove(spec.name.as_str()) {
                Some(member) if member.serves(&spec) => {
                    if member.adopt(spec) {
                        member.start();
                    }
                    members.push(member);
                }
                Some(old) => {
                    changes.updated.push(spec.name.clone());
                    // Until it is connected, it is assumed to offer what its predecessor did.
                    let member = self.admit(spec, &recalled, old.known());
                    // A member that the user disabled stays disabled when its definition changes
                    // (C38).
                    if old.was_turned_off_by_hand() {
                        member.enable(false);
                    }
                    ended.push(old);
                    members.push(member);
                }
                None => {
                    changes.added.push(spec.name.clone());
                    members.push(self.admit(spec, &recalled, None));
                }
            }
        }
        changes.removed = leaving.keys().map(ToString::to_string).collect();
        changes.removed.sort_unstable();
        let inner = &self.inner;
        *inner
            .members
            .write()
            .unwrap_or_else(PoisonError::into_inner) = members;
        inner.merge();
        for member in leaving.into_values().chain(ended) {
            // Its latest catalogue may not be cached yet.
            inner.cache_offer(&member);
            // From here on, calls are routed to its successor.
            member.over.cancel();
            let closing = inner.closing.clone();
            inner
                .leaving
                .spawn(async move { member.leave(calls, process, closing).await });
        }
        if !changes.is_nothing() {
            inner.tell(HubEvent::Members(changes.clone()));
        }
        changes
    }

    /// The cached offers of those that are servers, by their fingerprints.
    fn recall<'a>(&self, specs: impl Iterator<Item = &'a MemberSpec>) -> Recalled {
        let Some(cache) = &self.inner.cache else {
            return Recalled::new();
        };
        specs
            .filter(|spec| spec.kind.is_server())
            .filter_map(|spec| Some((spec.fingerprint, cache.find(&spec.fingerprint)?)))
            .collect()
    }

    /// Creates a member, and starts to follow its changes. If its offer is not cached, `assumed` is
    /// used until it is connected.
    fn admit(
        &self,
        spec: MemberSpec,
        recalled: &Recalled,
        assumed: Option<CachedOffer>,
    ) -> Arc<Member> {
        let is_server = spec.kind.is_server();
        let cache = self.inner.cache.as_ref().filter(|_| is_server);
        let known = recalled
            .get(&spec.fingerprint)
            .cloned()
            .filter(|_| is_server);
        let was_silent =
            known.is_none() && cache.is_some_and(|cache| cache.was_silent(&spec.fingerprint));
        let known = known.or(assumed.filter(|_| is_server));
        let over = self.inner.gone.child_token();
        let slots = self.inner.slots.clone();
        let member = Arc::new(Member::new(spec, known, was_silent, slots, over.clone()));
        // Subscribed before the task starts, so that no change is missed.
        let catalogue = member.watch_catalogue();
        let status = member.upstream().map(Upstream::status);
        let inner = Arc::downgrade(&self.inner);
        let following = follow(inner, Arc::clone(&member), catalogue, status);
        self.inner
            .tasks
            .spawn(over.run_until_cancelled_owned(following));
        member
    }

    fn enabled(&self) -> Vec<Arc<Member>> {
        let mut members = self.members();
        members.retain(|member| member.is_enabled());
        members
    }
}

impl Inner {
    /// Sends an event. There may be no receiver.
    fn tell(&self, event: HubEvent) {
        drop(self.events.send(event));
    }

    fn tell_status(&self, member: &Member) {
        self.tell(HubEvent::Status {
            name: Arc::clone(&member.name),
            enabled: member.is_enabled(),
            status: member.condition(),
        });
    }

    /// Caches the offer of a connected member.
    fn cache_offer(&self, member: &Arc<Member>) {
        let (Some(cache), Some(upstream)) = (&self.cache, member.upstream()) else {
            return;
        };
        // Read the catalogue first: it is empty once the server is disconnected.
        let catalogue = member.catalogue();
        if upstream.status().borrow().state != ServerState::Connected {
            return;
        }
        // A list that could not be fetched is not known to be empty, so it is not cached.
        let report = upstream.report();
        let is_whole = |report: &Report| !report.list_problems.iter().any(is_unlisted);
        if !report.as_ref().is_some_and(is_whole) {
            return;
        }
        let known = CachedOffer {
            catalogue,
            revision: upstream.history().revision,
        };
        let (cache, member) = (cache.clone(), Arc::clone(member));
        let ticket = member.cache_writes.ticket();
        self.leaving.spawn_blocking(move || {
            let cache_writes = member
                .cache_writes
                .run_unless_newer(ticket, || cache.keep(&member.fingerprint, &known));
            if let Some(Err(error)) = cache_writes {
                let name = &member.name;
                tracing::warn!(server = %name, %error, "cannot cache the server's catalogue");
            }
        });
    }
}

impl Inner {
    /// Records that a member did not answer within its startup wait, counted from its own start, so
    /// that the lists of the next process do not wait for it.
    fn cache_silence(&self, member: &Arc<Member>) {
        let Some(cache) = self.cache.clone() else {
            return;
        };
        let member = Arc::clone(member);
        let ticket = member.cache_writes.ticket();
        self.leaving.spawn_blocking(move || {
            let noted = member
                .cache_writes
                .run_unless_newer(ticket, || cache.note_silent(&member.fingerprint));
            if let Some(Err(error)) = noted {
                tracing::debug!(%error, "lists will wait for the server again");
            }
        });
    }
}

fn is_unlisted(problem: &ListProblem) -> bool {
    matches!(problem, ListProblem::Failed { .. })
}

/// Merges, caches and publishes the changes of a member.
async fn follow(
    inner: Weak<Inner>,
    member: Arc<Member>,
    mut catalogue: watch::Receiver<Arc<Catalogue>>,
    mut status: Option<watch::Receiver<Status>>,
) {
    let mut was_connected = false;
    let mut silent = pin!(member.silent());
    let mut was_silent = false;
    loop {
        let (changed, of_catalogue) = tokio::select! {
            changed = catalogue.changed() => (changed, true),
            changed = changed(&mut status) => (changed, false),
            () = &mut silent, if !was_silent => {
                was_silent = true;
                if let Some(inner) = inner.upgrade() {
                    inner.cache_silence(&member);
                }
                continue;
            }
        };
        let (Ok(()), Some(inner)) = (changed, inner.upgrade()) else {
            return;
        };
        let state = member.condition().map(|status| status.state);
        let connected = state == Some(ServerState::Connected);
        // A member whose offer becomes known may have an empty one, which must be merged as well.
        inner.changed.notify_one();
        if of_catalogue {
            inner.tell(HubEvent::Catalogue {
                name: Arc::clone(&member.name),
            });
        } else {
            inner.tell_status(&member);
        }
        if connected && (of_catalogue || !was_connected) {
            inner.cache_offer(&member);
        }
        was_connected = connected;
    }
}

/// Waits for a change of an optional watch channel.
async fn changed<T>(
    watched: &mut Option<watch::Receiver<T>>,
) -> Result<(), watch::error::RecvError> {
    match watched {
        Some(watched) => watched.changed().await,
        None => std::future::pending().await,
    }
}
