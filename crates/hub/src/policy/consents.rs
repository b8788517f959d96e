//! Stored answers of users who chose "always allow".
//!
//! Each consent is a file named after its digest, so that several processes can share them, and a
//! user can revoke one by deleting its file.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use plexus_mcp_config::edit;

/// The digest of everything that an "always allow" applies to.
pub type Consent = [u8; 32];

/// The consents, and the directory that stores them; there is none at first.
#[derive(Debug, Default)]
pub struct Consents {
    given: Mutex<HashSet<Consent>>,
    directory: Mutex<Option<PathBuf>>,
}

/// The content of a consent's file, for users who inspect it.
#[derive(Debug, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ConsentRecord<'a> {
    /// The tool, as users see it.
    pub tool: &'a str,
    /// Its server.
    pub server: &'a str,
    /// Whose consent it is.
    pub principal: &'a str,
    /// Why the user was asked.
    pub asked_because_of: &'a str,
}

impl Consents {
    /// Stores consents in `directory` from now on, and uses those that it already has.
    pub fn keep_in(&self, directory: PathBuf) {
        *lock(&self.directory) = Some(directory);
    }

    /// Whether the user gave this consent, and has not revoked it since.
    pub fn has(&self, consent: &Consent) -> bool {
        match self.file(consent) {
            // The user may have revoked it by deleting the file.
            Some(file) => file.exists(),
            None => lock(&self.given).contains(consent),
        }
    }

    /// Stores a consent of the user.
    pub fn give(&self, consent: Consent, about: &ConsentRecord<'_>) {
        let Some(file) = self.file(&consent) else {
            lock(&self.given).insert(consent);
            return;
        };
        let written = serde_json::to_string(about).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|text| edit::write(&file, &(text + "\n"))) {
            tracing::warn!(%error, "the consent cannot be stored; the user will be asked again");
        }
    }

    fn file(&self, consent: &Consent) -> Option<PathBuf> {
        let digits = consent.iter().map(|byte| format!("{byte:02x}"));
        let name: String = digits.chain([".json".to_owned()]).collect();
        let directory = lock(&self.directory);
        Some(directory.as_ref()?.join(name))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
