//! The way to a server: made when it is wanted, and known by what it offered before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use plexus_client::{Asks, ProcessInfo, Report, State, Status, Upstream};
use plexus_service::{Catalogue, EventSender, Service};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::sign_in::SignIn;
use super::{Prepare, nothing};
use crate::remembered::Known;

/// How long a lost server is left alone before it is connected again; twice as long each time (C35).
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A connection that lasted so long was a good one.
const LASTING: Duration = Duration::from_secs(30);

/// The way to one server.
pub(crate) struct Connection {
    prepare: Prepare,
    /// One prepares at a time.
    preparing: AsyncMutex<()>,
    current: Mutex<Current>,
    status: watch::Sender<Status>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    /// Whether the catalogue is what the server says or once said.
    known: AtomicBool,
    facts: Mutex<Facts>,
    /// Whether the server asks its callers anything.
    asks: Asks,
    tasks: TaskTracker,
    /// One keeps it connected at a time.
    keeping: AsyncMutex<()>,
    /// Replaced when people disconnect it: whoever kept it connected stops.
    wanted: Mutex<CancellationToken>,
}

/// The server as it is connected now; every connection that people make is another one.
#[derive(Default)]
struct Current {
    upstream: Option<Upstream>,
    generation: u64,
}

/// What is remembered beyond the connection at hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// How long it took to connect.
    pub(crate) connected_in: Option<Duration>,
    /// What went wrong last, and when.
    pub(crate) last_error: Option<(SystemTime, String)>,
    /// The revision it spoke last.
    pub(crate) revision: Option<String>,
}

impl Connection {
    pub(super) fn new(prepare: Prepare, known: Option<Known>) -> Arc<Self> {
        let is_known = known.is_some();
        let (catalogue, revision, asks) = match known {
            Some(known) => (known.catalogue, known.revision, known.asks),
            None => (Arc::new(nothing()), None, false),
        };
        Arc::new(Self {
            prepare,
            preparing: AsyncMutex::default(),
            current: Mutex::default(),
            status: watch::Sender::new(Status::new(State::Pending, None)),
            catalogue: watch::Sender::new(catalogue),
            known: AtomicBool::new(is_known),
            facts: Mutex::new(Facts {
                revision,
                ..Facts::default()
            }),
            asks: Asks::known(asks),
            tasks: TaskTracker::new(),
            keeping: AsyncMutex::default(),
            wanted: Mutex::default(),
        })
    }

    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(crate) fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.subscribe()
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    pub(crate) fn facts(&self) -> Facts {
        self.lock_facts().clone()
    }

    /// What is known of the server while it is connected.
    pub(crate) fn report(&self) -> Option<Report> {
        self.current()?.report()
    }

    /// Its process, while it has one.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        self.current()?.process().await
    }

    /// What answers calls, once it was connected or is to be signed in to.
    pub(crate) fn service(self: &Arc<Self>) -> Option<Arc<dyn Service>> {
        let upstream = self.current()?;
        Some(match self.sign_in(&upstream) {
            Some(sign_in) => Arc::new(sign_in),
            None => Arc::new(upstream),
        })
    }

    /// The tool to sign in with, as long as there is nothing else.
    fn sign_in(self: &Arc<Self>, upstream: &Upstream) -> Option<SignIn> {
        let state = upstream.status().borrow().state;
        let is_it = state == State::NeedsAuth && upstream.invites() && !self.is_known();
        let sign_in = || SignIn::new(&Arc::downgrade(self), upstream.clone());
        is_it.then(sign_in)?
    }

    /// Connects, unless it is connected. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// Why it cannot be connected.
    pub(crate) async fn connect(self: &Arc<Self>) -> Result<(), String> {
        let began = Instant::now();
        let (upstream, generation) = self.prepared().await?;
        let connected = upstream.connect().await;
        if connected.is_ok() {
            self.lock_facts().connected_in = Some(began.elapsed());
        }
        self.mirror(generation);
        connected.map_err(|error| error.to_string())
    }

    /// The same for a caller, who is asked to sign in if that is what it takes.
    ///
    /// # Errors
    /// Why it cannot be connected.
    pub(super) async fn connect_for(self: &Arc<Self>, events: &EventSender) -> Result<(), String> {
        let (upstream, generation) = self.prepared().await?;
        let connected = upstream.connect_for(events).await;
        self.mirror(generation);
        connected.map_err(|error| error.to_string())
    }

    /// Ends the connection. What it offered is no longer offered.
    pub(crate) async fn disconnect(&self) {
        std::mem::take(&mut *self.lock_wanted()).cancel();
        // Whoever kept it connected lets go first.
        drop(self.keeping.lock().await);
        self.end().await;
        self.catalogue.send_replace(Arc::new(nothing()));
        self.known.store(true, Ordering::Release);
        let status = Status::new(State::Pending, Some("disconnected".to_owned()));
        self.status.send_replace(status);
    }

    /// Ends the connection and makes a new one. What it offers stays in sight meanwhile.
    ///
    /// # Errors
    /// Why it cannot be connected.
    pub(crate) async fn reconnect(self: &Arc<Self>) -> Result<(), String> {
        self.end().await;
        self.status.send_replace(Status::new(State::Pending, None));
        self.connect().await
    }

    /// Connects; if it `restarts`, again whenever the connection is lost. Ends when people
    /// disconnect it.
    pub(super) async fn keep_connected(self: &Arc<Self>, restarts: bool) {
        let Ok(_keeping) = self.keeping.try_lock() else {
            return;
        };
        let wanted = self.lock_wanted().clone();
        let keeping = async {
            let mut status = self.status();
            let mut pause = PAUSE;
            loop {
                let began = Instant::now();
                // A failure is its status.
                drop(self.connect().await);
                if !restarts {
                    return;
                }
                let lost =
                    |status: &Status| matches!(status.state, State::Failed | State::NeedsAuth);
                let is_failed = match status.wait_for(lost).await {
                    Ok(status) => status.state == State::Failed,
                    Err(_) => return,
                };
                if !is_failed {
                    // Without credentials, another attempt ends like this one: somebody else makes it.
                    let made =
                        |status: &Status| matches!(status.state, State::Connected | State::Failed);
                    if status.wait_for(made).await.is_err() {
                        return;
                    }
                    continue;
                }
                if began.elapsed() >= LASTING {
                    pause = PAUSE;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        };
        wanted.run_until_cancelled(keeping).await;
    }

    /// The server, not connected yet perhaps.
    async fn prepared(self: &Arc<Self>) -> Result<(Upstream, u64), String> {
        let _preparing = self.preparing.lock().await;
        let known = {
            let current = self.lock_current();
            let upstream = current.upstream.clone();
            upstream.map(|upstream| (upstream, current.generation))
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mut definition = (self.prepare)().await.inspect_err(|reason| {
            self.set_status(Status::new(State::Failed, Some(reason.clone())));
        })?;
        definition.asks = self.asks.clone();
        let upstream = Upstream::new(definition);
        let generation = {
            let mut current = self.lock_current();
            current.upstream = Some(upstream.clone());
            current.generation
        };
        let (status, catalogue) = (upstream.status(), upstream.catalogue());
        let following = follow(Arc::downgrade(self), generation, status, catalogue);
        self.tasks.spawn(following);
        Ok((upstream, generation))
    }

    async fn end(&self) {
        let upstream = {
            let mut current = self.lock_current();
            current.generation += 1;
            current.upstream.take()
        };
        if let Some(upstream) = upstream {
            upstream.disconnect().await;
        }
    }

    /// Takes over how the server is doing and, while it is connected, what it offers; unless it is
    /// another one by now.
    fn mirror(self: &Arc<Self>, generation: u64) {
        let current = self.lock_current();
        let Some(upstream) = &current.upstream else {
            return;
        };
        if current.generation != generation {
            return;
        }
        let status = upstream.status().borrow().clone();
        match status.state {
            State::Connected => {
                if let Some(report) = upstream.report() {
                    self.lock_facts().revision = Some(report.facts.revision.as_str().to_owned());
                }
                self.known.store(true, Ordering::Release);
                self.offer(Arc::clone(&upstream.catalogue().borrow()));
            }
            State::NeedsAuth | State::Failed if !self.is_known() => {
                let sign_in = self.sign_in(upstream);
                self.offer(sign_in.map_or_else(|| Arc::new(nothing()), |one| one.offer()));
            }
            _ => {}
        }
        self.set_status(status);
    }

    fn offer(&self, catalogue: Arc<Catalogue>) {
        self.catalogue.send_if_modified(|known| {
            let differs = catalogue.differs_from(known);
            if differs {
                *known = catalogue;
            }
            differs
        });
    }

    fn set_status(&self, status: Status) {
        if matches!(status.state, State::Failed | State::NeedsAuth)
            && let Some(reason) = &status.reason
        {
            self.lock_facts().last_error = Some((status.since, reason.clone()));
        }
        self.status.send_if_modified(|known| {
            let differs = *known != status;
            if differs {
                *known = status;
            }
            differs
        });
    }

    fn current(&self) -> Option<Upstream> {
        self.lock_current().upstream.clone()
    }

    fn lock_current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_wanted(&self) -> MutexGuard<'_, CancellationToken> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes over every change, for as long as both sides are there.
async fn follow(
    connection: Weak<Connection>,
    generation: u64,
    mut status: watch::Receiver<Status>,
    mut catalogue: watch::Receiver<Arc<Catalogue>>,
) {
    loop {
        let changed = tokio::select! {
            changed = status.changed() => changed,
            changed = catalogue.changed() => changed,
        };
        match (changed, connection.upgrade()) {
            (Ok(()), Some(connection)) => connection.mirror(generation),
            _ => return,
        }
    }
}
