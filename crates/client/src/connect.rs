//! Connects to a server: opens the transport, finds out which era the server speaks, and does its
//! handshake (TRANSLATION §3).

mod discover;
mod error;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::Boxed;
use plexus_mcp_protocol::messages::InitializeParams;
use plexus_mcp_protocol::{Era, Revision, method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use self::discover::{Probed, discover};
pub use self::error::ConnectError;
use crate::child::Program;
use crate::definition::{Definition, HttpTarget, Target};
use crate::http::{HttpClient, HttpClientOptions};
use crate::link::{Headers, HttpLink, Link, LinkError, MAX_QUEUED_MESSAGES, SseLink, StdioLink};
use crate::rpc::{PendingRequests, Rpc, RpcFailure, Traits, Update};
use crate::server_facts::{Discovered, ServerFacts};

/// How long the stream for messages that belong to no request may take to open. After that, the
/// handshake goes on without it.
const LISTEN_STREAM_OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// If both `server/discover` and `initialize` were sent: how long the second answer is still waited for
/// after the first one.
const SECOND_ANSWER_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// A server that was greeted.
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

/// Greets the server that `definition` names.
pub(crate) async fn connect(
    definition: &Arc<Definition>,
    tasks: &TaskTracker,
) -> Result<Connected, ConnectError> {
    let deadline = Instant::now() + definition.timeouts.connect;
    let connecting = ConnectAttempt {
        definition,
        tasks,
        deadline,
    };
    // Boxed, as they are large, and part of whatever waits for a server.
    match &definition.target {
        Target::Stdio(program) => Box::pin(connecting.stdio(program)).await,
        Target::Http(target) => Box::pin(connecting.http(target)).await,
        Target::Sse(target) => connecting.sse(&http_client(definition)?, target).await,
    }
}

struct ConnectAttempt<'a> {
    definition: &'a Arc<Definition>,
    tasks: &'a TaskTracker,
    /// Until when the server must have been greeted.
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
        let probed_until = if self.definition.era == Some(Era::Stateless) {
            self.deadline
        } else {
            Instant::now() + self.definition.timeouts.probe
        };
        match timeout_at(probed_until, &mut probe).await {
            Ok(probed) => match self.conclude(probed, &mut quirks) {
                Ok(Probed::Stateless(facts)) => Ok(connection.greeted(*facts, quirks)),
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

    /// Restarts a server that exited on `server/discover`, and sends `initialize` only.
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

    /// Greets a server that has not answered the newer greeting in the older way as well: it may be
    /// old, or only slow to start. The answer to `initialize` decides, since it was sent last: servers
    /// of both eras exist that refuse it after `server/discover`, and others that accept it and speak
    /// only the older era from then on.
    async fn initialize_while_probing(
        &self,
        rpc: &Rpc,
        mut probe: Pin<&mut impl Future<Output = Result<Discovered, RpcFailure>>>,
        quirks: &mut Vec<Quirk>,
    ) -> Result<ServerFacts, ConnectError> {
        let mut greeting = pin!(self.initialize(rpc));
        let refusal = tokio::select! {
            // A server answers in order: when both answers are there, this one came first.
            biased;
            probed = &mut probe => {
                let Probed::Stateless(facts) = self.conclude(probed, quirks)? else {
                    return greeting.await;
                };
                quirks.retain(|quirk| *quirk != Quirk::SilentToDiscover);
                return match timeout_at(self.grace_period_end(), greeting).await {
                    Ok(Ok(greeted)) => Ok(greeted),
                    Ok(Err(_)) | Err(_) => Ok(*facts),
                };
            }
            greeted = &mut greeting => match greeted {
                Err(error @ ConnectError::Refused { .. }) => error,
                greeted => return greeted,
            },
        };
        // The error may only say that the server was already spoken to in the newer era, and the answer
        // to that may be on its way.
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

    fn grace_period_end(&self) -> Instant {
        self.deadline
            .min(Instant::now() + SECOND_ANSWER_GRACE_PERIOD)
    }

    async fn http(&self, target: &HttpTarget) -> Result<Connected, ConnectError> {
        let client = http_client(self.definition)?;
        let mut quirks = Vec::new();
        if self.definition.era != Some(Era::Handshake) {
            let connection = self.open(&client, target, Era::Stateless);
            let probe = discover(&connection.rpc, self.definition);
            let probed = timeout_at(self.deadline, probe).await;
            let probed = match probed {
                Ok(Err(RpcFailure::Link(LinkError::Http {
                    status: 400..=499, ..
                }))) if self.definition.era.is_none() => Probed::Handshake,
                Ok(probed) => self.conclude(probed, &mut quirks)?,
                Err(_elapsed) => return Err(self.timeout_error(method::DISCOVER)),
            };
            if let Probed::Stateless(facts) = probed {
                return Ok(connection.greeted(*facts, quirks));
            }
            connection.rpc.close().await;
        }
        let connection = self.open(&client, target, Era::Handshake);
        let facts = self.initialize(&connection.rpc).await;
        // Only an endpoint that knows no POST can be the older transport (SSE24-08).
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
        let (inbox, stray) = pending_requests();
        let started = StdioLink::start(program, self.definition.limits, Arc::clone(&inbox));
        let (link, work) = started.map_err(|error| ConnectError::Start(Arc::new(error)))?;
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
            last_words: Vec::new(),
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
        let greeting = async {
            let request = rpc.request(
                method::INITIALIZE,
                Some(params.to_raw()),
                Headers::new(),
                traits,
            );
            request.await?.answer().await
        };
        let answer = timeout_at(self.deadline, greeting).await;
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

/// A connection that is being greeted.
struct OpenConnection {
    rpc: Rpc,
    stray: mpsc::Receiver<Update>,
}

impl OpenConnection {
    fn greeted(self, facts: ServerFacts, quirks: Vec<Quirk>) -> Connected {
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
            Ok(facts) => return Ok(self.greeted(facts, quirks)),
            Err(error) => error,
        };
        if let ConnectError::Timeout { last_words, .. } = &mut error {
            *last_words = self.rpc.link().last_words();
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
