use crate::address::AddressError;

/// Why no token was obtained.
///
/// Texts of the authorization server are shortened, and their control characters are removed. An error
/// never contains tokens, codes or secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A discovered URL must not be requested.
    #[error("the {what} cannot be used: {reason}")]
    Address {
        /// The name of the endpoint or document at the URL.
        what: &'static str,
        /// Why it is rejected.
        reason: AddressError,
    },
    /// A document or a response is malformed.
    #[error("the {what} cannot be understood: {reason}")]
    Malformed {
        /// The name of the document or response.
        what: &'static str,
        /// Why it is malformed.
        reason: String,
    },
    /// The response has an HTTP error status and no OAuth error.
    #[error("the {what} answered with HTTP {status}")]
    Status {
        /// The name of the endpoint or document.
        what: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The metadata is for another resource (AUTH26-17).
    #[error("the server's metadata is for {named:?}, which is not the server that was asked")]
    ResourceMismatch {
        /// The resource in the metadata.
        named: String,
    },
    /// The metadata is of another issuer (AUTH26-01).
    #[error(
        "the metadata of the authorization server {expected:?} names another issuer, {named:?}; it is not used"
    )]
    IssuerMismatch {
        /// The requested issuer.
        expected: String,
        /// The issuer in the metadata.
        named: String,
    },
    /// The resource names no authorization server.
    #[error("the server's metadata names no authorization server")]
    NoAuthorizationServer,
    /// The authorization server has no metadata at any well-known URL.
    #[error("the authorization server {issuer:?} has no metadata")]
    NoMetadata {
        /// The issuer.
        issuer: String,
    },
    /// The authorization server lacks a required feature.
    #[error("the authorization server {issuer:?} does not support {what}")]
    Unsupported {
        /// The issuer.
        issuer: String,
        /// The missing feature.
        what: &'static str,
    },
    /// There is no client id, and none can be registered automatically.
    #[error(
        "the authorization server {issuer:?} does not support automatic client registration; register a client there, and configure its client id"
    )]
    NoClient {
        /// The issuer.
        issuer: String,
    },
    /// The configured client is registered at another authorization server (AUTH26-08).
    #[error("the configured client id is for {configured:?}, but the server now uses {issuer:?}")]
    ClientOfAnother {
        /// The issuer that the client is configured for.
        configured: String,
        /// The issuer that the server names.
        issuer: String,
    },
    /// The configuration does not name this authorization server, so it may not see callers' tokens.
    #[error(
        "tokens of callers are sent only to the configured authorization server, and {issuer:?} is not configured"
    )]
    Untrusted {
        /// The issuer.
        issuer: String,
    },
    /// The `state` of the redirect is not that of this sign-in.
    #[error("the redirect from the sign-in page does not belong to this sign-in; it is ignored")]
    WrongState,
    /// The redirect from the sign-in page names another issuer (AUTH26-04).
    #[error(
        "the redirect from the sign-in page is not from the authorization server that was asked"
    )]
    WrongIssuer,
    /// The user on the sign-in page or the authorization server refused.
    #[error("the authorization server refused: {code}{}", .description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// The OAuth error code.
        code: String,
        /// The description of the error.
        description: Option<String>,
    },
    /// A key cannot be used.
    #[error("the key cannot be used: {0}")]
    Key(String),
}

impl OAuthError {
    /// Whether the authorization server no longer accepts the refresh token or the client, so that a
    /// new sign-in is needed.
    pub fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant" || code == "invalid_client" || code == "unauthorized_client")
    }
}

/// Shortens an untrusted text, and replaces its control characters.
pub(crate) fn sanitized(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MAX_CHARS).collect()
}
