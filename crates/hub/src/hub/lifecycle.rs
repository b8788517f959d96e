//! Who is part of a hub, and how they are connected.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use plexus_client::{State, Status};
use plexus_service::{Catalogue, Fault};
use tokio::sync::watch;

use super::{Hub, HubEvent, Inner};
use crate::member::{Member, MemberSpec};
use crate::remembered::Known;

/// How long the calls of a member that leaves may take to finish.
const GRACE: Duration = Duration::from_secs(10);
/// How long the first clients have for themselves before members are connected that can wait.
const HEADROOM: Duration = Duration::from_millis(100);
/// How long after one of these the next is begun with.
const PACE: Duration = Duration::from_millis(10);

/// What is remembered, by the fingerprint of its server.
type Recalled = HashMap<[u8; 32], Known>;

/// What [`Hub::set_members`] did (S004-53, C38).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetMembers {
    /// New members.
    pub added: Vec<String>,
    /// Members that are gone.
    pub removed: Vec<String>,
    /// Members whose definition changed, which are connected anew.
    pub updated: Vec<String>,
    /// What could not be used, and why.
    pub errors: BTreeMap<String, String>,
}

impl SetMembers {
    /// Whether everything stayed as it was.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Hub {
    /// Makes these the members, in this order. Members that stay as they were are not touched:
    /// their connections and calls go on. New ones are not connected before they are needed, or
    /// [`Hub::connect_all`] or [`Hub::connect_in_background`] is called.
    ///
    /// Calls that a leaving member has may finish for a while, behind this. Of two members whose
    /// names differ at most in case, the first counts.
    pub async fn set_members(&self, specs: Vec<MemberSpec>) -> SetMembers {
        self.change_members(specs, GRACE).await
    }

    /// Connects every member that is turned on, all at once; when this returns, each is connected
    /// or has failed by itself.
    pub async fn connect_all(&self) {
        let connecting = self.enabled().into_iter().map(async |member| {
            if let Some(connection) = member.connection() {
                // Each failure is its member's status.
                drop(member.over.run_until_cancelled(connection.connect()).await);
            }
        });
        join_all(connecting).await;
        self.inner.merge();
    }

    /// Waits until it is known what every member offers that is turned on, from now or from an
    /// earlier time, or why it cannot be known; but no longer than `patience`. Members that were
    /// waited for in vain are not waited for again, here or by the processes that come after this,
    /// until they have been connected once.
    pub async fn settle(&self, patience: Duration) {
        drop(tokio::time::timeout(patience, self.all_known()).await);
        self.inner.merge();
        let Some(remembered) = &self.inner.remembered else {
            return;
        };
        for member in self.awaited() {
            let (remembered, fingerprint) = (remembered.clone(), member.fingerprint);
            self.inner.leaving.spawn_blocking(move || {
                if let Err(error) = remembered.note_late(&fingerprint) {
                    tracing::debug!(%error, "it will be waited for again");
                }
            });
        }
    }

    /// Waits for members that are still being connected for the first time ever, so that what they
    /// offer is remembered although nobody may be there any more to see it; but no longer than
    /// `patience`.
    pub async fn finish_first_connections(&self, patience: Duration) {
        drop(tokio::time::timeout(patience, self.all_known()).await);
    }

    async fn all_known(&self) {
        join_all(self.awaited().iter().map(|member| member.known_or_failed())).await;
    }

    /// The members that are worth waiting for: nothing is known of them, and they were not waited
    /// for in vain before.
    fn awaited(&self) -> Vec<Arc<Member>> {
        let mut members = self.enabled();
        members.retain(|member| !member.is_known() && !member.was_late);
        members
    }

    /// Begins to connect every member that is turned on, in the background, and keeps those
    /// connected that are to be. Those that are connected already are left alone.
    ///
    /// Members of whom it is known what they offer come last and one after the other, without
    /// waiting for one another: to start many programs at once takes all processors for a while,
    /// just when the first client wants to be answered.
    pub fn connect_in_background(&self) {
        self.connect_unknown_in_background();
        let mut known = self.enabled();
        known.retain(|member| member.is_to_be_started());
        if known.is_empty() {
            return;
        }
        let (hub, gone) = (Arc::downgrade(&self.inner), self.inner.gone.clone());
        self.inner
            .tasks
            .spawn(gone.run_until_cancelled_owned(async move {
                tokio::time::sleep(HEADROOM).await;
                for member in known {
                    let Some(inner) = hub.upgrade() else { return };
                    inner.keep_connected(member);
                    drop(inner);
                    tokio::time::sleep(PACE).await;
                }
            }));
    }

    /// As [`Hub::connect_in_background`], for those of whom it is not known what they offer. The
    /// others are connected by their first call.
    pub fn connect_unknown_in_background(&self) {
        for member in self.enabled() {
            if !member.is_known() {
                self.start(member);
            }
        }
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

    /// Ends a member's connection; what it offered is no longer offered (S004-51). It stays a
    /// member, and can be connected again.
    ///
    /// # Errors
    /// There is no such member.
    pub async fn disconnect(&self, name: &str) -> Result<(), Fault> {
        let member = self.member(name)?;
        if let Some(connection) = member.connection() {
            connection.disconnect().await;
        }
        self.inner.merge();
        Ok(())
    }

    /// Ends a member's connection and makes a new one (S004-51).
    ///
    /// # Errors
    /// There is no such member, or it cannot be connected.
    pub async fn reconnect(&self, name: &str) -> Result<(), Fault> {
        let member = self.member(name)?;
        let Some(connection) = member.connection() else {
            return Ok(());
        };
        let reconnected = member
            .over
            .run_until_cancelled(connection.reconnect())
            .await;
        let reconnected = reconnected.unwrap_or_else(|| Err("it was removed".to_owned()));
        reconnected.map_err(Fault::Internal)?;
        // Whoever kept it connected may have given up, as when credentials were wanting.
        self.inner.keep_connected(member);
        self.inner.merge();
        Ok(())
    }

    /// Turns a member on or off (S004-52, C39). Its connection stays; what it offers is shown or
    /// not. One that was never connected is connected in the background when it is turned on.
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
                self.start(member);
            }
        }
        Ok(())
    }

    /// Ends all connections, and does not wait for calls.
    pub async fn close(&self) {
        self.change_members(Vec::new(), Duration::ZERO).await;
        self.inner.leaving.close();
        self.inner.leaving.wait().await;
    }

    async fn change_members(&self, specs: Vec<MemberSpec>, grace: Duration) -> SetMembers {
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
                        self.start(Arc::clone(&member));
                    }
                    members.push(member);
                }
                Some(old) => {
                    changes.updated.push(spec.name.clone());
                    // Until it is connected, it is taken to offer what it did.
                    let member = self.admit(spec, &recalled, old.known());
                    // Whoever turned it off wants the new one off, too (C38).
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
            // What it was found out to do of late may not be kept yet.
            inner.remember(&member);
            // Calls find their way to its successor from here on.
            member.over.cancel();
            inner
                .leaving
                .spawn(async move { member.leave(grace).await });
        }
        if !changes.is_nothing() {
            inner.tell(HubEvent::Members(changes.clone()));
        }
        changes
    }

    /// What is remembered of those that are servers, by their fingerprints.
    fn recall<'a>(&self, specs: impl Iterator<Item = &'a MemberSpec>) -> Recalled {
        let Some(remembered) = &self.inner.remembered else {
            return Recalled::new();
        };
        let servers: Vec<_> = specs
            .filter(|spec| spec.kind.is_server())
            .map(|spec| spec.fingerprint)
            .collect();
        let found = remembered.find_all(&servers);
        let known = servers.into_iter().zip(found);
        known
            .filter_map(|(server, known)| Some((server, known?)))
            .collect()
    }

    /// Makes a member, and follows what becomes of it. If it is not remembered, `assumed` is what it
    /// is taken to offer until it is connected.
    fn admit(&self, spec: MemberSpec, recalled: &Recalled, assumed: Option<Known>) -> Arc<Member> {
        let is_server = spec.kind.is_server();
        let remembered = self.inner.remembered.as_ref().filter(|_| is_server);
        let known = recalled
            .get(&spec.fingerprint)
            .cloned()
            .filter(|_| is_server);
        let was_late = known.is_none()
            && remembered.is_some_and(|remembered| remembered.was_late(&spec.fingerprint));
        let known = known.or(assumed.filter(|_| is_server));
        let over = self.inner.gone.child_token();
        let member = Arc::new(Member::new(spec, known, was_late, over.clone()));
        // What changes from here on is noticed, even if it takes a while until somebody looks.
        let catalogue = member.watch_catalogue();
        let status = member.connection().map(|connection| connection.status());
        let asks = member
            .connection()
            .map(|connection| connection.asks().watch());
        let inner = Arc::downgrade(&self.inner);
        let following = follow(inner, Arc::clone(&member), catalogue, status, asks);
        self.inner
            .tasks
            .spawn(over.run_until_cancelled_owned(following));
        member
    }

    /// Connects a member in the background, unless that was begun before.
    fn start(&self, member: Arc<Member>) {
        if member.is_to_be_started() {
            self.inner.keep_connected(member);
        }
    }

    fn enabled(&self) -> Vec<Arc<Member>> {
        let mut members = self.members();
        members.retain(|member| member.is_enabled());
        members
    }
}

impl Inner {
    fn keep_connected(&self, member: Arc<Member>) {
        let over = member.over.clone();
        self.tasks.spawn(async move {
            let keeping = Box::pin(member.keep_connected());
            over.run_until_cancelled(keeping).await;
        });
    }

    /// Nobody need listen.
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

    /// Keeps what a member offers, now that it is connected.
    fn remember(&self, member: &Arc<Member>) {
        let (Some(remembered), Some(connection)) = (&self.remembered, member.connection()) else {
            return;
        };
        if connection.status().borrow().state != State::Connected {
            return;
        }
        let known = Known {
            catalogue: member.catalogue(),
            revision: connection.facts().revision,
            asks: connection.asks().is_known(),
        };
        let (remembered, member) = (remembered.clone(), Arc::clone(member));
        let turn = member.kept.next();
        self.leaving.spawn_blocking(move || {
            let kept = member
                .kept
                .unless_newer(turn, || remembered.keep(&member.fingerprint, &known));
            if let Some(Err(error)) = kept {
                let name = &member.name;
                tracing::warn!(server = %name, %error, "cannot keep what the server offers");
            }
        });
    }
}

/// Merges, remembers and tells what changes about a member.
async fn follow(
    inner: Weak<Inner>,
    member: Arc<Member>,
    mut catalogue: watch::Receiver<Arc<Catalogue>>,
    mut status: Option<watch::Receiver<Status>>,
    mut asks: Option<watch::Receiver<bool>>,
) {
    let mut was_connected = false;
    loop {
        let (changed, of_catalogue) = tokio::select! {
            changed = catalogue.changed() => (changed, true),
            changed = changed(&mut status) => (changed, false),
            changed = changed(&mut asks) => {
                if let (Ok(()), Some(inner)) = (changed, inner.upgrade()) {
                    inner.remember(&member);
                }
                continue;
            }
        };
        let (Ok(()), Some(inner)) = (changed, inner.upgrade()) else {
            return;
        };
        let condition = member.condition();
        let connected = condition.is_some_and(|status| status.state == State::Connected);
        if of_catalogue {
            inner.changed.notify_one();
            inner.tell(HubEvent::Catalogue {
                name: Arc::clone(&member.name),
            });
        } else {
            inner.tell_status(&member);
        }
        if connected && (of_catalogue || !was_connected) {
            inner.remember(&member);
        }
        was_connected = connected;
    }
}

/// Waits for a change of what there may be.
async fn changed<T>(
    watched: &mut Option<watch::Receiver<T>>,
) -> Result<(), watch::error::RecvError> {
    match watched {
        Some(watched) => watched.changed().await,
        None => std::future::pending().await,
    }
}
