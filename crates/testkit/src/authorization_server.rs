//! A small but real authorization server: it knows nothing of our clients, and trusts none.
//!
//! It registers clients (RFC 7591), fetches documents about them (CIMD), lets its one user sign in
//! with PKCE, issues signed tokens for one resource each (RFC 9068, RFC 8707), binds them to keys
//! where that is asked for (RFC 9449), rotates refresh tokens, takes tokens back (RFC 7009), and says
//! what they are worth (RFC 7662). It exchanges tokens (RFC 8693), takes the word of others for
//! workloads and users (RFC 7523, ID-JAG), and knows clients by their keys. Whoever replays a refresh token loses everything got with it.

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
use plexus_oauth::jwt::Claims;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use state::State;

use crate::server::{Received, Reply};

pub use resource::Demands;
pub use state::Counts;

/// How the server behaves.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a habit that a test can change by itself"
)]
pub struct Behaviour {
    /// How long access tokens hold, in seconds.
    pub token_life: u64,
    /// Whether clients can register.
    pub registers: bool,
    /// Whether clients must say what kind of application they are, as 2026-07-28 has it.
    pub wants_application_type: bool,
    /// Whether a URL can be a client id.
    pub fetches_documents: bool,
    /// Whether proofs must hold a nonce.
    pub wants_nonce: bool,
    /// Whether the user agrees.
    pub agrees: bool,
    /// Clients that exist from the beginning, with their secrets.
    pub clients: Vec<(String, Option<String>)>,
    /// Clients that prove themselves with a key, and its public half.
    pub keys: Vec<(String, Jwk)>,
    /// The audience of tokens that are exchanged for others (RFC 8693).
    pub exchanges: Option<String>,
    /// Whose word is taken for workloads (RFC 7523): an issuer, and its key.
    pub vouched_by: Option<(String, Jwk)>,
    /// What can be asked for.
    pub scopes: Vec<String>,
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
        }
    }
}

/// An authorization server on a port of its own. Ends when dropped.
#[derive(Debug)]
pub struct AuthorizationServer {
    shared: Arc<Shared>,
    _connections: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    issuer: String,
    behaviour: Behaviour,
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
}

/// A request, taken apart.
#[derive(Debug)]
struct Asked {
    method: Method,
    path: String,
    query: String,
    headers: HeaderMap,
    body: Bytes,
}

impl AuthorizationServer {
    /// Starts one.
    pub async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address: SocketAddr = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let shared = Arc::new(Shared {
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

    /// Who it is.
    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.borrow()
    }

    /// Makes every access token worthless, as if its time were over. Refresh tokens stay.
    pub fn expire(&self) {
        self.shared.state().live.clear();
    }

    /// That a user has signed in here, for the client of this id (`OpenID` Connect).
    pub fn id_token(&self, subject: &str, client_id: &str) -> String {
        assertions::id_token(&self.shared, subject, client_id)
    }

    /// A token of `subject` for `resource`, as if it had signed in.
    pub fn issue_to(&self, subject: &str, resource: &str, scope: &str) -> String {
        endpoints::issue_to(&self.shared, subject, resource, scope)
    }

    /// A token with these claims, signed with the server's own key, whatever they say. The header
    /// names the key unless it names one itself.
    pub fn sign(&self, mut header: Header, claims: &Claims) -> String {
        let state = self.shared.state();
        header.kid = header.kid.or_else(|| Some(state.key_name()));
        let signed = state.key.sign(header, claims);
        signed.unwrap_or_else(|error| panic!("the server can sign: {error}"))
    }

    /// The keys that tokens are signed with, as everybody can see them.
    pub fn keys(&self) -> JwkSet {
        bearer::keys(&self.shared)
    }

    /// Signs with a new key from now on, and forgets the old one.
    pub fn rotate_key(&self) {
        self.shared.state().rotate_key();
    }

    /// What a server that wants tokens of this issuer answers before it even looks at a message;
    /// none if it may look. This is the resource's side, with its metadata and its challenges.
    pub fn guard(&self, demands: Demands, request: &Received) -> Option<Reply> {
        resource::guard(&self.shared, demands, request)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let shared = Arc::clone(&shared);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await;
                let asked = Asked {
                    method: head.method,
                    path: head.uri.path().to_owned(),
                    query: head.uri.query().unwrap_or_default().to_owned(),
                    headers: head.headers,
                    body: body
                        .map(http_body_util::Collected::to_bytes)
                        .unwrap_or_default(),
                };
                let response: Response<Full<Bytes>> = endpoints::answer(&shared, &asked).await;
                Ok::<_, Infallible>(response)
            }
        });
        connections.spawn(async move {
            let connection = http1::Builder::new();
            // A client that leaves is no failure of the server.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}
