//! Proofs that a token is used by whom it was issued to, each of them good once (RFC 9449).

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_oauth::dpop::{self, Proven};
use plexus_oauth::jwt::JwtError;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::clock::now;

/// For how long a nonce is handed out. It is taken for as long again.
const TURN: Duration = Duration::from_mins(2);
/// The most proofs with one nonce. After that there is a new one, early.
const MAX_PROOFS: usize = 100_000;

/// The algorithms that proofs may be signed with, as they are told.
pub(crate) const ALGORITHMS: [&str; 3] = ["ES256", "EdDSA", "RS256"];

/// Checks proofs, and remembers those it has seen.
///
/// Every proof holds a nonce of ours, of which two are good at a time: so a proof is forgotten when
/// its nonce is, and none is ever good twice, however many there are.
#[derive(Debug)]
pub(crate) struct Proofs(Mutex<Nonces>);

#[derive(Debug)]
struct Nonces {
    current: Generation,
    previous: Generation,
    since: Instant,
}

#[derive(Debug)]
struct Generation {
    nonce: String,
    /// The digests of proofs that were seen.
    seen: HashSet<[u8; 16]>,
}

/// Why a proof is not good enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProofError {
    /// It must hold this nonce.
    Nonce(String),
    /// It proves nothing.
    Invalid(&'static str),
}

impl Proofs {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(Mutex::new(Nonces {
            current: Generation::new()?,
            previous: Generation::new()?,
            since: Instant::now(),
        })))
    }

    /// Whether `proof` shows that a request with `token` to one of `urls` is made by the holder of
    /// the key with thumbprint `jkt`.
    pub(crate) fn check(
        &self,
        proof: &str,
        method: &str,
        urls: &[String],
        token: &str,
        jkt: &str,
    ) -> Result<(), ProofError> {
        let nonces = {
            let mut nonces = self.nonces();
            nonces.turn();
            [&nonces.current, &nonces.previous].map(|one| one.nonce.clone())
        };
        let mut is_otherwise_good = false;
        for nonce in &nonces {
            for url in urls {
                let proven = Proven {
                    method,
                    url,
                    token: Some(token),
                    nonce: Some(nonce),
                };
                match dpop::check(proof, proven, now()) {
                    Ok(shown) if shown.jkt == jkt => return self.remember(nonce, &shown.jti),
                    Ok(_) => return Err(ProofError::Invalid("it is made with another key")),
                    // The nonce is what is looked at last.
                    Err(JwtError::NotYet) => is_otherwise_good = true,
                    Err(_) => {}
                }
            }
        }
        let [current, _] = nonces;
        Err(if is_otherwise_good {
            ProofError::Nonce(current)
        } else {
            ProofError::Invalid("it does not fit the request")
        })
    }

    /// What the next proof must hold.
    pub(crate) fn nonce(&self) -> String {
        let mut nonces = self.nonces();
        nonces.turn();
        nonces.current.nonce.clone()
    }

    fn remember(&self, nonce: &str, jti: &str) -> Result<(), ProofError> {
        let mut nonces = self.nonces();
        let generation = if nonces.current.nonce == nonce {
            &mut nonces.current
        } else if nonces.previous.nonce == nonce {
            &mut nonces.previous
        } else {
            // The nonce was forgotten meanwhile, and with it what was seen.
            return Err(ProofError::Nonce(nonces.current.nonce.clone()));
        };
        let is_new = generation.seen.insert(digest(jti));
        is_new
            .then_some(())
            .ok_or(ProofError::Invalid("it was used before"))
    }

    fn nonces(&self) -> MutexGuard<'_, Nonces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nonces {
    /// Changes the nonce when it is time.
    fn turn(&mut self) {
        if self.since.elapsed() < TURN && self.current.seen.len() < MAX_PROOFS {
            return;
        }
        // Without randomness the old one stays; its proofs are still remembered.
        if let Ok(next) = Generation::new() {
            self.previous = std::mem::replace(&mut self.current, next);
            self.since = Instant::now();
        }
    }
}

impl Generation {
    fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            nonce: URL_SAFE_NO_PAD.encode(bytes),
            seen: HashSet::new(),
        })
    }
}

fn digest(jti: &str) -> [u8; 16] {
    let whole: [u8; 32] = Sha256::digest(jti).into();
    let mut half = [0; 16];
    half.copy_from_slice(whole.split_at(16).0);
    half
}
