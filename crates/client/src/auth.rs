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
        "the server {0:?} requires a token of each caller, and this caller has none that can be exchanged or forwarded"
    )]
    UnknownCaller(String),
    /// The caller's token is not for the server.
    #[error(
        "the caller's token is for the audience {audience:?}, and the server {server:?} requires {required:?}; the token is not forwarded"
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

    /// Whether the next attempt may succeed without any action of a user: an authorization server
    /// cannot be reached or is overloaded, or the token storage failed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Vault(error) => matches!(**error, VaultError::System { .. }),
            Self::Rules(OAuthError::Status { status, .. }) => {
                matches!(status, 408 | 425 | 429 | 500..=599)
            }
            Self::Rules(OAuthError::Refused { code, .. }) => {
                matches!(code.as_str(), "server_error" | "temporarily_unavailable")
            }
            Self::Rules(_)
            | Self::SignIn(_)
            | Self::StillRefused(_)
            | Self::Page(_)
            | Self::UnknownCaller(_)
            | Self::OtherAudience { .. }
            | Self::TokenRefused(_)
            | Self::Declined(_) => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_need_no_user_are_transient() {
        let status = |status| OAuthError::Status {
            what: "token endpoint",
            status,
        };
        let refused = |code: &str| OAuthError::Refused {
            code: code.to_owned(),
            description: None,
        };
        let system = VaultError::System {
            place: "tokens".to_owned(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let sealed = VaultError::Sealed {
            place: "tokens".to_owned(),
        };
        for transient in [
            AuthError::Http("no route to host".to_owned()),
            status(503).into(),
            status(429).into(),
            refused("temporarily_unavailable").into(),
            system.into(),
        ] {
            assert!(transient.is_transient(), "{transient}");
        }
        for of_user in [
            AuthError::SignIn("sign in".to_owned()),
            AuthError::Declined("server".to_owned()),
            AuthError::TokenRefused("server".to_owned()),
            status(404).into(),
            refused("invalid_grant").into(),
            refused("access_denied").into(),
            sealed.into(),
        ] {
            assert!(!of_user.is_transient(), "{of_user}");
        }
    }
}
