//! Where tokens are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use plexus_oauth::{Registration, Scopes, Session};
use plexus_service::Boxed;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::lock::lock;

/// Keeps what was got, for every account at every server.
pub trait Vault: std::fmt::Debug + Send + Sync {
    /// What is kept for `account` now.
    fn read(&self, account: &str) -> Boxed<Result<Holding, VaultError>>;

    /// Opens the drawer of `account`. As long as it is open, nobody else can open it, in this
    /// process or another.
    fn open(&self, account: &str) -> Boxed<Result<Box<dyn Drawer>, VaultError>>;
}

/// A drawer of a vault. It closes when it is dropped.
pub trait Drawer: Send {
    /// What is in it.
    fn holding(&self) -> &Holding;

    /// Puts something else in it. When this returns, it is kept.
    fn put(&mut self, holding: Holding) -> Boxed<Result<(), VaultError>>;
}

/// What is kept for an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holding {
    /// The address of the server, to tell it to people.
    #[serde(default)]
    pub server: String,
    /// The account's name there.
    #[serde(default)]
    pub name: String,
    /// The caller that it is kept for, if not the user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// What clients we are, one for each issuer.
    #[serde(default)]
    pub registrations: Vec<Registration>,
    /// What was found wanting when no user was there to be asked for it.
    #[serde(default)]
    pub wanted: Scopes,
}

impl Holding {
    /// Remembers a session, and who we were in it.
    pub(crate) fn keep(&mut self, session: Session) {
        let registration = &session.registration;
        // Only what was registered for us is worth remembering: the rest is configured.
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

/// Why something is not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The system would not have it.
    #[error("the tokens in {place} cannot be read or written: {source}")]
    System {
        /// Where they are.
        place: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key is lost.
    #[error(
        "the key of the tokens is not in {place}; if it is lost, remove the folder of the tokens and sign in again"
    )]
    NoKey {
        /// Where it should be.
        place: String,
    },
    /// What is there cannot be opened with the key that we have.
    #[error(
        "the tokens in {place} cannot be opened with the key that there is; remove the file and sign in again"
    )]
    Sealed {
        /// Where they are.
        place: String,
    },
}

/// Keeps everything until the process ends.
#[derive(Debug, Default)]
pub struct MemoryVault {
    drawers: Mutex<HashMap<String, Arc<AsyncMutex<Holding>>>>,
}

impl MemoryVault {
    fn drawer(&self, account: &str) -> Arc<AsyncMutex<Holding>> {
        let mut drawers = lock(&self.drawers);
        Arc::clone(drawers.entry(account.to_owned()).or_default())
    }
}

impl Vault for MemoryVault {
    fn read(&self, account: &str) -> Boxed<Result<Holding, VaultError>> {
        let drawer = self.drawer(account);
        Box::pin(async move { Ok(drawer.lock().await.clone()) })
    }

    fn open(&self, account: &str) -> Boxed<Result<Box<dyn Drawer>, VaultError>> {
        let drawer = self.drawer(account);
        Box::pin(async move { Ok(Box::new(drawer.lock_owned().await) as Box<dyn Drawer>) })
    }
}

impl Drawer for OwnedMutexGuard<Holding> {
    fn holding(&self) -> &Holding {
        self
    }

    fn put(&mut self, holding: Holding) -> Boxed<Result<(), VaultError>> {
        **self = holding;
        Box::pin(std::future::ready(Ok(())))
    }
}
