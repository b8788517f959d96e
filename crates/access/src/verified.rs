//! What a token turned out to be worth.

use plexus_oauth::jwt::Claims;
use plexus_server::http::Admitted;
use plexus_service::{Principal, Scopes};

/// The longest subject; `OpenID` Connect has the same.
const LONGEST_SUBJECT: usize = 255;

/// A token that holds.
#[derive(Debug, Clone)]
pub(crate) struct Verified {
    pub(crate) admitted: Admitted,
    /// The thumbprint of the key that it is bound to.
    pub(crate) bound_to: Option<String>,
}

/// Why a token is not taken. For logs, so it never says anything of the token itself.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Rejected {
    /// It is worth nothing.
    #[error("{0}")]
    Invalid(String),
    /// Nobody can tell what it is worth just now.
    #[error("{0}")]
    Unknown(String),
}

impl Rejected {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}

impl Verified {
    /// What the claims of a token of `issuer` come to, which were checked already.
    pub(crate) fn of(issuer: &str, claims: &Claims) -> Result<Self, Rejected> {
        let subject = claims.sub.as_deref().unwrap_or_default();
        if subject.is_empty() || subject.len() > LONGEST_SUBJECT {
            return Err(Rejected::invalid("it names nobody"));
        }
        // No issuer has a space in it, so that no two callers have one name.
        let principal = Principal::new(format!("{issuer} {subject}"));
        let granted = [&claims.scope, &claims.scp].into_iter().flatten();
        let scopes: Scopes = granted.flat_map(plexus_oauth::Scopes::iter).collect();
        Ok(Self {
            admitted: Admitted::new(principal, scopes),
            bound_to: claims.cnf.as_ref().map(|bound| bound.jkt.clone()),
        })
    }
}
