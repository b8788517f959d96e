//! Authentication of HTTP requests.

use std::borrow::Cow;
use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

use crate::caller::CallerIdentity;
use crate::net::{Body, respond};

/// Authenticates callers. It is asked about every request (SEC-02, AUTH26-19): a session id does not
/// prove an identity.
///
/// It is not asked about preflights, `/health` and the documents that it has itself.
pub trait Access: Debug + Send + Sync {
    /// The identity of the caller that sends the request with this head.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// How the request is refused.
    fn admit<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, AccessDenied>>;

    /// Whether the credentials in this head, which was admitted, are still valid. It is asked every few
    /// seconds while a stream is open, which ends with the validity of its credentials. If the
    /// credentials cannot be checked at the moment, they count as valid.
    ///
    /// Dropping the future loses nothing.
    fn is_still_valid<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, bool>;

    /// The public JSON document at `path` that describes how to authenticate, if there is one.
    fn document(&self, path: &str) -> Option<Bytes>;
}

/// How a request is refused: how to authenticate, without details of the credentials that were
/// presented.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AccessDenied {
    /// 401, 403 or 400 (AUTH03-12, AUTH06-15); 503 if the credentials cannot be checked at the moment.
    pub status: StatusCode,
    /// The headers of the response, such as `WWW-Authenticate`.
    pub headers: HeaderMap,
    /// The text of the response body.
    pub text: Cow<'static, str>,
}

impl AccessDenied {
    /// A refusal without headers.
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
        respond::closing(response)
    }
}
