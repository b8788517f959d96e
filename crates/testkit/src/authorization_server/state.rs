//! What the server knows.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use plexus_oauth::keys::SigningKey;

use super::Behaviour;

/// What a server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Clients that registered.
    pub registrations: u32,
    /// Users who signed in.
    pub sign_ins: u32,
    /// Tokens that were renewed.
    pub renewals: u32,
    /// Refresh tokens that came a second time.
    pub replays: u32,
    /// Tokens that were exchanged for others.
    pub exchanges: u32,
    /// Tokens that were given back.
    pub revocations: u32,
    /// Times somebody fetched the keys.
    pub key_fetches: u32,
    /// Times somebody asked what a token is worth.
    pub questions: u32,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) key: SigningKey,
    /// How many keys there were before.
    keys_before: u32,
    pub(super) clients: HashMap<String, Client>,
    pub(super) codes: HashMap<String, Code>,
    /// By refresh token.
    pub(super) grants: HashMap<String, Grant>,
    /// Refresh tokens that were used, and of which grant.
    pub(super) used: HashMap<String, u64>,
    /// The ids of access tokens that hold, and of which grant.
    pub(super) live: HashMap<String, u64>,
    /// Proofs that were seen.
    pub(super) proofs: HashSet<String>,
    pub(super) next_grant: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) secret: Option<String>,
    /// The public half of its key, if that is how it proves itself.
    pub(super) key: Option<Jwk>,
    /// Those it may use; a client that was registered by hand may use any.
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
    /// The key that its tokens are bound to.
    pub(super) jkt: Option<String>,
}

impl State {
    pub(super) fn new(behaviour: &Behaviour) -> Self {
        let key = new_key();
        let by_hand = |secret: Option<String>, key: Option<Jwk>| Client {
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

    /// What the key is called.
    pub(super) fn key_name(&self) -> String {
        format!("k{}", self.keys_before + 1)
    }

    pub(super) fn rotate_key(&mut self) {
        self.key = new_key();
        self.keys_before += 1;
    }

    /// Forgets a grant and everything got with it.
    pub(super) fn end(&mut self, number: u64) {
        self.grants.retain(|_, grant| grant.number != number);
        self.live.retain(|_, of| *of != number);
    }
}

fn new_key() -> SigningKey {
    let (key, _) = SigningKey::generate().unwrap_or_else(|error| panic!("no key: {error}"));
    key
}

/// Something nobody can guess.
pub(super) fn unguessable() -> String {
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
