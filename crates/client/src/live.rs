//! A connected server.

mod ask;
mod failure;
mod handshake;
mod listening;
mod pool;
mod session;
mod session_for;
mod stateless;
mod subscribed;
mod visit;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use plexus_mcp::messages::{
    ClientCapabilities, CompleteParams, CompletionArgument, CompletionContext, CompletionReference,
    LoggingMessageParams,
};
use plexus_mcp::{Era, Fault, code, method};
use plexus_service::{Call, Catalogue, EventSender, Log, Progress, Section};
use plexus_wire::{Notification, Object, Raw};
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, mpsc, oneshot, watch as signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chain::brief;
use crate::connect::{Connected, Quirk};
use crate::definition::{Definition, Target};
use crate::link::Headers;
use crate::listing::{Lister, Listing, Oddity, Quarantined};
use crate::lock::lock;
use crate::rpc::{Caller, Misdeeds, RpcFailure, Traits, Update};
use crate::server_facts::ServerFacts;
use crate::stamp;
use crate::watched::Watched;
pub(crate) use failure::CallFailure;
use pool::Pool;
pub(crate) use session::Session;

/// How long further change notices are waited for before a list is fetched anew.
const SETTLE: Duration = Duration::from_millis(50);

/// How long after a list could not be fetched it is tried again.
const RELIST: Duration = Duration::from_secs(5);

/// How long listening to a stateless server may take to begin before its lists are fetched anyway.
const LISTEN: Duration = Duration::from_millis(500);

/// How long a server of 2024-11-05 may take to say whether it completes.
const PROBE: Duration = Duration::from_secs(2);

/// How often idle sessions are looked for.
const TIDY: Duration = Duration::from_mins(1);

/// A connected server, as long as it is connected.
pub(crate) struct Live {
    pub(crate) definition: Arc<Definition>,
    /// What we tell the server that we are.
    client_info: Raw,
    /// What it was told in its own session that we can do.
    profile: ClientCapabilities,
    /// The session that belongs to no caller; lists and subscriptions are its business, and the calls
    /// of all who need no other.
    pub(crate) own: Arc<Session>,
    others: Pool,
    pub(crate) facts: ServerFacts,
    pub(crate) quirks: Vec<Quirk>,
    listing: Mutex<Listing>,
    catalogue: signal::Sender<Arc<Catalogue>>,
    watched: Arc<Watched>,
    /// One lists at a time.
    relisting: AsyncMutex<()>,
    /// Which lists are known to have changed.
    stale: Mutex<Vec<Section>>,
    changed: Notify,
    /// One call at a time, for servers that want it so.
    lane: Option<Semaphore>,
    tasks: TaskTracker,
    over: CancellationToken,
}

impl Live {
    /// Lists what the server has, and listens to it from then on.
    pub(crate) async fn settle(
        definition: Arc<Definition>,
        connected: Connected,
        catalogue: signal::Sender<Arc<Catalogue>>,
        watched: Arc<Watched>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let Connected {
            rpc,
            facts,
            stray,
            quirks,
        } = connected;
        let listing = Listing::new(&facts);
        let names_calls = names_calls(&definition, &quirks);
        let live = Arc::new(Self {
            lane: definition.serialize.then(|| Semaphore::new(1)),
            client_info: definition.client_info.to_raw(),
            profile: definition.capabilities.profile(),
            definition,
            own: Arc::new(Session::new(rpc, facts.revision, names_calls)),
            others: Pool::default(),
            facts,
            quirks,
            listing: Mutex::new(listing),
            catalogue,
            watched,
            relisting: AsyncMutex::default(),
            stale: Mutex::default(),
            changed: Notify::new(),
            tasks,
            over: CancellationToken::new(),
        });
        // Whoever gives up waiting for the lists gives up the connection.
        let unless_settled = StopOnDrop(Some(Arc::clone(&live)));
        // Listening comes first, lest a change during the listing be lost.
        let own = Arc::downgrade(&live.own);
        live.spawn(Arc::clone(&live).heed(own, stray));
        match live.facts.revision.era() {
            Era::Stateless => {
                live.own.rpc.set_stateless();
                let (listening, listened) = oneshot::channel();
                live.spawn(Arc::clone(&live).keep_listening(listening));
                drop(tokio::time::timeout(LISTEN, listened).await);
            }
            Era::Handshake => live.spawn(Arc::clone(&live).keep_subscribed()),
        }
        live.spawn(Arc::clone(&live).keep_tidy());
        live.find_completions().await;
        live.list(&Section::ALL).await;
        live.spawn(Arc::clone(&live).keep_listed());
        unless_settled.defuse();
        live
    }

    /// Carries out a call.
    ///
    /// # Errors
    /// [`CallFailure::SessionLost`] if the server has forgotten us; then nothing was carried out.
    pub(crate) async fn call(self: &Arc<Self>, call: &Call) -> Result<Raw, CallFailure> {
        let _lane = match &self.lane {
            Some(lane) => {
                let turn = self.in_time(&call.method, lane.acquire());
                Box::pin(turn).await?.ok()
            }
            None => None,
        };
        let session = self.session_for(call.peer()).await?;
        match self.call_in(&session, call).await {
            // Nothing was carried out, so the call can be made once more, in a new session.
            Err(CallFailure::SessionLost) if !Arc::ptr_eq(&session, &self.own) => {
                session.rpc.stop();
                let renewed = self.session_for(call.peer()).await?;
                match Box::pin(self.call_in(&renewed, call)).await {
                    Err(CallFailure::SessionLost) => Err(forgetful().into()),
                    outcome => outcome,
                }
            }
            outcome => outcome,
        }
    }

    async fn call_in(&self, session: &Session, call: &Call) -> Result<Raw, CallFailure> {
        match session.revision.era() {
            Era::Handshake => handshake::call(self, session, call).await,
            Era::Stateless => stateless::call(self, session, call).await,
        }
    }

    /// The resources that are watched here, if the server lets them be watched.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn watched(&self) -> Result<&Arc<Watched>, Fault> {
        self.offers_subscriptions()?;
        Ok(&self.watched)
    }

    /// Whether it is reached by HTTP+SSE.
    pub(crate) fn is_over_sse(&self) -> bool {
        matches!(self.definition.target, Target::Sse(_)) || self.quirks.contains(&Quirk::SseOnly)
    }

    pub(crate) fn quarantined(&self) -> Vec<Quarantined> {
        lock(&self.listing).quarantined.clone()
    }

    pub(crate) fn oddities(&self) -> Vec<Oddity> {
        lock(&self.listing).oddities.clone()
    }

    pub(crate) fn misdeeds(&self) -> Misdeeds {
        self.own.rpc.misdeeds()
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        self.others.stop();
        self.own.rpc.close().await;
    }

    /// Stops listening; the connection ends with the last call that uses it.
    pub(crate) fn retire(&self) {
        self.over.cancel();
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn stop(&self) {
        self.over.cancel();
        self.others.stop();
        self.own.rpc.stop();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        self.tasks.spawn(async move {
            over.run_until_cancelled(work).await;
        });
    }

    /// Fetches lists anew, and shows what came of it if it differs.
    async fn list(&self, sections: &[Section]) {
        // Two at once would each undo what the other found.
        let _one_at_a_time = self.relisting.lock().await;
        let mut fresh = Listing::new(&self.facts);
        {
            let known = lock(&self.listing);
            for section in Section::ALL {
                fresh
                    .catalogue
                    .set_list(section, Arc::clone(known.catalogue.list(section)));
            }
            let completes = known.catalogue.capabilities.completions;
            fresh.catalogue.capabilities.completions = completes;
            fresh.quarantined.clone_from(&known.quarantined);
            fresh.oddities.clone_from(&known.oddities);
        }
        let deadline = Instant::now() + self.definition.timeouts.connect;
        for section in sections {
            let refresh = fresh.refresh(*section, &self.facts, self, self.definition.max_listed);
            if tokio::time::timeout_at(deadline, refresh).await.is_err() {
                fresh.unanswered(*section);
            }
        }
        let catalogue = Arc::new(fresh.catalogue.clone());
        *lock(&self.listing) = fresh;
        self.catalogue.send_if_modified(|known| {
            let differs = catalogue.differs_from(known);
            if differs {
                *known = catalogue;
            }
            differs
        });
    }

    /// Finds out whether a server completes whose revision has no way to say so: it knows the method,
    /// even if not what it is asked about (TRANSLATION §5.1).
    async fn find_completions(&self) {
        let facts = &self.facts;
        let is_told = facts.revision.features().completions_capability;
        let has_any =
            facts.capabilities.prompts.is_some() || facts.capabilities.resources.is_some();
        if is_told || !has_any {
            return;
        }
        let params = CompleteParams {
            reference: CompletionReference::Prompt {
                name: String::new(),
            },
            argument: CompletionArgument {
                name: String::new(),
                value: String::new(),
            },
            context: CompletionContext::default(),
        };
        let rpc = &self.own.rpc;
        let request = rpc.request(
            method::COMPLETE,
            Some(params.to_raw()),
            Headers::new(),
            Traits::default(),
        );
        let answer = async { request.await?.answer().await };
        let knows = match tokio::time::timeout(PROBE, answer).await {
            Ok(Err(RpcFailure::Error(error))) => error.code != code::METHOD_NOT_FOUND,
            Ok(answer) => answer.is_ok(),
            Err(_elapsed) => false,
        };
        lock(&self.listing).catalogue.capabilities.completions |= knows;
    }

    /// Fetches what has changed, a little after it was said to have; what cannot be fetched is tried
    /// again, and shown as it was meanwhile.
    async fn keep_listed(self: Arc<Self>) {
        while !self.over.is_cancelled() {
            self.changed.notified().await;
            tokio::time::sleep(SETTLE).await;
            let stale = std::mem::take(&mut *lock(&self.stale));
            self.list(&stale).await;
            let failed: Vec<Section> = {
                let listing = lock(&self.listing);
                stale
                    .into_iter()
                    .filter(|section| listing.has_failed(*section))
                    .collect()
            };
            if !failed.is_empty() {
                tokio::time::sleep(RELIST).await;
                self.is_stale(&failed);
            }
        }
    }

    /// Heeds what the server says in a session outside of any request.
    async fn heed(self: Arc<Self>, session: Weak<Session>, mut stray: mpsc::Receiver<Update>) {
        while let Some(update) = stray.recv().await {
            let Some(session) = session.upgrade() else {
                return;
            };
            match update {
                Update::Notification(notification) => self.noticed(&session, &notification),
                Update::Request(request) => ask::refuse_stray(&session, request).await,
            }
        }
    }

    async fn keep_tidy(self: Arc<Self>) {
        while !self.over.is_cancelled() {
            tokio::time::sleep(TIDY).await;
            self.others.tidy();
        }
    }

    /// Takes note of a notification that concerns no single call, but may concern a session.
    fn noticed(&self, session: &Session, notification: &Notification) {
        if &*notification.method != method::ELICITATION_COMPLETE {
            return self.notified(notification);
        }
        let params = notification.params.as_ref();
        let object = params.and_then(|params| Object::parse(params).ok());
        let id = object.and_then(|object| object.get("elicitationId")?.decode::<String>().ok());
        if let Some(id) = id {
            session.note_visit(id);
        }
    }

    /// Takes note of a notification that concerns no single call.
    fn notified(&self, notification: &Notification) {
        match &*notification.method {
            method::TOOLS_CHANGED => self.is_stale(&[Section::Tools]),
            method::PROMPTS_CHANGED => self.is_stale(&[Section::Prompts]),
            method::RESOURCES_CHANGED => self.is_stale(&[Section::Resources, Section::Templates]),
            method::RESOURCE_UPDATED => {
                let params = notification.params.as_ref();
                let object = params.and_then(|params| Object::parse(params).ok());
                let uri = object.and_then(|object| object.get("uri")?.decode::<String>().ok());
                if let Some(uri) = uri {
                    self.watched.updated(&uri);
                }
            }
            other => tracing::debug!(method = other, "a notification that concerns nobody"),
        }
    }

    fn is_stale(&self, sections: &[Section]) {
        let mut stale = lock(&self.stale);
        for section in sections {
            if !stale.contains(section) {
                stale.push(*section);
            }
        }
        self.changed.notify_one();
    }

    /// Hands a notification of a call on to its caller.
    async fn relay(&self, session: &Session, notification: Notification, events: &EventSender) {
        let params = notification.params.as_ref();
        match &*notification.method {
            method::PROGRESS => {
                if let Some(Ok(params)) = params.map(Raw::decode::<ProgressParts>) {
                    let ProgressParts {
                        progress,
                        total,
                        message,
                    } = params;
                    events
                        .progress(Progress {
                            progress,
                            total,
                            message,
                        })
                        .await;
                }
            }
            method::LOG => {
                if let Some(Ok(params)) = params.map(Raw::decode::<LoggingMessageParams>) {
                    let LoggingMessageParams {
                        level,
                        logger,
                        data,
                    } = params;
                    events
                        .log(Log {
                            level,
                            logger,
                            data,
                        })
                        .await;
                }
            }
            _ => self.noticed(session, &notification),
        }
    }

    /// How long a request may show no sign of life.
    fn patience(&self, method: &str) -> Duration {
        let timeouts = self.definition.timeouts;
        if method == method::TOOLS_CALL {
            timeouts.call
        } else {
            timeouts.request
        }
    }

    /// What `work` comes to, unless the request it is for would be late by then.
    async fn in_time<T>(&self, method: &str, work: impl Future<Output = T>) -> Result<T, Fault> {
        let mut work = pin!(work);
        // Most of it is done at once, and no clock is needed for that.
        let done = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = done {
            return Ok(done);
        }
        let in_time = Box::pin(tokio::time::timeout(self.patience(method), work)).await;
        in_time.map_err(|_elapsed| late(method))
    }

    /// Until when a call must show a sign of life from now on, which is to be over at `end`.
    fn deadline(&self, method: &str, end: Instant) -> Instant {
        (Instant::now() + self.patience(method)).min(end)
    }

    /// What a caller is told of a request that failed.
    fn fault(failure: RpcFailure) -> Fault {
        match failure {
            RpcFailure::Error(error) => Fault::Upstream(error),
            RpcFailure::Link(error) => Fault::Internal(brief(&error.to_string()).to_owned()),
        }
    }
}

/// A time that is only waited for together with others.
fn far_away() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

/// Whether questions come with the call they belong to.
fn names_calls(definition: &Definition, quirks: &[Quirk]) -> bool {
    matches!(definition.target, Target::Http(_)) && !quirks.contains(&Quirk::SseOnly)
}

/// What tells a caller apart from others.
fn caller(call: &Call) -> Caller {
    Arc::as_ptr(call.peer()).addr()
}

/// Whether the caller can be asked anything during this call.
fn is_interactive(call: &Call) -> bool {
    let capabilities = &call.peer().capabilities;
    let askable =
        capabilities.roots || capabilities.sampling.is_some() || capabilities.elicitation.is_some();
    askable && method::may_ask(&call.method)
}

/// What a server is whose new session is lost at once.
pub(crate) fn forgetful() -> Fault {
    Fault::Internal("the server forgets what it agreed on".to_owned())
}

fn late(method: &str) -> Fault {
    Fault::Internal(format!(
        "{method} was not answered in time; it was cancelled"
    ))
}

/// Ends a connection that nobody has taken over.
struct StopOnDrop(Option<Arc<Live>>);

impl StopOnDrop {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.stop();
        }
    }
}

/// The part of a progress notification that is anybody's business but its token's.
#[derive(serde::Deserialize)]
struct ProgressParts {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Lister for Live {
    async fn page(&self, method: &'static str, cursor: Option<String>) -> Result<Raw, RpcFailure> {
        let mut params = Object::new();
        if let Some(cursor) = &cursor {
            params.set("cursor", Raw::string(cursor));
        }
        let (params, headers) = match self.facts.revision.era() {
            Era::Handshake => (cursor.map(|_| params.to_raw()), Headers::new()),
            Era::Stateless => {
                let own = stamp::StatelessMeta {
                    revision: self.facts.revision,
                    capabilities: &self.definition.capabilities,
                    client_info: &self.client_info,
                    log_level: None,
                };
                let headers = stamp::mirrored(self.facts.revision, method, &params, None);
                let params = stamp::stateless(&params, None, own);
                (Some(params.to_raw()), headers)
            }
        };
        let rpc = &self.own.rpc;
        let request = rpc.request(method, params, headers, Traits::default());
        let answer = async { request.await?.answer().await };
        let patience = self.definition.timeouts.request;
        tokio::time::timeout(patience, answer)
            .await
            .unwrap_or_else(|_elapsed| Err(RpcFailure::late(method, patience)))
    }
}
