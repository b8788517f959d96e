//! From a definition to a connection: which era does the server speak (TRANSLATION §3)?

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp::messages::InitializeParams;
use plexus_mcp::{Era, Revision, code, method};
use plexus_wire::{Object, Raw, RpcError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::auth::AuthError;
use crate::chain::{chain, with_last_words};
use crate::child::{Program, StartError};
use crate::definition::{Definition, HttpTarget, Target};
use crate::http::{HttpClient, HttpClientError, HttpClientOptions};
use crate::link::{Headers, HttpLink, Link, LinkError, QUEUE, SseLink, StdioLink, Style};
use crate::rpc::{Board, Rpc, RpcFailure, Traits, Update};
use crate::server_facts::{Discovered, ServerFacts};
use crate::stamp;

/// How long the stream for what belongs to no request may take to open before we go on without it.
const LISTEN: Duration = Duration::from_secs(2);

/// Why a server is not connected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Its program cannot be started.
    #[error("{}", chain(.0.as_ref()))]
    Start(Arc<StartError>),
    /// We cannot speak HTTP here at all.
    #[error("{}", chain(.0.as_ref()))]
    Http(Arc<HttpClientError>),
    /// The way to it failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Nobody signed in.
    #[error(transparent)]
    SignIn(AuthError),
    /// It answered the greeting with an error.
    #[error("the server refused {method}: {message} ({code})")]
    Refused {
        /// The greeting.
        method: &'static str,
        /// Its error's code.
        code: i64,
        /// Its error's message.
        message: String,
    },
    /// It speaks no version that we speak.
    #[error("the server speaks only {}, and Plexus none of these", .0.join(", "))]
    NoCommonVersion(Vec<String>),
    /// It took too long.
    #[error("{}", with_last_words(&format!("the server did not answer {method} in time"), .last_words))]
    Timeout {
        /// The greeting.
        method: &'static str,
        /// What its process last said on its standard error.
        last_words: Vec<String>,
    },
}

impl ConnectError {
    /// Whether only a stateless server would say this.
    fn is_of_a_stateless_server(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if is_modern(*code))
    }

    /// Whether the greeting may have been of the wrong era.
    pub(crate) fn may_be_of_the_era(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NoCommonVersion(_) | Self::Timeout { .. } => true,
            Self::Link(error) => !matches!(
                error,
                LinkError::Unreachable(_) | LinkError::NeedsAuth { .. }
            ),
            Self::Start(_) | Self::Http(_) | Self::SignIn(_) => false,
        }
    }

    /// Whether it would help if a user signed in.
    pub(crate) fn wants_user(&self) -> bool {
        matches!(self, Self::Link(LinkError::NeedsAuth { wants_user, .. }) if *wants_user)
    }
}

/// A server that was greeted.
pub(crate) struct Connected {
    pub(crate) rpc: Rpc,
    pub(crate) facts: ServerFacts,
    /// What belongs to no request.
    pub(crate) stray: mpsc::Receiver<Update>,
    /// What was odd about the greeting.
    pub(crate) quirks: Vec<Quirk>,
}

/// Something about how a server takes its greeting that is worth knowing.
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
    let connecting = Connecting { definition, tasks };
    // Boxed, as they are large, and part of whatever waits for a server.
    match &definition.target {
        Target::Stdio(program) => Box::pin(connecting.stdio(program)).await,
        Target::Http(target) => Box::pin(connecting.http(target)).await,
        Target::Sse(target) => connecting.sse(&http_client(definition)?, target).await,
    }
}

struct Connecting<'a> {
    definition: &'a Arc<Definition>,
    tasks: &'a TaskTracker,
}

/// What a probe found out.
enum Probed {
    Stateless(Box<ServerFacts>),
    Handshake,
}

impl Connecting<'_> {
    async fn stdio(&self, program: &Program) -> Result<Connected, ConnectError> {
        let session = self.start(program)?;
        if self.definition.era == Some(Era::Handshake) {
            let facts = self.initialize(&session.rpc).await;
            return session.finish(facts, Vec::new()).await;
        }
        let rpc = session.rpc.clone();
        let mut probe = pin!(discover(&rpc, self.definition));
        let mut quirks = Vec::new();
        match timeout(self.definition.timeouts.probe, &mut probe).await {
            Ok(probed) => match self.conclude(probed, &mut quirks) {
                Ok(Probed::Stateless(facts)) => Ok(session.greeted(*facts, quirks)),
                Ok(Probed::Handshake) => {
                    let facts = self.initialize(&rpc).await;
                    session.finish(facts, quirks).await
                }
                // Some old servers end when they are sent what they do not know.
                Err(ConnectError::Link(_)) if self.definition.era.is_none() => {
                    self.again(program, session, quirks).await
                }
                Err(error) => session.finish(Err(error), quirks).await,
            },
            Err(_elapsed) if self.definition.era == Some(Era::Stateless) => {
                session.finish(Err(late(method::DISCOVER)), quirks).await
            }
            Err(_elapsed) => {
                quirks.push(Quirk::SilentToDiscover);
                match self.both(&rpc, probe, &mut quirks).await {
                    Err(ConnectError::Link(_)) => self.again(program, session, quirks).await,
                    facts => session.finish(facts, quirks).await,
                }
            }
        }
    }

    /// Starts a server again that ended when it was sent what it does not know, and greets it in the
    /// old way first.
    async fn again(
        &self,
        program: &Program,
        ended: Session,
        mut quirks: Vec<Quirk>,
    ) -> Result<Connected, ConnectError> {
        quirks.push(Quirk::EndsOnDiscover);
        ended.rpc.close().await;
        let session = self.start(program)?;
        let facts = self.initialize(&session.rpc).await;
        session.finish(facts, quirks).await
    }

    /// Greets a server that has not answered the newer greeting in the older way as well: it may be
    /// old, or only slow to start. Whichever it answers, it is.
    async fn both(
        &self,
        rpc: &Rpc,
        mut probe: Pin<&mut impl Future<Output = Result<Discovered, RpcFailure>>>,
        quirks: &mut Vec<Quirk>,
    ) -> Result<ServerFacts, ConnectError> {
        let mut greeting = pin!(self.initialize(rpc));
        let mut probing = true;
        let refusal = loop {
            tokio::select! {
                probed = &mut probe, if probing => {
                    if let Probed::Stateless(facts) = self.conclude(probed, quirks)? {
                        quirks.retain(|quirk| *quirk != Quirk::SilentToDiscover);
                        return Ok(*facts);
                    }
                    probing = false;
                }
                greeted = &mut greeting => match greeted {
                    Err(error) if probing && error.is_of_a_stateless_server() => break error,
                    greeted => return greeted,
                },
            }
        };
        match timeout(self.definition.timeouts.connect, probe).await {
            Ok(probed) => match self.conclude(probed, quirks)? {
                Probed::Stateless(facts) => Ok(*facts),
                Probed::Handshake => Err(refusal),
            },
            Err(_elapsed) => Err(refusal),
        }
    }

    /// What the answer to a probe says.
    fn conclude(
        &self,
        probed: Result<Discovered, RpcFailure>,
        quirks: &mut Vec<Quirk>,
    ) -> Result<Probed, ConnectError> {
        match probed {
            Ok(discovered) => chosen(discovered),
            Err(RpcFailure::Error(error)) => {
                self.refused(error, quirks)?;
                Ok(Probed::Handshake)
            }
            Err(RpcFailure::Link(error)) => Err(error.into()),
        }
    }

    async fn http(&self, target: &HttpTarget) -> Result<Connected, ConnectError> {
        let client = http_client(self.definition)?;
        let mut quirks = Vec::new();
        if self.definition.era != Some(Era::Handshake) {
            let session = self.open(&client, target, Style::Stateless);
            let probe = discover(&session.rpc, self.definition);
            let probed = timeout(self.definition.timeouts.connect, probe).await;
            let probed = match probed {
                Ok(Err(RpcFailure::Link(LinkError::Http {
                    status: 400..=499, ..
                }))) if self.definition.era.is_none() => Probed::Handshake,
                Ok(probed) => self.conclude(probed, &mut quirks)?,
                Err(_elapsed) => return Err(late(method::DISCOVER)),
            };
            if let Probed::Stateless(facts) = probed {
                return Ok(session.greeted(*facts, quirks));
            }
            session.rpc.close().await;
        }
        let session = self.open(&client, target, Style::Handshake);
        let facts = self.initialize(&session.rpc).await;
        // Only an endpoint that knows no POST can be the older transport (SSE24-08).
        let refused = matches!(
            &facts,
            Err(ConnectError::Link(LinkError::Http {
                status: 400 | 404 | 405,
                ..
            }))
        );
        if refused && let Ok(mut connected) = self.sse(&client, target).await {
            session.rpc.close().await;
            connected.quirks.push(Quirk::SseOnly);
            return Ok(connected);
        }
        session.finish(facts, quirks).await
    }

    async fn sse(
        &self,
        client: &HttpClient,
        target: &HttpTarget,
    ) -> Result<Connected, ConnectError> {
        let (inbox, stray) = self.board();
        let link = SseLink::open(
            client.clone(),
            target.clone(),
            self.definition.limits,
            Arc::clone(&inbox),
            self.definition.timeouts.connect,
        )
        .await?;
        let session = self.attach(Link::Sse(link), inbox, stray);
        let facts = self.initialize(&session.rpc).await;
        session.finish(facts, Vec::new()).await
    }

    fn start(&self, program: &Program) -> Result<Session, ConnectError> {
        let (inbox, stray) = self.board();
        let link = StdioLink::start(program, self.definition.limits, Arc::clone(&inbox))
            .map_err(|error| ConnectError::Start(Arc::new(error)))?;
        Ok(self.attach(Link::Stdio(link), inbox, stray))
    }

    fn open(&self, client: &HttpClient, target: &HttpTarget, style: Style) -> Session {
        let (inbox, stray) = self.board();
        let link = HttpLink::new(
            client.clone(),
            target.clone(),
            style,
            self.definition.limits,
            Arc::clone(&inbox),
        );
        self.attach(Link::Http(link), inbox, stray)
    }

    /// Where a way to the server puts what comes, and where what belongs to no request comes out.
    fn board(&self) -> (Arc<Board>, mpsc::Receiver<Update>) {
        let (stray, strays) = mpsc::channel(QUEUE);
        (
            Arc::new(Board::new(stray, self.definition.asks.clone())),
            strays,
        )
    }

    fn attach(&self, link: Link, board: Arc<Board>, stray: mpsc::Receiver<Update>) -> Session {
        let rpc = Rpc::start(self.tasks, link, board);
        Session { rpc, stray }
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
        let answer = timeout(self.definition.timeouts.connect, greeting).await;
        let result = match answer.map_err(|_elapsed| late(method::INITIALIZE))? {
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
        // Posts overtake one another: what follows must find the server ready, and listened to.
        rpc.notify_and_wait(method::INITIALIZED).await;
        if let Link::Http(link) = rpc.link() {
            let (listening, listened) = oneshot::channel();
            link.listen(listening);
            drop(timeout(LISTEN, listened).await);
        }
        Ok(facts)
    }

    /// An error in answer to `server/discover` means an old server, unless it is one that only a
    /// new one gives (VER26-16, VER26-17, VER26-19).
    fn refused(&self, error: RpcError, quirks: &mut Vec<Quirk>) -> Result<(), ConnectError> {
        if is_modern(error.code) {
            let supported = supported(error.data.as_ref());
            let handshake = |name: &String| {
                name.parse::<Revision>()
                    .is_ok_and(|revision| revision.era() == Era::Handshake)
            };
            if self.definition.era.is_none() && supported.iter().any(handshake) {
                return Ok(());
            }
            if !supported.is_empty() {
                return Err(ConnectError::NoCommonVersion(supported));
            }
        }
        if is_modern(error.code) || self.definition.era == Some(Era::Stateless) {
            let (code, message) = (error.code, error.message);
            return Err(ConnectError::Refused {
                method: method::DISCOVER,
                code,
                message,
            });
        }
        quirks.push(Quirk::RefusesDiscover { code: error.code });
        Ok(())
    }
}

/// A connection that is being greeted.
struct Session {
    rpc: Rpc,
    stray: mpsc::Receiver<Update>,
}

impl Session {
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

/// Asks with the newest stateless revision; on an error that names others, once more with one of
/// those.
async fn discover(rpc: &Rpc, definition: &Definition) -> Result<Discovered, RpcFailure> {
    let mut answer = ask(rpc, definition, Revision::NEWEST_STATELESS).await;
    if let Err(RpcFailure::Error(error)) = &answer
        && error.code == code::UNSUPPORTED_PROTOCOL_VERSION
    {
        let named = supported(error.data.as_ref());
        let stateless = |revision: &Revision| revision.era() == Era::Stateless;
        let other = named
            .iter()
            .filter_map(|name| name.parse().ok())
            .find(stateless);
        if let Some(other) = other {
            answer = ask(rpc, definition, other).await;
        }
    }
    // A lenient old server that answers anything with anything is an old server.
    let odd = || RpcError {
        code: code::METHOD_NOT_FOUND,
        message: "the answer is no DiscoverResult".to_owned(),
        data: None,
    };
    ServerFacts::from_discover(&answer?).ok_or_else(|| RpcFailure::Error(odd()))
}

async fn ask(rpc: &Rpc, definition: &Definition, revision: Revision) -> Result<Raw, RpcFailure> {
    let own = stamp::StatelessMeta {
        revision,
        capabilities: &definition.capabilities,
        client_info: &definition.client_info.to_raw(),
        log_level: None,
    };
    let nothing = Object::new();
    let params = stamp::stateless(&nothing, None, own).to_raw();
    let headers = stamp::mirrored(revision, method::DISCOVER, &nothing, None);
    let traits = Traits {
        uncancellable: true,
        ..Traits::default()
    };
    rpc.request(method::DISCOVER, Some(params), headers, traits)
        .await?
        .answer()
        .await
}

/// The newest revision that both sides speak: stateless if there is one, else by handshake.
fn chosen(discovered: Discovered) -> Result<Probed, ConnectError> {
    let mut common: Vec<Revision> = discovered
        .versions
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    common.sort_unstable();
    match common.last() {
        Some(newest) if newest.era() == Era::Stateless => {
            let newest = *newest;
            Ok(Probed::Stateless(Box::new(discovered.speaking(newest))))
        }
        Some(_) => Ok(Probed::Handshake),
        None => Err(ConnectError::NoCommonVersion(discovered.versions)),
    }
}

fn supported(data: Option<&Raw>) -> Vec<String> {
    let object = data.and_then(|data| Object::parse(data).ok());
    object
        .and_then(|object| object.get("supported")?.decode().ok())
        .unwrap_or_default()
}

fn late(method: &'static str) -> ConnectError {
    ConnectError::Timeout {
        method,
        last_words: Vec::new(),
    }
}

/// Codes that only a server of the stateless era gives (VER26-16).
fn is_modern(code: i64) -> bool {
    matches!(
        code,
        code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION
    )
}
