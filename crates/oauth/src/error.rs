use crate::address::AddressError;

/// Why there is no token.
///
/// What an authorization server says of itself is shown shortened and without control characters;
/// tokens, codes and secrets are never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// An address that was discovered must not be visited.
    #[error("the {what} cannot be used: {reason}")]
    Address {
        /// What the address is of.
        what: &'static str,
        /// Why not.
        reason: AddressError,
    },
    /// A document or an answer is not what it must be.
    #[error("the {what} cannot be understood: {reason}")]
    Malformed {
        /// What it is.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A request was answered with an HTTP error that says no more.
    #[error("the {what} answered with HTTP {status}")]
    Status {
        /// What was asked.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// The metadata is that of another resource (AUTH26-17).
    #[error("the server's metadata is for {named:?}, which is not the server that was asked")]
    ResourceMismatch {
        /// The resource it names.
        named: String,
    },
    /// The metadata is that of another issuer (AUTH26-01).
    #[error(
        "the metadata of the authorization server {expected:?} names another issuer, {named:?}; it is not used"
    )]
    IssuerMismatch {
        /// Who was asked.
        expected: String,
        /// Who the document says it is of.
        named: String,
    },
    /// The resource names nobody who could issue tokens for it.
    #[error("the server's metadata names no authorization server")]
    NoAuthorizationServer,
    /// The authorization server has no metadata at any of its places.
    #[error("the authorization server {issuer:?} has no metadata")]
    NoMetadata {
        /// Who it is.
        issuer: String,
    },
    /// The authorization server cannot do what is needed.
    #[error("the authorization server {issuer:?} does not support {what}")]
    Unsupported {
        /// Who it is.
        issuer: String,
        /// What it lacks.
        what: &'static str,
    },
    /// There is no client to sign in as.
    #[error(
        "the authorization server {issuer:?} registers no clients by itself; register one there, and configure its client id"
    )]
    NoClient {
        /// Who it is.
        issuer: String,
    },
    /// The configured client is of another authorization server (AUTH26-08).
    #[error("the configured client id is for {configured:?}, but the server now uses {issuer:?}")]
    ClientOfAnother {
        /// Whose client it is.
        configured: String,
        /// Who is in charge.
        issuer: String,
    },
    /// Nobody said that this authorization server may see the tokens of callers.
    #[error(
        "tokens of callers are shown to no authorization server but the one that is configured, and {issuer:?} is not"
    )]
    Untrusted {
        /// Who it is.
        issuer: String,
    },
    /// The way back from the sign-in page is not that of this sign-in.
    #[error("the answer of the sign-in page does not belong to this sign-in; it is ignored")]
    WrongState,
    /// The answer of the sign-in page is from somebody else (AUTH26-04).
    #[error("the answer of the sign-in page is not from the authorization server that was asked")]
    WrongIssuer,
    /// Somebody said no: the user on the page, or the authorization server.
    #[error("the authorization server refused: {code}{}", .description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// Its error code.
        code: String,
        /// What it says about it.
        description: Option<String>,
    },
    /// A key cannot be used.
    #[error("the key cannot be used: {0}")]
    Key(String),
}

impl OAuthError {
    /// Whether the authorization server said that what we hold is worth nothing any more, so that
    /// only a new sign-in helps.
    pub fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant" || code == "invalid_client" || code == "unauthorized_client")
    }
}

/// A text of somebody else's, fit to be shown: short, and without control characters.
pub(crate) fn presentable(text: &str) -> String {
    const LONGEST: usize = 200;
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(LONGEST).collect()
}
