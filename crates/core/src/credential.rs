//! The access token of a caller.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// A verified access token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    token: Zeroizing<String>,
    audience: String,
}

impl Credential {
    /// `token`, which was issued for `audience`: the name of this gateway at the issuer.
    pub fn new(token: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            token: Zeroizing::new(token.into()),
            audience: audience.into(),
        }
    }

    /// The secret token itself.
    pub fn expose(&self) -> &str {
        &self.token
    }

    /// The audience that it was issued for.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// A digest that identifies the token without revealing it.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.token.as_bytes()).into()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// The latest credential of a caller; none if it needed none. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Credentials(Arc<Mutex<Option<Box<Credential>>>>);

impl Credentials {
    /// Stores a new credential, for example after a token refresh.
    pub fn show(&self, credential: Credential) {
        *self.lock() = Some(Box::new(credential));
    }

    /// The latest credential.
    pub fn latest(&self) -> Option<Credential> {
        self.lock().as_deref().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Credential>>> {
        // A panic in another thread cannot leave it half replaced.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_counts_and_is_never_seen() {
        let credentials = Credentials::default();
        assert_eq!(credentials.latest(), None);
        credentials.show(Credential::new("first-token", "https://us.example"));
        let clone = credentials.clone();
        credentials.show(Credential::new("second-token", "https://us.example"));
        let latest = clone.latest().unwrap();
        assert_eq!(latest.expose(), "second-token");
        assert!(!format!("{clone:?}{latest:?}").contains("token"));
    }
}
