//! Tokens that travel through a client and come back: sealed, so that a client can neither read
//! nor forge them (MRTR26-06, MRTR26-07).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const TOKEN_PREFIX: &str = "g1.";
const NONCE_BYTES: usize = 24;
/// Domain separation: a token that was sealed for another purpose is not accepted.
const SEAL_PURPOSE: &[u8] = b"plexus|g1|request-state";
/// The longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 4096;

/// The key of all seals of one server, or of several that share their work.
#[derive(Clone)]
pub struct SealKey(Zeroizing<[u8; 32]>);

impl SealKey {
    /// This key.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Generates a key that is never stored.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self::new(random()?))
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(..)")
    }
}

/// The contents of a `requestState` token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestState {
    /// The id of the parked call.
    pub(crate) call: [u8; 16],
    /// How often it was parked before.
    pub(crate) generation: u32,
    /// The hash of caller, method and arguments.
    pub(crate) binding: [u8; 32],
    /// The time of expiry, in seconds since the server started.
    pub(crate) expires: u64,
}

/// The hash that binds a state to its request: of the caller, the method and the canonical arguments.
pub(crate) fn binding(principal: &str, method: &str, canonical: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in [principal, method, canonical] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Seals and opens states.
pub(crate) struct Sealer {
    cipher: XChaCha20Poly1305,
}

/// The token was not sealed with this key, or was changed. The two are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

impl Sealer {
    pub(crate) fn new(key: &SealKey) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new((&*key.0).into()),
        }
    }

    pub(crate) fn seal(&self, state: &RequestState) -> Result<String, getrandom::Error> {
        let nonce: [u8; NONCE_BYTES] = random()?;
        let mut plain = Vec::with_capacity(60);
        plain.extend_from_slice(&state.call);
        plain.extend_from_slice(&state.generation.to_le_bytes());
        plain.extend_from_slice(&state.binding);
        plain.extend_from_slice(&state.expires.to_le_bytes());
        let payload = Payload {
            msg: &plain,
            aad: SEAL_PURPOSE,
        };
        // The cipher fails on messages of gigabytes only.
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .unwrap_or_default();
        let mut token = TOKEN_PREFIX.to_owned();
        URL_SAFE_NO_PAD.encode_string([&nonce[..], &sealed].concat(), &mut token);
        Ok(token)
    }

    pub(crate) fn open(&self, token: &str) -> Result<RequestState, Broken> {
        self.try_open(token).ok_or(Broken)
    }

    fn try_open(&self, token: &str) -> Option<RequestState> {
        let encoded = token
            .strip_prefix(TOKEN_PREFIX)
            .filter(|rest| rest.len() <= MAX_TOKEN_BYTES)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload {
            msg: sealed,
            aad: SEAL_PURPOSE,
        };
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()?;
        let (call, rest) = plain.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (binding, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        rest.is_empty().then_some(RequestState {
            call: *call,
            generation: u32::from_le_bytes(*generation),
            binding: *binding,
            expires: u64::from_le_bytes(*expires),
        })
    }
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RequestState {
        RequestState {
            call: [7; 16],
            generation: 3,
            binding: binding("kim", "tools/call", "{}"),
            expires: 99,
        }
    }

    #[test]
    fn a_sealed_state_can_be_opened() {
        let sealer = Sealer::new(&SealKey::new([1; 32]));
        let token = sealer.seal(&state()).unwrap();
        assert_eq!(sealer.open(&token), Ok(state()));
        assert_ne!(
            token,
            sealer.seal(&state()).unwrap(),
            "every token is different"
        );
    }

    /// The key is in no log.
    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", SealKey::new([1; 32])), "SealKey(..)");
    }

    /// MRTR26-06, TRANSLATION §12.1, §12.21, TRAP-18: every change of every byte breaks the seal.
    #[test]
    fn a_modified_token_cannot_be_opened() {
        let sealer = Sealer::new(&SealKey::new([1; 32]));
        let token = sealer.seal(&state()).unwrap();
        for position in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[position] ^= 1;
            let Ok(forged) = String::from_utf8(bytes) else {
                continue;
            };
            assert_eq!(sealer.open(&forged), Err(Broken), "byte {position}");
        }
        for other in [
            "",
            "g1.",
            "g1.AAAA",
            "-TAMPERED",
            &format!("{token}-TAMPERED"),
        ] {
            assert_eq!(sealer.open(other), Err(Broken), "{other}");
        }
        let stranger = Sealer::new(&SealKey::new([2; 32]));
        assert_eq!(stranger.open(&token), Err(Broken));
    }

    /// MRTR26-06, TRAP-20: a state is bound to its caller, its method and its arguments.
    #[test]
    fn bindings_do_not_run_into_one_another() {
        let own = binding("kim", "tools/call", "{}");
        assert_eq!(own, binding("kim", "tools/call", "{}"));
        for other in [
            binding("eve", "tools/call", "{}"),
            binding("", "tools/call", "{}"),
            binding("kim", "prompts/get", "{}"),
            binding("kim", "tools/call", "[]"),
        ] {
            assert_ne!(own, other);
        }
        assert_ne!(binding("ab", "c", ""), binding("a", "bc", ""));
    }
}
