//! The result of verifying a token.

use plexus_mcp_core::{Principal, Scopes};
use plexus_mcp_oauth::jwt::Claims;
use plexus_mcp_server::CallerIdentity;

/// The maximum length of a subject, which is that of `OpenID` Connect.
const MAX_SUBJECT_BYTES: usize = 255;

/// The result of verifying a valid token.
#[derive(Debug, Clone)]
pub(crate) struct Verified {
    pub(crate) identity: CallerIdentity,
    /// The thumbprint of the key that the token is bound to.
    pub(crate) bound_to: Option<String>,
}

/// Why a token is rejected. It is logged, so it contains no part of the token.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Rejected {
    /// The token is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The token cannot be verified at the moment.
    #[error("{0}")]
    Unknown(String),
}

impl Rejected {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}

impl Verified {
    /// Caller, scopes and key of a token of `issuer` with these claims, which were checked already.
    pub(crate) fn from_claims(issuer: &str, claims: &Claims) -> Result<Self, Rejected> {
        let subject = claims.sub.as_deref().unwrap_or_default();
        if subject.is_empty() || subject.len() > MAX_SUBJECT_BYTES {
            return Err(Rejected::invalid(
                "the token has no subject, or its subject is too long",
            ));
        }
        // An issuer contains no space, so the principal is unambiguous.
        let principal = Principal::new(format!("{issuer} {subject}"));
        let granted = [&claims.scope, &claims.scp].into_iter().flatten();
        let scopes: Scopes = granted.flat_map(plexus_mcp_oauth::Scopes::iter).collect();
        Ok(Self {
            identity: CallerIdentity::new(principal, scopes),
            bound_to: claims.cnf.as_ref().map(|bound| bound.jkt.clone()),
        })
    }
}
