//! Token storage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use plexus_mcp_core::Boxed;
use plexus_mcp_oauth::{Registration, Scopes, Session};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::lock::lock;

/// Stores OAuth tokens and client registrations. Each entry is found by a key, see
/// [`OAuthOptions::storage_key`](super::OAuthOptions::storage_key).
pub trait Vault: std::fmt::Debug + Send + Sync {
    /// Reads the entry of `key` without locking it. A missing entry is an empty one.
    fn read(&self, key: &str) -> Boxed<Result<StoredTokens, VaultError>>;

    /// Locks the entry of `key` and reads it. Other tasks and processes wait until the lock is
    /// dropped.
    fn lock(&self, key: &str) -> Boxed<Result<Box<dyn LockedTokens>, VaultError>>;
}

/// A locked entry of a vault. Dropping it unlocks the entry.
pub trait LockedTokens: Send {
    /// The contents of the entry.
    fn tokens(&self) -> &StoredTokens;

    /// Replaces the contents of the entry. They are stored when the future is ready.
    fn replace(&mut self, tokens: StoredTokens) -> Boxed<Result<(), VaultError>>;
}

/// An entry of a vault: the tokens of one account at one server, and the OAuth clients that were
/// registered for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredTokens {
    /// The URL of the MCP server, for display.
    #[serde(default)]
    pub server: String,
    /// The name that the user gave the account.
    #[serde(default)]
    pub name: String,
    /// The caller that the account belongs to; `None` for the user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The access token and its refresh token; `None` while the account is signed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The OAuth client registrations, one for each issuer.
    #[serde(default)]
    pub registrations: Vec<Registration>,
    /// Scopes that the server required when no user was present to grant them.
    #[serde(default)]
    pub wanted: Scopes,
}

impl StoredTokens {
    /// Sets the session, and remembers the client registration that it was obtained with.
    pub(crate) fn set_session(&mut self, session: Session) {
        let registration = &session.registration;
        // Only dynamic registrations are stored: the others are configured.
        if registration.redirect_uri.is_some() {
            self.registrations
                .retain(|one| one.issuer != registration.issuer);
            self.registrations.push(registration.clone());
        }
        if session.requested.covers(&self.wanted) {
            self.wanted = Scopes::default();
        }
        self.session = Some(session);
    }
}

/// Why tokens cannot be read from a vault or written to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// A system call failed.
    #[error("the tokens in {place} cannot be read or written: {source}")]
    System {
        /// The path of the file or folder.
        place: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The encryption key is missing, although there are encrypted tokens.
    #[error(
        "the key of the tokens is not in {place}; if it is lost, remove the folder of the tokens and sign in again"
    )]
    NoKey {
        /// The file or the key store that should hold the key.
        place: String,
    },
    /// The stored data cannot be decrypted with the key.
    #[error(
        "the tokens in {place} cannot be opened with the key that there is; remove the file and sign in again"
    )]
    Sealed {
        /// The path of the file.
        place: String,
    },
}

/// A vault in memory: its tokens are lost when the process ends.
#[derive(Debug, Default)]
pub struct MemoryVault {
    entries: Mutex<HashMap<String, Arc<AsyncMutex<StoredTokens>>>>,
}

impl MemoryVault {
    fn entry(&self, key: &str) -> Arc<AsyncMutex<StoredTokens>> {
        let mut entries = lock(&self.entries);
        Arc::clone(entries.entry(key.to_owned()).or_default())
    }
}

impl Vault for MemoryVault {
    fn read(&self, key: &str) -> Boxed<Result<StoredTokens, VaultError>> {
        let entry = self.entry(key);
        Box::pin(async move { Ok(entry.lock().await.clone()) })
    }

    fn lock(&self, key: &str) -> Boxed<Result<Box<dyn LockedTokens>, VaultError>> {
        let entry = self.entry(key);
        Box::pin(async move { Ok(Box::new(entry.lock_owned().await) as Box<dyn LockedTokens>) })
    }
}

impl LockedTokens for OwnedMutexGuard<StoredTokens> {
    fn tokens(&self) -> &StoredTokens {
        self
    }

    fn replace(&mut self, tokens: StoredTokens) -> Boxed<Result<(), VaultError>> {
        **self = tokens;
        Box::pin(std::future::ready(Ok(())))
    }
}
