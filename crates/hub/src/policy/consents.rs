//! What humans allowed for always.
//!
//! Each consent is a file named after its digest, so that several processes can keep them together,
//! and a human can take one back by removing it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::config::edit;

/// What a human's "always" is about, hashed.
pub(super) type Consent = [u8; 32];

/// The consents, and where they are kept; nowhere, at first.
#[derive(Debug, Default)]
pub(super) struct Consents {
    given: Mutex<HashSet<Consent>>,
    directory: Mutex<Option<PathBuf>>,
}

/// What a consent is about, for whoever looks into its file.
#[derive(Debug, Serialize)]
pub(super) struct About<'a> {
    pub(super) tool: &'a str,
    pub(super) server: &'a str,
    pub(super) principal: &'a str,
    pub(super) asked_because_of: &'a str,
}

impl Consents {
    /// Keeps consents in `directory` from now on, and heeds those that are there.
    pub(super) fn keep_in(&self, directory: PathBuf) {
        *lock(&self.directory) = Some(directory);
    }

    pub(super) fn has(&self, consent: &Consent) -> bool {
        match self.file(consent) {
            // Somebody may have taken it back by removing it.
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
            tracing::warn!(%error, "the answer cannot be kept, and will be asked for again");
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
