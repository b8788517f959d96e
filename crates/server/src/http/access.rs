//! Who may use a server over HTTP at all.

use std::borrow::Cow;
use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use plexus_service::{Credential, Principal, Scopes};

use crate::net::{Body, respond};

/// Lets callers in, or does not. It is asked about every request (SEC-02, AUTH26-19): a session is
/// no proof of who somebody is.
///
/// It is not asked about preflights, `/health` and the documents that it has itself.
pub trait Access: Debug + Send + Sync {
    /// Who sends the request with this head.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// How the request is refused.
    fn admit<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Admitted, AccessDenied>>;

    /// The JSON document at `path` that says how to be let in, if there is one. Anybody may read it.
    fn document(&self, path: &str) -> Option<Bytes>;
}

/// A caller whose credentials were verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admitted {
    /// Who it is. What belongs to one principal is not there for any other.
    pub principal: Principal,
    /// What its credentials allow; `None` where none are asked for.
    pub scopes: Option<Scopes>,
    /// What it was let in with, if that is anybody else's business.
    pub credential: Option<Credential>,
}

impl Admitted {
    /// A caller with credentials that allow `scopes`.
    pub fn new(principal: Principal, scopes: Scopes) -> Self {
        Self {
            principal,
            scopes: Some(scopes),
            credential: None,
        }
    }

    /// The same, which was let in with this.
    #[must_use]
    pub fn showing(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// Whoever it is, where nobody is asked.
    pub(crate) fn anonymous() -> Self {
        Self {
            principal: Principal::anonymous(),
            scopes: None,
            credential: None,
        }
    }
}

/// How a request is refused. It tells the honest what to do, and an attacker nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AccessDenied {
    /// 401, 403 or 400 (AUTH03-12, AUTH06-15); 503 if nobody can tell just now.
    pub status: StatusCode,
    /// What the answer carries, `WWW-Authenticate` above all.
    pub headers: HeaderMap,
    /// What is said to whoever looks at it.
    pub text: Cow<'static, str>,
}

impl AccessDenied {
    /// A refusal that carries nothing yet.
    pub fn new(status: StatusCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            text: text.into(),
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = respond::text(self.status, &format!("{}\n", self.text));
        response.headers_mut().extend(self.headers);
        response
    }
}
