//! Options for obtaining OAuth tokens.

use std::sync::Arc;

use http::Uri;
use plexus_mcp_core::{Boxed, Principal};
use plexus_mcp_oauth::{Client, Grant};

use super::{AuthError, MemoryVault, UserAgent, Vault};

/// The server that tokens are obtained for, and how they are obtained and stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The URL of the MCP server that the tokens are for.
    pub server: Uri,
    /// The name of the account that the tokens belong to. One user may have several accounts at a
    /// server.
    pub account: String,
    /// The caller that the tokens are stored for; [`Principal::anonymous`] is the user of this machine.
    pub principal: Principal,
    /// How a new token is obtained.
    pub method: SignInMethod,
    /// The OAuth client that the user registered at the authorization server; `None` to register one
    /// automatically.
    pub client: Option<Client>,
    /// Stores the tokens.
    pub vault: Arc<dyn Vault>,
    /// The name of the server, for messages to the user.
    pub server_name: String,
    /// The error text when a user must sign in and no page can be shown.
    pub sign_in_hint: String,
    /// Receives the redirect of a sign-in whose page the caller's own client shows. Without it, callers
    /// are not asked to sign in.
    pub invitation_agent: Option<Arc<dyn UserAgent>>,
}

/// How a new token is obtained.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SignInMethod {
    /// A user signs in on a page of the authorization server (authorization code grant).
    Page {
        /// Shows the page. Without it, only stored tokens are used and renewed.
        agent: Option<Arc<dyn UserAgent>>,
        /// The name of this client that the page shows to the user.
        client_name: String,
        /// The URL of the metadata document of this client, which serves as its client id.
        metadata_url: Option<String>,
    },
    /// A grant that needs no user.
    Grant(Grant),
    /// A grant that needs no user, and is made anew for each token because its assertion is
    /// short-lived.
    Provider(Arc<dyn GrantProvider>),
}

/// Makes a new grant for each token request.
pub trait GrantProvider: std::fmt::Debug + Send + Sync {
    /// Makes the grant for one token request.
    fn grant(&self) -> Boxed<Result<Grant, AuthError>>;
}

impl SignInMethod {
    /// No sign-in page can be shown: only stored tokens are used and renewed.
    pub fn stored_tokens_only() -> Self {
        Self::Page {
            agent: None,
            client_name: "Plexus".to_owned(),
            metadata_url: None,
        }
    }
}

impl OAuthOptions {
    /// Options for tokens of `server` without a way to show a sign-in page; tokens are stored until the
    /// process ends.
    pub fn new(server: Uri) -> Self {
        Self {
            account: "default".to_owned(),
            principal: Principal::anonymous(),
            server_name: server.to_string(),
            server,
            method: SignInMethod::stored_tokens_only(),
            client: None,
            vault: Arc::new(MemoryVault::default()),
            sign_in_hint: "the server wants a user to sign in".to_owned(),
            invitation_agent: None,
        }
    }

    /// The key of the vault entry that holds these tokens.
    pub fn storage_key(&self) -> String {
        let own = format!("{}\n{}", self.server, self.account);
        if self.principal == Principal::anonymous() {
            return own;
        }
        format!("{own}\nprincipal\n{}", self.principal.as_str())
    }
}
