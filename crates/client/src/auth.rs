//! Signing in to servers: who gets tokens, where they are kept, and what requests carry.
//!
//! A [`Definition`](crate::Definition) of an HTTP server may have an [`Authorizer`]. [`OAuth`] is the
//! one that follows the rules of MCP; it keeps what it gets in a [`Vault`], and has a [`UserAgent`]
//! show pages to the user, if there is one.

mod carry;
mod file_vault;
mod identity;
mod invitation;
mod oauth;
mod options;
mod send;
mod vault;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use plexus_oauth::OAuthError;
use plexus_service::{Boxed, EventSender};

pub(crate) use send::{send, send_as};

pub use file_vault::{FileVault, VaultKey};
pub use identity::{ForPrincipal, Identities, Identity, OwnIdentity};
pub use oauth::OAuth;
pub use options::{Grants, Means, OAuthOptions};
pub use plexus_oauth as rules;
pub use vault::{Drawer, Holding, MemoryVault, Vault, VaultError};

/// Has what a server wants to see, or can get it.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// What a request must carry; nothing as long as nothing was asked for.
    ///
    /// Dropping the future loses nothing: what was begun goes on.
    fn headers(&self, method: &Method, url: &Uri) -> Boxed<Result<HeaderMap, AuthError>>;

    /// Does something about a refusal. The answer is whether to try again; false means that it is
    /// not about authorization.
    ///
    /// Dropping the future loses nothing: what was begun goes on.
    fn refused(&self, refusal: Refusal) -> Boxed<Result<bool, AuthError>>;

    /// Takes notice of what came with an answer, whatever it is.
    fn noted(&self, headers: &HeaderMap);

    /// `text`, which a server said, without what it was shown: some repeat it where they fail.
    fn conceal(&self, text: String) -> String {
        text
    }

    /// Whether callers can be shown a page to sign in on.
    fn invites(&self) -> bool {
        false
    }

    /// Has the caller of a call that was refused sign in, on a page that its own client shows. The
    /// answer is whether it did; false means that it cannot be shown one.
    ///
    /// Dropping the future loses nothing: the user may be on the page already.
    fn invite(&self, _events: &EventSender) -> Boxed<Result<bool, AuthError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// A request that was refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refusal {
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// The credentials that were not good enough, if there were any.
    pub sent: Option<HeaderValue>,
    /// How often this request was tried before.
    pub attempt: u32,
}

/// Shows a page to the user, and learns how they came back from it.
pub trait UserAgent: std::fmt::Debug + Send + Sync {
    /// Makes ready for one visit.
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>>;
}

/// One visit of a page.
pub trait Visit: Send {
    /// Where the user is to be sent back to.
    fn redirect_uri(&self) -> &str;

    /// Shows the page, and gives the query with which the user came back.
    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>>;
}

/// Why there are no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The rules forbid it, or somebody refused.
    #[error(transparent)]
    Rules(#[from] OAuthError),
    /// An authorization server could not be reached.
    #[error("{0}")]
    Http(String),
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Vault(#[from] Arc<VaultError>),
    /// Only a user can help, and there is none here.
    #[error("{0}")]
    SignIn(String),
    /// The server wants more than was granted, although that was asked for.
    #[error("the server wants the scopes {0:?}, and refuses the token that was issued for them")]
    StillRefused(String),
    /// The page could not be shown, or nobody came back.
    #[error("{0}")]
    Page(String),
    /// The server is to be told whom we act for, and we do not know.
    #[error(
        "the server {0:?} is used in its callers' own names, and this caller was let in without a token that could be shown for it"
    )]
    Nameless(String),
    /// The caller's token is not for the server.
    #[error(
        "the caller's token is for {shown:?}, and the server {called:?} takes those for {wanted:?}; it is not passed on"
    )]
    OtherAudience {
        /// What people call the server.
        called: String,
        /// Whom the token is for.
        shown: String,
        /// Whom it would have to be for.
        wanted: String,
    },
    /// The server does not take the caller's own token.
    #[error("the server {0:?} refuses the caller's own token")]
    TokenRefused(String),
    /// The user did not want to visit the page.
    #[error("the user did not want to sign in to {0:?}")]
    Declined(String),
}

impl AuthError {
    /// Whether it would help if a user signed in.
    pub(crate) fn wants_user(&self) -> bool {
        matches!(self, Self::SignIn(_))
    }
}

/// `text` without `secret`.
pub(crate) fn concealed(text: String, secret: &str) -> String {
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
