//! The caller of a request, as its transport knows it.

use plexus_mcp_core::{Credential, Presence, Principal, Scopes};

/// The identity of a caller: anonymous, or taken from verified credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallerIdentity {
    /// The principal. Sessions and parked calls of one principal do not exist for any other.
    pub principal: Principal,
    /// The scopes that the credentials grant; `None` where no credentials are required.
    pub scopes: Option<Scopes>,
    /// The credential itself, if services may see it.
    pub credential: Option<Credential>,
}

impl CallerIdentity {
    /// A caller whose credentials grant `scopes`.
    pub fn new(principal: Principal, scopes: Scopes) -> Self {
        Self {
            principal,
            scopes: Some(scopes),
            credential: None,
        }
    }

    /// Adds the credential that the caller presented.
    #[must_use]
    pub fn showing(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// The caller where no credentials are required.
    pub(crate) fn anonymous() -> Self {
        Self {
            principal: Principal::anonymous(),
            scopes: None,
            credential: None,
        }
    }
}

/// The caller of a stateless request.
pub(crate) struct Caller {
    pub(crate) identity: CallerIdentity,
    /// Ends when the caller disconnects; `None` where the transport cannot tell.
    pub(crate) presence: Option<Presence>,
}
