//! The state of the authorization server.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use plexus_mcp_oauth::keys::SigningKey;

use super::Behaviour;

/// Counts of the server's operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Registered clients.
    pub registrations: u32,
    /// Sign-ins of users.
    pub sign_ins: u32,
    /// Token refreshes.
    pub renewals: u32,
    /// Refresh tokens that were used a second time.
    pub replays: u32,
    /// Token exchanges.
    pub exchanges: u32,
    /// Token revocations.
    pub revocations: u32,
    /// Number of requests for the keys.
    pub key_fetches: u32,
    /// Number of introspection requests.
    pub questions: u32,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) key: SigningKey,
    /// The number of earlier keys.
    keys_before: u32,
    pub(super) clients: HashMap<String, RegisteredClient>,
    pub(super) codes: HashMap<String, Code>,
    /// Grants by refresh token.
    pub(super) grants: HashMap<String, Grant>,
    /// Used refresh tokens, and the grant of each.
    pub(super) used: HashMap<String, u64>,
    /// The ids of valid access tokens, and the grant of each.
    pub(super) live: HashMap<String, u64>,
    /// The ids of DPoP proofs that were used.
    pub(super) proofs: HashSet<String>,
    pub(super) next_grant: u64,
}

#[derive(Debug, Clone)]
pub(super) struct RegisteredClient {
    pub(super) secret: Option<String>,
    /// The public key, if the client authenticates with a key.
    pub(super) key: Option<Jwk>,
    /// The redirect URIs of the client; a preconfigured client may use any.
    pub(super) redirect_uris: Option<Vec<String>>,
}

#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) resource: Option<String>,
    pub(super) scope: String,
}

#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) number: u64,
    pub(super) client_id: String,
    pub(super) subject: String,
    pub(super) resource: Option<String>,
    pub(super) scope: String,
    /// The key to which its tokens are bound.
    pub(super) jkt: Option<String>,
}

impl State {
    pub(super) fn new(behaviour: &Behaviour) -> Self {
        let key = new_key();
        let by_hand = |secret: Option<String>, key: Option<Jwk>| RegisteredClient {
            secret,
            key,
            redirect_uris: None,
        };
        let with_secrets = behaviour.clients.iter();
        let with_secrets =
            with_secrets.map(|(id, secret)| (id.clone(), by_hand(secret.clone(), None)));
        let with_keys = behaviour.keys.iter();
        let with_keys = with_keys.map(|(id, key)| (id.clone(), by_hand(None, Some(key.clone()))));
        let clients = with_secrets.chain(with_keys);
        Self {
            key,
            keys_before: 0,
            clients: clients.collect(),
            codes: HashMap::new(),
            grants: HashMap::new(),
            used: HashMap::new(),
            live: HashMap::new(),
            proofs: HashSet::new(),
            next_grant: 0,
        }
    }

    /// The key id.
    pub(super) fn key_name(&self) -> String {
        format!("k{}", self.keys_before + 1)
    }

    pub(super) fn rotate_key(&mut self) {
        self.key = new_key();
        self.keys_before += 1;
    }

    /// Revokes a grant and all its tokens.
    pub(super) fn end(&mut self, number: u64) {
        self.grants.retain(|_, grant| grant.number != number);
        self.live.retain(|_, of| *of != number);
    }
}

fn new_key() -> SigningKey {
    let (key, _) = SigningKey::generate().unwrap_or_else(|error| panic!("no key: {error}"));
    key
}

/// A random identifier.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("no randomness: {error}"));
    URL_SAFE_NO_PAD.encode(bytes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tokens live by the clock on the wall"
)]
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
