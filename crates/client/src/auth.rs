//! Authorization at servers: obtaining, storing and sending tokens.
//!
//! The [`Definition`](crate::Definition) of an HTTP server may have an [`Authorizer`]. [`OAuth`] is the
//! authorizer that follows the MCP authorization specification. It stores tokens in a [`Vault`]. A
//! [`UserAgent`], if there is one, shows the sign-in page to the user.

mod file_vault;
mod flow_runner;
mod identity;
mod invitation;
mod oauth;
mod options;
mod send;
mod vault;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use plexus_mcp_core::{Boxed, EventSender};
use plexus_mcp_oauth::OAuthError;

pub(crate) use send::send;

pub use file_vault::{FileVault, VaultKey};
pub use identity::{CustomizePrincipal, Identities, Identity, OwnIdentity};
pub use oauth::OAuth;
pub use options::{GrantProvider, OAuthOptions, SignInMethod};
pub use plexus_mcp_oauth as rules;
pub use vault::{LockedTokens, MemoryVault, StoredTokens, Vault, VaultError};

/// Supplies the credentials for the requests to a server.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// The headers that a request must carry; none until the server requires authorization.
    ///
    /// Cancel-safe: a sign-in or renewal that was begun continues.
    fn headers(&self, method: &Method, url: &Uri) -> Boxed<Result<HeaderMap, AuthError>>;

    /// Obtains better credentials after a refusal. True means to try again; false means that the
    /// refusal is not about authorization.
    ///
    /// Cancel-safe: a sign-in or renewal that was begun continues.
    fn handle_refusal(&self, refusal: Refusal) -> Boxed<Result<bool, AuthError>>;

    /// Inspects the headers of every response, for example for a DPoP nonce.
    fn inspect_response(&self, headers: &HeaderMap);

    /// Masks credentials in a server's error text: some servers repeat them.
    fn mask_credentials(&self, text: String) -> String {
        text
    }

    /// Whether a caller can be asked to sign in with [`invite`](Self::invite).
    fn can_invite(&self) -> bool {
        false
    }

    /// Asks the caller of a refused call to sign in on a page that its own client shows. True means
    /// that it did; false means that its client cannot show a page.
    ///
    /// Cancel-safe: the user may be on the page already.
    fn invite(&self, _events: &EventSender) -> Boxed<Result<bool, AuthError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// The refusal of a request with HTTP 401 or 403.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status: 401 or 403.
    pub status: StatusCode,
    /// The headers of the refusing response.
    pub headers: HeaderMap,
    /// The refused `Authorization` header, if one was sent.
    pub sent: Option<HeaderValue>,
    /// How many attempts of this request were made before the refused one.
    pub attempt: u32,
}

/// Shows sign-in pages to the user, and receives the redirects from them.
pub trait UserAgent: std::fmt::Debug + Send + Sync {
    /// Prepares one visit, so that its redirect URI is known before the page is requested.
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>>;
}

/// One visit of a sign-in page.
pub trait Visit: Send {
    /// The redirect URI, where the user's browser goes after the sign-in.
    fn redirect_uri(&self) -> &str;

    /// Shows the page at `url`, waits for the redirect, and returns its query string.
    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>>;
}

/// Why no credentials can be obtained.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The rules of MCP authorization forbid it, or the user or a server refused.
    #[error(transparent)]
    Rules(#[from] OAuthError),
    /// An authorization server could not be reached.
    #[error("{0}")]
    Http(String),
    /// The token storage cannot be read or written.
    #[error(transparent)]
    Vault(#[from] Arc<VaultError>),
    /// A user must sign in, and none is present.
    #[error("{0}")]
    SignIn(String),
    /// The server requires scopes that were requested but not granted.
    #[error("the server wants the scopes {0:?}, and refuses the token that was issued for them")]
    StillRefused(String),
    /// The sign-in page could not be shown, or the user did not complete the sign-in.
    #[error("{0}")]
    Page(String),
    /// The server is called on behalf of callers, and the caller is unknown.
    #[error(
        "the server {0:?} is used in its callers' own names, and this caller was let in without a token that could be shown for it"
    )]
    UnknownCaller(String),
    /// The caller's token is not for the server.
    #[error(
        "the caller's token is for {audience:?}, and the server {server:?} takes those for {required:?}; it is not passed on"
    )]
    OtherAudience {
        /// The server's name.
        server: String,
        /// The audience of the caller's token.
        audience: String,
        /// The audience that the server requires.
        required: String,
    },
    /// The server does not take the caller's own token.
    #[error("the server {0:?} refuses the caller's own token")]
    TokenRefused(String),
    /// The user declined to visit the sign-in page.
    #[error("the user did not want to sign in to {0:?}")]
    Declined(String),
}

impl AuthError {
    /// Whether it would help if a user signed in.
    pub(crate) fn wants_user(&self) -> bool {
        matches!(self, Self::SignIn(_))
    }
}

/// Replaces `secret` in `text` by a mask.
pub(crate) fn masked(text: String, secret: &str) -> String {
    const MASK: &str = "••••";
    if secret.is_empty() || !text.contains(secret) {
        return text;
    }
    text.replace(secret, MASK)
}

impl From<VaultError> for AuthError {
    fn from(error: VaultError) -> Self {
        Self::Vault(Arc::new(error))
    }
}
