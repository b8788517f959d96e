//! A small authorization server for tests, with the checks of a real one.
//!
//! It registers clients (RFC 7591), fetches their metadata documents (CIMD), lets its one user sign
//! in with PKCE, issues signed tokens for one resource each (RFC 9068, RFC 8707), binds them to
//! keys on request (RFC 9449), rotates refresh tokens, revokes tokens (RFC 7009) and introspects
//! them (RFC 7662). It exchanges tokens (RFC 8693), accepts assertions for workloads and users (RFC
//! 7523, ID-JAG), and authenticates clients by their keys. A replayed refresh token revokes all
//! tokens issued from it.

mod assertions;
mod bearer;
mod endpoints;
mod register;
mod resource;
mod state;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jsonwebtoken::Header;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use plexus_mcp_oauth::jwt::Claims;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use state::State;

use crate::server::{Received, Reply};

pub use resource::TokenRequirements;
pub use state::Counts;

/// The behaviour of the server.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a habit that a test can change by itself"
)]
pub struct Behaviour {
    /// The lifetime of access tokens, in seconds.
    pub token_life: u64,
    /// Whether clients can register.
    pub registers: bool,
    /// Whether clients must send their application type, as 2026-07-28 requires.
    pub wants_application_type: bool,
    /// Whether a URL can be a client id.
    pub fetches_documents: bool,
    /// Whether DPoP proofs must contain a nonce.
    pub wants_nonce: bool,
    /// Whether the user consents.
    pub agrees: bool,
    /// Preconfigured clients, with their secrets.
    pub clients: Vec<(String, Option<String>)>,
    /// Preconfigured clients that authenticate with a key, and the public key.
    pub keys: Vec<(String, Jwk)>,
    /// The audience of exchanged tokens (RFC 8693).
    pub exchanges: Option<String>,
    /// A trusted issuer of assertions for workloads (RFC 7523), and its key.
    pub vouched_by: Option<(String, Jwk)>,
    /// The supported scopes.
    pub scopes: Vec<String>,
    /// Whether an introspection request about an invalid token is never answered.
    pub ignores_invalid_tokens: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            token_life: 3600,
            registers: true,
            wants_application_type: true,
            fetches_documents: false,
            wants_nonce: false,
            agrees: true,
            clients: Vec::new(),
            keys: Vec::new(),
            exchanges: None,
            vouched_by: None,
            scopes: Vec::new(),
            ignores_invalid_tokens: false,
        }
    }
}

/// An authorization server on a free port. Ends when dropped.
#[derive(Debug)]
pub struct AuthorizationServer {
    shared: Arc<SharedState>,
    _connections: JoinSet<()>,
}

#[derive(Debug)]
struct SharedState {
    issuer: String,
    behaviour: Behaviour,
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
}

/// A parsed request.
#[derive(Debug)]
struct ParsedRequest {
    method: Method,
    path: String,
    query: String,
    headers: HeaderMap,
    body: Bytes,
}

impl AuthorizationServer {
    /// Starts the server.
    pub async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address: SocketAddr = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let shared = Arc::new(SharedState {
            issuer: format!("http://{address}"),
            state: Mutex::new(State::new(&behaviour)),
            behaviour,
            counts: watch::Sender::default(),
        });
        let mut connections = JoinSet::new();
        connections.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            shared,
            _connections: connections,
        }
    }

    /// The issuer URL.
    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.borrow()
    }

    /// Waits until the counts are as wanted.
    pub async fn wait_for(&self, wanted: impl FnMut(&Counts) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        let counted = counts.wait_for(wanted).await;
        assert!(counted.is_ok(), "the server has ended");
    }

    /// Invalidates every access token, as if it had expired. Refresh tokens stay valid.
    pub fn expire(&self) {
        self.shared.state().live.clear();
    }

    /// An ID token of `subject` for this client (`OpenID` Connect).
    pub fn id_token(&self, subject: &str, client_id: &str) -> String {
        assertions::id_token(&self.shared, subject, client_id)
    }

    /// An access token of `subject` for `resource`, as after a sign-in.
    pub fn issue_to(&self, subject: &str, resource: &str, scope: &str) -> String {
        endpoints::issue_to(&self.shared, subject, resource, scope)
    }

    /// A token with these claims, signed with the server's key without any checks. The header gets
    /// the key id unless it has one.
    pub fn sign(&self, mut header: Header, claims: &Claims) -> String {
        let state = self.shared.state();
        header.kid = header.kid.or_else(|| Some(state.key_name()));
        let signed = state.key.sign(header, claims);
        signed.unwrap_or_else(|error| panic!("the server can sign: {error}"))
    }

    /// The public keys for the token signatures.
    pub fn keys(&self) -> JwkSet {
        bearer::keys(&self.shared)
    }

    /// Signs with a new key from now on; the old key is removed.
    pub fn rotate_key(&self) {
        self.shared.state().rotate_key();
    }

    /// The response of a resource server that requires tokens of this issuer, before it reads a
    /// message: metadata or a challenge. `None` if the token is valid.
    pub fn guard(&self, requirements: TokenRequirements, request: &Received) -> Option<Reply> {
        resource::guard(&self.shared, requirements, request)
    }
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }
}

async fn accept(listener: TcpListener, shared: Arc<SharedState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let shared = Arc::clone(&shared);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await;
                let request = ParsedRequest {
                    method: head.method,
                    path: head.uri.path().to_owned(),
                    query: head.uri.query().unwrap_or_default().to_owned(),
                    headers: head.headers,
                    body: body
                        .map(http_body_util::Collected::to_bytes)
                        .unwrap_or_default(),
                };
                let response: Response<Full<Bytes>> = endpoints::answer(&shared, &request).await;
                Ok::<_, Infallible>(response)
            }
        });
        connections.spawn(async move {
            let connection = http1::Builder::new();
            // A client that disconnects is not an error of the server.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}
