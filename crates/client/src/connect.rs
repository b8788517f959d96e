//! Connects to a server: opens the transport, finds out which era the server speaks, and does its
//! handshake (TRANSLATION §3).

mod discover;
mod error;
mod starts;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::Boxed;
use plexus_mcp_protocol::messages::InitializeParams;
use plexus_mcp_protocol::{Era, Revision, method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use self::discover::{Probed, discover};
pub use self::error::ConnectError;
pub(crate) use self::starts::Starts;
use crate::child::Program;
use crate::definition::{Definition, HttpTarget, Target};
use crate::http::{HttpClient, HttpClientOptions};
use crate::link::{Headers, HttpLink, Link, LinkError, MAX_QUEUED_MESSAGES, SseLink, StdioLink};
use crate::rpc::{ConnectionTasks, PendingRequests, Rpc, RpcFailure, Traits, Update};
use crate::server_facts::{Discovered, ServerFacts};
use crate::upstream::StartSlots;

/// How long the stream for messages that belong to no request may take to open. After that, the
/// handshake goes on without it.
const LISTEN_STREAM_OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// If both `server/discover` and `initialize` were sent: how long the second answer is still waited for
/// after the first one.
const SECOND_ANSWER_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// The same over HTTP, if the first answer accepts `initialize`. It is shorter: some servers of the
/// handshake era never answer `server/discover`.
const LATE_DISCOVER_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// A server after its handshake.
pub(crate) struct Connected {
    pub(crate) rpc: Rpc,
    pub(crate) facts: ServerFacts,
    /// Notifications and requests that belong to no in-flight request.
    pub(crate) stray: mpsc::Receiver<Update>,
    /// Deviations from the specification during the handshake.
    pub(crate) quirks: Vec<Quirk>,
}

/// A deviation of a server during the handshake, for diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// It does not answer `server/discover` at all.
    SilentToDiscover,
    /// It ends when it is sent `server/discover`.
    EndsOnDiscover,
    /// It answers `server/discover` with this error.
    RefusesDiscover {
        /// The code.
        code: i64,
    },
    /// It speaks HTTP+SSE only.
    SseOnly,
}

/// Connects the server of `definition`, and does its handshake. Records the processes that it starts
/// in `starts`; none is started once `slots` are closed.
pub(crate) async fn connect(
    definition: &Arc<Definition>,
    tasks: &ConnectionTasks,
    slots: &StartSlots,
    starts: &Starts,
) -> Result<Connected, ConnectError> {
    let deadline = Instant::now() + definition.timeouts.connect;
    let connecting = ConnectAttempt {
        definition,
        tasks,
        slots,
        starts,
        deadline,
    };
    match &definition.target {
        Target::Stdio(program) => connecting.stdio(program).await,
        Target::Http(target) => connecting.http(target).await,
        Target::Sse(target) => connecting.sse(&http_client(definition)?, target).await,
    }
}

struct ConnectAttempt<'a> {
    definition: &'a Arc<Definition>,
    tasks: &'a ConnectionTasks,
    slots: &'a StartSlots,
    starts: &'a Starts,
    /// The deadline for the handshake.
    deadline: Instant,
}

impl ConnectAttempt<'_> {
    async fn stdio(&self, program: &Program) -> Result<Connected, ConnectError> {
        let connection = self.start(program)?;
        if self.definition.era == Some(Era::Handshake) {
            let facts = self.initialize(&connection.rpc).await;
            return connection.finish(facts, Vec::new()).await;
        }
        let rpc = connection.rpc.clone();
        let mut probe = pin!(discover(&rpc, self.definition));
        let mut quirks = Vec::new();
        match timeout_at(self.probe_end(), &mut probe).await {
            Ok(probed) => match self.conclude(probed, &mut quirks) {
                Ok(Probed::Stateless(facts)) => Ok(connection.connected(*facts, quirks)),
                Ok(Probed::Handshake) => {
                    let facts = self.initialize(&rpc).await;
                    connection.finish(facts, quirks).await
                }
                Err(error @ ConnectError::Link(LinkError::TooLarge { .. })) => {
                    connection.finish(Err(error), quirks).await
                }
                // Some old servers exit when they receive an unknown method.
                Err(ConnectError::Link(_)) if self.definition.era.is_none() => {
                    self.restart_with_initialize(program, connection, quirks)
                        .await
                }
                Err(error) => connection.finish(Err(error), quirks).await,
            },
            Err(_elapsed) if self.definition.era == Some(Era::Stateless) => {
                connection
                    .finish(Err(self.timeout_error(method::DISCOVER)), quirks)
                    .await
            }
            Err(_elapsed) => {
                quirks.push(Quirk::SilentToDiscover);
                match self
                    .initialize_while_probing(&rpc, probe, &mut quirks)
                    .await
                {
                    Err(ConnectError::Link(_)) => {
                        self.restart_with_initialize(program, connection, quirks)
                            .await
                    }
                    facts => connection.finish(facts, quirks).await,
                }
            }
        }
    }

    /// Restarts the server, which exited after `server/discover`, and sends only `initialize`.
    async fn restart_with_initialize(
        &self,
        program: &Program,
        ended: OpenConnection,
        mut quirks: Vec<Quirk>,
    ) -> Result<Connected, ConnectError> {
        quirks.push(Quirk::EndsOnDiscover);
        ended.rpc.close().await;
        let restarted = ConnectAttempt {
            deadline: Instant::now() + self.definition.timeouts.connect,
            ..*self
        };
        let connection = restarted.start(program)?;
        let facts = restarted.initialize(&connection.rpc).await;
        connection.finish(facts, quirks).await
    }

    /// Sends `initialize` to a server that has not answered `server/discover` in time: it may be of
    /// the handshake era, or only slow to start. If it refuses, a late answer to `server/discover`
    /// decides.
    ///
    /// If a server accepts both, the handshake era is used over stdio, because some servers continue
    /// in that era. Over HTTP each request stands for itself, so the newer era is used.
    async fn initialize_while_probing(
        &self,
        rpc: &Rpc,
        mut probe: Pin<&mut impl Future<Output = Result<Discovered, RpcFailure>>>,
        quirks: &mut Vec<Quirk>,
    ) -> Result<ServerFacts, ConnectError> {
        let mut handshake = pin!(self.initialize(rpc));
        let is_http = matches!(rpc.link(), Link::Http(_));
        let refusal = tokio::select! {
            // A server answers in order: when both answers are there, this one came first.
            biased;
            probed = &mut probe => {
                let probed = self.conclude(probed, quirks)?;
                quirks.retain(|quirk| *quirk != Quirk::SilentToDiscover);
                let Probed::Stateless(facts) = probed else {
                    return handshake.await;
                };
                if is_http {
                    return Ok(*facts);
                }
                return match timeout_at(self.grace_period_end(), handshake).await {
                    Ok(Ok(facts)) => Ok(facts),
                    Ok(Err(_)) | Err(_) => Ok(*facts),
                };
            }
            initialized = &mut handshake => match initialized {
                Err(error) if error.may_be_wrong_era() => error,
                Ok(initialized) if is_http => {
                    let late = self.late_discovered(probe, quirks).await;
                    return Ok(late.map_or(initialized, |discovered| *discovered));
                }
                initialized => return initialized,
            },
        };
        // The server may refuse because it is already locked to the stateless era; its answer to
        // `server/discover` may still arrive.
        let until = if refusal.is_of_a_stateless_server() {
            self.deadline
        } else {
            self.grace_period_end()
        };
        let Ok(probed) = timeout_at(until, probe).await else {
            return Err(refusal);
        };
        match self.conclude(probed, quirks)? {
            Probed::Stateless(facts) => {
                quirks.retain(|quirk| *quirk != Quirk::SilentToDiscover);
                Ok(*facts)
            }
            Probed::Handshake => Err(refusal),
        }
    }

    /// Waits a little longer for the answer to `server/discover` of an HTTP server that has accepted
    /// `initialize`. `None` if it does not speak the stateless era.
    async fn late_discovered(
        &self,
        probe: impl Future<Output = Result<Discovered, RpcFailure>>,
        quirks: &mut Vec<Quirk>,
    ) -> Option<Box<ServerFacts>> {
        let until = self
            .deadline
            .min(Instant::now() + LATE_DISCOVER_GRACE_PERIOD);
        let probed = timeout_at(until, probe).await.ok()?;
        quirks.retain(|quirk| *quirk != Quirk::SilentToDiscover);
        match self.conclude(probed, quirks) {
            Ok(Probed::Stateless(facts)) => Some(facts),
            Ok(Probed::Handshake) | Err(_) => None,
        }
    }

    /// How long the answer to `server/discover` is waited for before `initialize` is sent as well.
    fn probe_end(&self) -> Instant {
        if self.definition.era == Some(Era::Stateless) {
            self.deadline
        } else {
            self.deadline
                .min(Instant::now() + self.definition.timeouts.probe)
        }
    }

    fn grace_period_end(&self) -> Instant {
        self.deadline
            .min(Instant::now() + SECOND_ANSWER_GRACE_PERIOD)
    }

    async fn http(&self, target: &HttpTarget) -> Result<Connected, ConnectError> {
        let client = http_client(self.definition)?;
        let mut quirks = Vec::new();
        if self.definition.era != Some(Era::Handshake) {
            let connection = self.open(&client, target, Era::Stateless);
            let rpc = connection.rpc.clone();
            let mut probe = pin!(discover(&rpc, self.definition));
            match timeout_at(self.probe_end(), &mut probe).await {
                // Some old servers fail on an unknown method. 502 to 504 are errors of a proxy in
                // front of the server, and say nothing about it.
                Ok(Err(RpcFailure::Link(LinkError::Http {
                    status: 400..=501, ..
                }))) if self.definition.era.is_none() => {}
                Ok(probed) => {
                    if let Probed::Stateless(facts) = self.conclude(probed, &mut quirks)? {
                        return Ok(connection.connected(*facts, quirks));
                    }
                }
                Err(_elapsed) if self.definition.era == Some(Era::Stateless) => {
                    return Err(self.timeout_error(method::DISCOVER));
                }
                Err(_elapsed) => {
                    quirks.push(Quirk::SilentToDiscover);
                    let handshake = self.open(&client, target, Era::Handshake);
                    let facts = self
                        .initialize_while_probing(&handshake.rpc, probe, &mut quirks)
                        .await;
                    let is_stateless = |facts: &ServerFacts| facts.revision.era() == Era::Stateless;
                    let (used, unused) = if facts.as_ref().is_ok_and(is_stateless) {
                        (connection, handshake)
                    } else {
                        (handshake, connection)
                    };
                    unused.rpc.close().await;
                    return used.finish(facts, quirks).await;
                }
            }
            connection.rpc.close().await;
        }
        let connection = self.open(&client, target, Era::Handshake);
        let facts = self.initialize(&connection.rpc).await;
        // Only an endpoint that refuses POST can be HTTP+SSE (SSE24-08).
        let refused = matches!(
            &facts,
            Err(ConnectError::Link(LinkError::Http {
                status: 400 | 404 | 405,
                ..
            }))
        );
        if refused && let Ok(mut connected) = self.sse(&client, target).await {
            connection.rpc.close().await;
            connected.quirks.push(Quirk::SseOnly);
            return Ok(connected);
        }
        connection.finish(facts, quirks).await
    }

    async fn sse(
        &self,
        client: &HttpClient,
        target: &HttpTarget,
    ) -> Result<Connected, ConnectError> {
        let (inbox, stray) = pending_requests();
        let (link, work) = SseLink::open(
            client.clone(),
            target.clone(),
            self.definition.limits,
            Arc::clone(&inbox),
            self.definition.timeouts.connect,
        )
        .await?;
        let connection = self.attach(Link::Sse(link), work, inbox, stray);
        let facts = self.initialize(&connection.rpc).await;
        connection.finish(facts, Vec::new()).await
    }

    fn start(&self, program: &Program) -> Result<OpenConnection, ConnectError> {
        if self.slots.is_closed() {
            return Err(ConnectError::shutting_down());
        }
        let (inbox, stray) = pending_requests();
        let started = StdioLink::start(program, self.definition.limits, Arc::clone(&inbox));
        let (link, work) = started.map_err(|error| ConnectError::Start(Arc::new(error)))?;
        self.starts.add();
        Ok(self.attach(Link::Stdio(link), work, inbox, stray))
    }

    fn open(&self, client: &HttpClient, target: &HttpTarget, era: Era) -> OpenConnection {
        let (inbox, stray) = pending_requests();
        let (link, work) = HttpLink::new(
            client.clone(),
            target.clone(),
            era,
            self.definition.limits,
            Arc::clone(&inbox),
        );
        self.attach(Link::Http(link), work, inbox, stray)
    }

    fn attach(
        &self,
        link: Link,
        work: Boxed<()>,
        pending_requests: Arc<PendingRequests>,
        stray: mpsc::Receiver<Update>,
    ) -> OpenConnection {
        let rpc = Rpc::start(self.tasks, link, work, pending_requests);
        OpenConnection { rpc, stray }
    }

    fn timeout_error(&self, method: &'static str) -> ConnectError {
        ConnectError::Timeout {
            method,
            within: self.definition.timeouts.connect,
            stderr_tail: Vec::new(),
        }
    }

    /// The handshake (LIFE-01, LIFE-03, LIFE-06).
    async fn initialize(&self, rpc: &Rpc) -> Result<ServerFacts, ConnectError> {
        let params = InitializeParams {
            protocol_version: Revision::NEWEST_HANDSHAKE.as_str().to_owned(),
            capabilities: self.definition.capabilities.clone(),
            client_info: self.definition.client_info.clone(),
        };
        let traits = Traits {
            uncancellable: true,
            ..Traits::default()
        };
        let exchange = async {
            let request = rpc.request(
                method::INITIALIZE,
                Some(params.to_raw()),
                Headers::new(),
                traits,
            );
            request.await?.answer().await
        };
        let answer = timeout_at(self.deadline, exchange).await;
        let result = match answer.map_err(|_elapsed| self.timeout_error(method::INITIALIZE))? {
            Ok(result) => result,
            Err(RpcFailure::Link(error)) => return Err(error.into()),
            Err(RpcFailure::Error(error)) => {
                return Err(ConnectError::Refused {
                    method: method::INITIALIZE,
                    code: error.code,
                    message: error.message,
                });
            }
        };
        let facts = ServerFacts::from_initialize(&result)?;
        let revision = facts.revision;
        if let Link::Http(link) = rpc.link() {
            link.agree(revision);
        }
        // POST requests can overtake one another, so wait: later requests must not reach the server
        // before `initialized`, and its notifications need an open stream.
        rpc.notify_and_wait(method::INITIALIZED).await;
        if let Link::Http(link) = rpc.link() {
            let (listening, listened) = oneshot::channel();
            link.listen(listening);
            drop(timeout(LISTEN_STREAM_OPEN_TIMEOUT, listened).await);
        }
        Ok(facts)
    }
}

/// The table of in-flight requests of a new connection, and the receiver of messages that belong to
/// none of them.
fn pending_requests() -> (Arc<PendingRequests>, mpsc::Receiver<Update>) {
    let (stray, strays) = mpsc::channel(MAX_QUEUED_MESSAGES);
    (Arc::new(PendingRequests::new(stray)), strays)
}

/// A connection before or during its handshake.
struct OpenConnection {
    rpc: Rpc,
    stray: mpsc::Receiver<Update>,
}

impl OpenConnection {
    fn connected(self, facts: ServerFacts, quirks: Vec<Quirk>) -> Connected {
        Connected {
            rpc: self.rpc,
            facts,
            stray: self.stray,
            quirks,
        }
    }

    async fn finish(
        self,
        facts: Result<ServerFacts, ConnectError>,
        quirks: Vec<Quirk>,
    ) -> Result<Connected, ConnectError> {
        let mut error = match facts {
            Ok(facts) => return Ok(self.connected(facts, quirks)),
            Err(error) => error,
        };
        if let ConnectError::Timeout { stderr_tail, .. } = &mut error {
            *stderr_tail = self.rpc.link().stderr_tail();
        }
        self.rpc.close().await;
        Err(error)
    }
}

fn http_client(definition: &Definition) -> Result<HttpClient, ConnectError> {
    let max = definition.limits.max_bytes;
    let options = HttpClientOptions {
        max_body: max,
        max_event: max,
        ..HttpClientOptions::default()
    };
    HttpClient::new(&options).map_err(|error| ConnectError::Http(Arc::new(error)))
}
