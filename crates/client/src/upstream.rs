//! One server as a service.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use plexus_mcp::messages::{CallToolResult, Implementation, ServerCapabilities};
use plexus_mcp::{Era, Fault, method};
use plexus_service::{Boxed, Call, Catalogue, EventSender, Outcome, Peer, Service, Updates};
use plexus_wire::Raw;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::auth::AuthError;
use crate::chain::brief;
use crate::connect::{self, ConnectError, Connected, Quirk};
use crate::definition::Definition;
use crate::link::LinkError;
use crate::listing::{Oddity, Quarantined};
use crate::live::{CallFailure, Live, forgetful};
use crate::lock::lock;
use crate::rpc::{Ending, Misdeeds};
use crate::server_facts::ServerFacts;
use crate::status::{ProcessInfo, State, Status};
use crate::watched::Watched;

/// How long a lost server is left alone before it is connected again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A connection that lasted so long was a good one.
const LASTING: Duration = Duration::from_secs(30);
/// How often the caller of one call may be asked to sign in (AUTH26-18).
const MAX_INVITATIONS: u32 = 2;

/// One MCP server, of whatever revision and behind whatever transport, as a [`Service`]. Cheap to
/// clone: all clones are one.
///
/// Dropping the last clone ends the connection, and with it the server's process.
#[derive(Clone)]
pub struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    definition: Arc<Definition>,
    status: watch::Sender<Status>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    live: Mutex<Option<Arc<Live>>>,
    watched: Arc<Watched>,
    /// The era it spoke when it was connected last; asking again takes time (VER26-21).
    era: Mutex<Option<Era>>,
    /// One connects at a time.
    connecting: AsyncMutex<()>,
    tasks: TaskTracker,
}

/// What is known of a connected server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// What it says of itself.
    pub facts: ServerFacts,
    /// What is odd about how it takes its greeting.
    pub quirks: Vec<Quirk>,
    /// Entries of its lists that are not shown.
    pub quarantined: Vec<Quarantined>,
    /// What is odd about its lists.
    pub oddities: Vec<Oddity>,
    /// What it did that it should not have.
    pub misdeeds: Misdeeds,
}

impl Upstream {
    /// A server that is not connected yet.
    pub fn new(definition: Definition) -> Self {
        let inner = Inner {
            era: Mutex::new(definition.era),
            definition: Arc::new(definition),
            status: watch::Sender::new(Status::new(State::Pending, None)),
            catalogue: watch::Sender::new(Arc::new(nothing())),
            live: Mutex::default(),
            watched: Arc::default(),
            connecting: AsyncMutex::default(),
            tasks: TaskTracker::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Connects, unless it is connected. When this returns, the server was greeted and listed, or
    /// the reason why not is also its status.
    ///
    /// Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(&self) -> Result<(), ConnectError> {
        let _connecting = self.inner.connecting.lock().await;
        if self.inner.live().is_some() {
            return Ok(());
        }
        self.set_status(State::Pending, None);
        let connected = match self.greet().await {
            Ok(connected) => connected,
            Err(error) => {
                let state = match &error {
                    ConnectError::Link(LinkError::NeedsAuth { .. }) => State::NeedsAuth,
                    _ => State::Failed,
                };
                self.set_status(state, Some(error.to_string()));
                return Err(error);
            }
        };
        let settling = Live::settle(
            Arc::clone(&self.inner.definition),
            connected,
            self.inner.catalogue.clone(),
            Arc::clone(&self.inner.watched),
            self.inner.tasks.clone(),
        );
        // Boxed, as it is large, and part of whatever waits for a server.
        let live = Box::pin(settling).await;
        *lock(&self.inner.live) = Some(Arc::clone(&live));
        // C37: a server whose lists fail is connected, and says so.
        let oddities: Vec<_> = live.oddities().iter().map(ToString::to_string).collect();
        let reason = (!oddities.is_empty()).then(|| oddities.join("; "));
        self.set_status(State::Connected, reason);
        let ending = live.own.rpc.ending();
        let watched = (Arc::downgrade(&self.inner), Arc::downgrade(&live));
        self.inner
            .tasks
            .spawn(watch_over(watched.0, watched.1, ending));
        Ok(())
    }

    /// Ends the connection, if there is one. What it offered is no longer offered.
    pub async fn disconnect(&self) {
        let _connecting = self.inner.connecting.lock().await;
        let live = lock(&self.inner.live).take();
        if let Some(live) = live {
            live.close().await;
        }
        self.inner.catalogue.send_replace(Arc::new(nothing()));
        self.set_status(State::Pending, None);
    }

    /// Ends the connection and makes a new one.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn reconnect(&self) -> Result<(), ConnectError> {
        self.disconnect().await;
        self.connect().await
    }

    /// Whether callers are offered a page to sign in on, if that is what it takes to connect.
    pub fn invites(&self) -> bool {
        let authorizer = self.inner.definition.authorizer();
        authorizer.is_some_and(|authorizer| authorizer.invites())
    }

    /// Connects, unless it is connected, for a caller who is asked to sign in if that is what it
    /// takes.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect_for(&self, events: &EventSender) -> Result<(), ConnectError> {
        match self.connect().await {
            Err(error) if error.wants_user() => match self.invited(events).await {
                Ok(true) => self.connect().await,
                Ok(false) => Err(error),
                Err(error) => Err(ConnectError::SignIn(error)),
            },
            connected => connected,
        }
    }

    /// Connects, and connects again whenever the connection is lost, ever less often if it does not
    /// last (C35). No call is ever made again. Ends only if the server wants credentials.
    pub async fn keep_connected(&self) {
        let mut status = self.status();
        let mut pause = PAUSE;
        loop {
            let began = Instant::now();
            if self.connect().await.is_ok() {
                // A call that was refused costs nobody else the connection.
                let lost = |status: &Status| match status.state {
                    State::Failed | State::Disabled => true,
                    State::NeedsAuth => self.inner.live().is_none(),
                    State::Pending | State::Connected => false,
                };
                if status.wait_for(lost).await.is_err() {
                    return;
                }
            }
            if self.inner.status.borrow().state == State::NeedsAuth {
                return;
            }
            if began.elapsed() >= LASTING {
                pause = PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// What is connected to.
    pub(crate) fn definition(&self) -> &Definition {
        &self.inner.definition
    }

    /// How the server is doing, now and after every change.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.inner.status.subscribe()
    }

    /// What is known of the server, if it is connected.
    pub fn report(&self) -> Option<Report> {
        let live = self.inner.live()?;
        Some(Report {
            facts: live.facts.clone(),
            quirks: live.quirks.clone(),
            quarantined: live.quarantined(),
            oddities: live.oddities(),
            misdeeds: live.misdeeds(),
        })
    }

    /// The server's process, if it is one of ours and runs.
    pub async fn process(&self) -> Option<ProcessInfo> {
        self.inner.live()?.own.rpc.link().process().await
    }

    /// Greets the server in the way that worked last; if that does not work, finds out anew.
    async fn greet(&self) -> Result<Connected, ConnectError> {
        let inner = &self.inner;
        let known = *lock(&inner.era);
        let mut definition = Definition::clone(&inner.definition);
        definition.era = known;
        let mut greeted = connect::connect(&Arc::new(definition), &inner.tasks).await;
        let assumed = known.is_some() && inner.definition.era.is_none();
        if assumed && greeted.as_ref().is_err_and(ConnectError::may_be_of_the_era) {
            greeted = connect::connect(&inner.definition, &inner.tasks).await;
        }
        if let Ok(connected) = &greeted {
            *lock(&inner.era) = Some(connected.facts.revision.era());
        }
        greeted
    }

    /// Carries out a call, in another session if the server has forgotten the one it was made in.
    async fn attempt(&self, call: &Call) -> Result<Raw, CallFailure> {
        let live = self.live().await?;
        match live.call(call).await {
            // Nothing was carried out, so the call can be made once more.
            Err(CallFailure::SessionLost) => {
                Box::pin(self.renew(&live)).await?;
                let renewed = self.live().await?;
                match Box::pin(renewed.call(call)).await {
                    Err(CallFailure::SessionLost) => Err(forgetful().into()),
                    outcome => outcome,
                }
            }
            outcome => outcome,
        }
    }

    /// Has the caller sign in, if that can be offered to it: for itself if it calls in its own name,
    /// but for the server as long as that is not even connected.
    async fn invited(&self, events: &EventSender) -> Result<bool, AuthError> {
        let definition = &self.inner.definition;
        let own = match self.inner.live() {
            Some(_) => definition.identity(events.peer())?,
            None => None,
        };
        let own = own.map(|identity| identity.authorizer);
        match own.as_ref().or(definition.authorizer()) {
            Some(authorizer) => authorizer.invite(events).await,
            None => Ok(false),
        }
    }

    /// Whether what the caller's calls carry is its own, and says nothing of anybody else's.
    fn has_own_identity(&self, peer: &Peer) -> bool {
        !matches!(self.inner.definition.identity(peer), Ok(None))
    }

    async fn carry_out(&self, call: &Call) -> Outcome {
        let mut invitations = 0;
        loop {
            let (reason, wants_user) = match self.attempt(call).await {
                Ok(result) => {
                    self.admitted(call.peer());
                    return Ok(result);
                }
                Err(CallFailure::NeedsAuth { reason, wants_user }) => (reason, wants_user),
                Err(failure) => return Err(failure.into()),
            };
            let may_ask = invitations < MAX_INVITATIONS && method::may_ask(&call.method);
            let invited = if wants_user && may_ask {
                Box::pin(self.invited(&call.events)).await
            } else {
                Ok(false)
            };
            if matches!(invited, Ok(true)) {
                invitations += 1;
                continue;
            }
            if !self.has_own_identity(call.peer()) {
                self.set_status(State::NeedsAuth, Some(reason.clone()));
            }
            return match invited {
                Err(error) if &*call.method == method::TOOLS_CALL => {
                    Ok(CallToolResult::error(error.to_string()).to_raw())
                }
                Err(error) => Err(Fault::Internal(error.to_string())),
                Ok(_) => Err(Fault::Internal(reason)),
            };
        }
    }

    /// A call was let through, so credentials are no longer wanting.
    fn admitted(&self, peer: &Peer) {
        let wanting = self.inner.status.borrow().state == State::NeedsAuth;
        if wanting && !self.has_own_identity(peer) {
            self.set_status(State::Connected, None);
        }
    }

    /// The connection; if one is being made, it is waited for. A server that wanted credentials is
    /// tried again, as there may be some by now.
    async fn live(&self) -> Result<Arc<Live>, CallFailure> {
        match self.inner.live() {
            Some(live) => Ok(live),
            // Boxed, as what is needed seldom is not to be carried along by every call.
            None => Box::pin(self.awaited()).await,
        }
    }

    async fn awaited(&self) -> Result<Arc<Live>, CallFailure> {
        let made = self.inner.connecting.lock().await;
        let wants_credentials = self.inner.status.borrow().state == State::NeedsAuth;
        let live = self.inner.live();
        drop(made);
        if live.is_none() && wants_credentials {
            self.connect().await?;
        }
        let live = live.or_else(|| self.inner.live());
        Ok(live.ok_or_else(|| self.not_connected())?)
    }

    /// Connects anew after `lost` was lost, unless somebody did already.
    async fn renew(&self, lost: &Arc<Live>) -> Result<(), ConnectError> {
        let mine = {
            let mut current = lock(&self.inner.live);
            match &*current {
                Some(live) if Arc::ptr_eq(live, lost) => current.take(),
                _ => None,
            }
        };
        // Calls that it still has are let finish: each finds out for itself that it is lost.
        if let Some(live) = mine {
            live.retire();
        }
        self.connect().await
    }

    fn set_status(&self, state: State, reason: Option<String>) {
        self.inner.status.send_replace(Status::new(state, reason));
    }

    fn not_connected(&self) -> Fault {
        let status = self.inner.status.borrow();
        let reason = status
            .reason
            .as_deref()
            .map_or("it is not connected", brief);
        Fault::Internal(format!(
            "the server cannot be reached ({}): {reason}",
            status.state
        ))
    }
}

impl Inner {
    fn live(&self) -> Option<Arc<Live>> {
        lock(&self.live).clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(live) = self.live() {
            live.stop();
        }
    }
}

/// Notices when a connection ends by itself. Keeps neither side alive.
async fn watch_over(inner: Weak<Inner>, live: Weak<Live>, ending: Ending) {
    let error = ending.wait().await;
    let lost = {
        let Some(inner) = inner.upgrade() else { return };
        let mut current = lock(&inner.live);
        let is_current = |current: &Arc<Live>| Weak::ptr_eq(&Arc::downgrade(current), &live);
        let Some(lost) = current.take_if(|current| is_current(current)) else {
            return;
        };
        drop(current);
        inner
            .status
            .send_replace(Status::new(State::Failed, Some(error.to_string())));
        lost
    };
    lost.retire();
    // A stream of HTTP+SSE breaks with the network, and takes the session with it (S001-56).
    if lost.is_over_sse() {
        drop(lost);
        come_back(inner).await;
    }
}

/// Connects again, a few times, unless somebody else did or nobody wants it any more.
fn come_back(inner: Weak<Inner>) -> Boxed<()> {
    Box::pin(async move {
        for pause in [1, 2, 4, 8, 16] {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let Some(inner) = inner.upgrade() else { return };
            if inner.status.borrow().state != State::Failed {
                return;
            }
            if (Upstream { inner }).connect().await.is_ok() {
                return;
            }
        }
    })
}

impl Service for Upstream {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue.subscribe()
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        let upstream = self.clone();
        Box::pin(async move { upstream.carry_out(&call).await })
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let upstream = self.clone();
        let (peer, uri) = (Arc::clone(peer), uri.to_owned());
        Box::pin(async move {
            // What is watched, is watched with what the server is connected with.
            if upstream.has_own_identity(&peer) {
                let method = method::RESOURCES_SUBSCRIBE.to_owned();
                return Err(Fault::MethodNotFound(method));
            }
            let live = upstream.live().await?;
            let patience = upstream.inner.definition.timeouts.request;
            live.watched()?.watch(&uri, patience).await
        })
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("target", &self.inner.definition.target)
            .field("status", &*self.inner.status.borrow())
            .finish_non_exhaustive()
    }
}

/// What a server offers that is not connected.
fn nothing() -> Catalogue {
    Catalogue::new(Implementation::new("", ""), ServerCapabilities::default())
}
