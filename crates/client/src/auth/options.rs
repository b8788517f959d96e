//! What tokens are got for, and with.

use std::sync::Arc;

use http::Uri;
use plexus_oauth::{Client, Grant};
use plexus_service::{Boxed, Principal};

use super::{AuthError, MemoryVault, UserAgent, Vault};

/// What tokens are got for, and with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The MCP endpoint.
    pub server: Uri,
    /// Whose they are; one user may have several accounts at a server.
    pub account: String,
    /// The caller that they are kept for; the user of this machine has no name.
    pub principal: Principal,
    /// How they are got.
    pub means: Means,
    /// The client that somebody registered by hand.
    pub client: Option<Client>,
    /// Where they are kept.
    pub vault: Arc<dyn Vault>,
    /// What people call the server.
    pub called: String,
    /// What to tell a user who would have to sign in.
    pub advice: String,
    /// Awaits users who are shown the page by their own client; without it, none is offered one.
    pub landing: Option<Arc<dyn UserAgent>>,
}

/// How a token is got.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Means {
    /// A user signs in on a page.
    Page {
        /// Who shows the page; without one, only what is kept is used and renewed.
        agent: Option<Arc<dyn UserAgent>>,
        /// What the user is shown as the name of this client.
        client_name: String,
        /// The address of a document about this client.
        metadata_url: Option<String>,
    },
    /// Nobody needs to be asked.
    Alone(Grant),
    /// The same, with what must be got anew each time, as it soon ends.
    Afresh(Arc<dyn Grants>),
}

/// Says with what a token is got, each time that one is.
pub trait Grants: std::fmt::Debug + Send + Sync {
    /// With what it is got now.
    fn now(&self) -> Boxed<Result<Grant, AuthError>>;
}

impl Means {
    /// A page that nobody shows: only what is kept is used and renewed.
    pub fn page() -> Self {
        Self::Page {
            agent: None,
            client_name: "Plexus".to_owned(),
            metadata_url: None,
        }
    }
}

impl OAuthOptions {
    /// Tokens for `server`, from pages that nobody shows, kept until the process ends.
    pub fn new(server: Uri) -> Self {
        Self {
            account: "default".to_owned(),
            principal: Principal::anonymous(),
            called: server.to_string(),
            server,
            means: Means::page(),
            client: None,
            vault: Arc::new(MemoryVault::default()),
            advice: "the server wants a user to sign in".to_owned(),
            landing: None,
        }
    }

    /// The drawer of the vault in which they are kept.
    pub fn drawer(&self) -> String {
        let own = format!("{}\n{}", self.server, self.account);
        if self.principal == Principal::anonymous() {
            return own;
        }
        format!("{own}\nprincipal\n{}", self.principal.as_str())
    }
}
