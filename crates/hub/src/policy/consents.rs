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
pub(super) type Consent = [u8; 32];

/// The consents, and the directory that stores them; there is none at first.
#[derive(Debug, Default)]
pub(super) struct Consents {
    given: Mutex<HashSet<Consent>>,
    directory: Mutex<Option<PathBuf>>,
}

/// The content of a consent's file, for users who inspect it.
#[derive(Debug, Serialize)]
pub(super) struct About<'a> {
    pub(super) tool: &'a str,
    pub(super) server: &'a str,
    pub(super) principal: &'a str,
    pub(super) asked_because_of: &'a str,
}

impl Consents {
    /// Stores consents in `directory` from now on, and uses those that it already has.
    pub(super) fn keep_in(&self, directory: PathBuf) {
        *lock(&self.directory) = Some(directory);
    }

    pub(super) fn has(&self, consent: &Consent) -> bool {
        match self.file(consent) {
            // The user may have revoked it by deleting the file.
            Some(file) => file.exists(),
            None => lock(&self.given).contains(consent),
        }
    }

    pub(super) fn give(&self, consent: Consent, about: &About<'_>) {
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
