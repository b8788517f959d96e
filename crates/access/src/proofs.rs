//! Checks DPoP proofs, and rejects replays (RFC 9449).

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_mcp_oauth::dpop::{self, ProofRequest};
use plexus_mcp_oauth::jwt::JwtError;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::clock::now;

/// How long a nonce is handed out. It is accepted for one more interval.
const NONCE_ROTATION_INTERVAL: Duration = Duration::from_mins(2);
/// The maximum number of proofs with one nonce. After that, the nonce is rotated early.
const MAX_PROOFS_PER_NONCE: usize = 100_000;

/// The signature algorithms that are accepted for proofs, as named in challenges and metadata.
pub(crate) const ALGORITHMS: [&str; 3] = ["ES256", "EdDSA", "RS256"];

/// Checks proofs, and rejects a proof that was used before.
///
/// Every proof must contain a nonce of this server. Two nonces are valid at a time, the current and
/// the previous. The proofs received are kept for each nonce, and dropped with it, so memory is
/// bounded, and no proof is accepted twice.
#[derive(Debug)]
pub(crate) struct Proofs(Mutex<Nonces>);

#[derive(Debug)]
struct Nonces {
    current: Nonce,
    previous: Nonce,
    /// When the current nonce was made.
    rotated_at: Instant,
}

#[derive(Debug)]
struct Nonce {
    value: String,
    /// The digests of the `jti` of each proof that was used with this nonce.
    used: HashSet<[u8; 16]>,
}

/// Why a proof is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProofError {
    /// The proof lacks a valid nonce; the client must use this one.
    Nonce(String),
    /// The proof is invalid, for this reason.
    Invalid(&'static str),
}

impl Proofs {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(Mutex::new(Nonces {
            current: Nonce::new()?,
            previous: Nonce::new()?,
            rotated_at: Instant::now(),
        })))
    }

    /// Checks that `proof` is for a request with `method` to one of `urls` with `token`, and signed with
    /// the key that has the thumbprint `jkt`.
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
            nonces.rotate_if_due();
            [&nonces.current, &nonces.previous].map(|nonce| nonce.value.clone())
        };
        let mut only_nonce_is_wrong = false;
        for nonce in &nonces {
            for url in urls {
                let proven = ProofRequest {
                    method,
                    url,
                    token: Some(token),
                    nonce: Some(nonce),
                };
                match dpop::verify_proof(proof, proven, now()) {
                    Ok(proof) if proof.jkt == jkt => return self.mark_used(nonce, &proof.jti),
                    Ok(_) => {
                        return Err(ProofError::Invalid("the proof is signed with another key"));
                    }
                    // `dpop::verify_proof` checks the nonce last: everything else is right.
                    Err(JwtError::NotYet) => only_nonce_is_wrong = true,
                    Err(_) => {}
                }
            }
        }
        let [current, _] = nonces;
        Err(if only_nonce_is_wrong {
            ProofError::Nonce(current)
        } else {
            ProofError::Invalid("the proof is not for this request")
        })
    }

    /// The nonce that the next proof must contain.
    pub(crate) fn nonce(&self) -> String {
        let mut nonces = self.nonces();
        nonces.rotate_if_due();
        nonces.current.value.clone()
    }

    fn mark_used(&self, nonce: &str, jti: &str) -> Result<(), ProofError> {
        let mut nonces = self.nonces();
        let nonce = if nonces.current.value == nonce {
            &mut nonces.current
        } else if nonces.previous.value == nonce {
            &mut nonces.previous
        } else {
            // The nonce was rotated out meanwhile, and the list of its used proofs with it.
            return Err(ProofError::Nonce(nonces.current.value.clone()));
        };
        let is_new = nonce.used.insert(digest(jti));
        is_new
            .then_some(())
            .ok_or(ProofError::Invalid("the proof was used before"))
    }

    fn nonces(&self) -> MutexGuard<'_, Nonces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nonces {
    /// Makes a new nonce when the current one is too old or was used too often.
    fn rotate_if_due(&mut self) {
        if self.rotated_at.elapsed() < NONCE_ROTATION_INTERVAL
            && self.current.used.len() < MAX_PROOFS_PER_NONCE
        {
            return;
        }
        // Without random numbers the old nonce stays; its used proofs are still known.
        if let Ok(next) = Nonce::new() {
            self.previous = std::mem::replace(&mut self.current, next);
            self.rotated_at = Instant::now();
        }
    }
}

impl Nonce {
    fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            value: URL_SAFE_NO_PAD.encode(bytes),
            used: HashSet::new(),
        })
    }
}

/// The first half of the SHA-256 of `jti`: a fixed size, however long the client made `jti`.
fn digest(jti: &str) -> [u8; 16] {
    let whole: [u8; 32] = Sha256::digest(jti).into();
    let mut half = [0; 16];
    half.copy_from_slice(whole.split_at(16).0);
    half
}
