//! Checks the `Host` and `Origin` headers of every request (SEC-01, HTTP26-02, HTTPL-02).
//!
//! A web page in a browser can send requests to any address that the browser reaches, this server's
//! included. Its `Origin` reveals that. If the page's own host name resolves to the address of this
//! server (DNS rebinding), the `Host` reveals it.

mod host;
mod origin;

use std::net::SocketAddr;
use std::str::FromStr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Response, StatusCode, Uri};
use thiserror::Error;

pub use host::{Host, InvalidHost};
pub use origin::{InvalidOrigin, Origin};

use super::body::Body;
use super::respond;

/// Checks `Host` and `Origin` against the addresses of this server and the allowed values.
///
/// - `Host`: a server bound to loopback only accepts `localhost` and loopback addresses, at any port,
///   and the allowed hosts. A server bound to another address accepts the allowed hosts, or any host
///   if none is configured.
/// - `Origin`: a request without it does not come from a foreign page. Otherwise it must be an allowed
///   origin, or the origin of this server: the `Host`, if that is certain to be this server (an
///   address, an allowed host, or `localhost` on loopback), or this machine at the port of a server
///   that is bound to loopback. [`Guard::trust_local_pages`] adds pages that this machine serves at
///   other ports.
#[derive(Debug, Clone)]
pub struct Guard {
    loopback: bool,
    ports: Vec<u16>,
    trusts_local_pages: bool,
    hosts: Vec<Host>,
    origins: Vec<Origin>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no `Host`, or there are several.
    #[error("the request must have exactly one Host header")]
    MissingHost,
    /// The `Host` or the request target names no possible host.
    #[error("the Host header is not a host name or address with an optional port")]
    MalformedHost,
    /// The `Host` is not accepted.
    #[error("host {0} is not served here; if it should be, add it to the allowed hosts")]
    BadHost(Host),
    /// The request comes from a foreign page.
    #[error("origin {0} may not call this server; if it should, add it to the allowed origins")]
    BadOrigin(Origin),
    /// The request comes from a page that does not say which, or from several.
    #[error("the Origin header names no single origin, so it cannot be allowed")]
    OpaqueOrigin,
}

impl Guard {
    /// A guard for a server bound to these addresses, with nothing else allowed.
    pub fn new(bound: &[SocketAddr]) -> Self {
        Self {
            loopback: bound.iter().all(|address| address.ip().is_loopback()),
            ports: bound.iter().map(SocketAddr::port).collect(),
            trusts_local_pages: false,
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Allows requests for this host.
    #[must_use]
    pub fn allow_host(mut self, host: Host) -> Self {
        self.hosts.push(host);
        self
    }

    /// Allows requests from pages of this origin.
    #[must_use]
    pub fn allow_origin(mut self, origin: Origin) -> Self {
        self.origins.push(origin);
        self
    }

    /// If the server is bound to loopback, admits pages that this machine serves at any port. Any
    /// program of this machine could then have its pages use the server, so callers must be
    /// authenticated.
    pub fn trust_local_pages(&mut self) {
        self.trusts_local_pages = true;
    }

    /// Checks the head of a request.
    pub fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut host = match sole(headers, &HOST) {
            Value::One(host) => self.check_host(host)?,
            Value::Unreadable => return Err(Refusal::MalformedHost),
            Value::None | Value::Several => return Err(Refusal::MissingHost),
        };
        // A target in absolute form overrules the header (RFC 9112, section 3.2.2).
        if let Some(authority) = target.authority() {
            host = self.check_host(authority.as_str())?;
        }
        let origin = match sole(headers, &ORIGIN) {
            Value::None => return Ok(()),
            Value::One(origin) => Origin::from_str(origin).ok(),
            Value::Unreadable | Value::Several => None,
        };
        let origin = origin.ok_or(Refusal::OpaqueOrigin)?;
        if self.admits_origin(&origin, &host) {
            Ok(())
        } else {
            Err(Refusal::BadOrigin(origin))
        }
    }

    fn check_host(&self, text: &str) -> Result<Host, Refusal> {
        let host = Host::from_str(text).ok().ok_or(Refusal::MalformedHost)?;
        let ours = if self.loopback {
            host.is_loopback()
        } else {
            self.hosts.is_empty()
        };
        if ours || self.allows_host(&host) {
            Ok(host)
        } else {
            Err(Refusal::BadHost(host))
        }
    }

    fn admits_origin(&self, origin: &Origin, host: &Host) -> bool {
        // A foreign page can point a name at our address (DNS rebinding), so a name alone proves
        // nothing.
        let is_local = self.loopback && host.is_loopback();
        let host_is_certain = host.is_address() || is_local || self.allows_host(host);
        let is_own = || self.ports.iter().any(|port| origin.is_loopback_at(*port));
        self.origins.contains(origin)
            || (self.loopback && self.trusts_local_pages && origin.is_loopback())
            || (self.loopback && is_own())
            || (host_is_certain && origin.is_at(host))
    }

    fn allows_host(&self, host: &Host) -> bool {
        self.hosts.iter().any(|allowed| allowed.admits(host))
    }
}

impl Refusal {
    /// The status that tells the client.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::MissingHost | Self::MalformedHost => StatusCode::BAD_REQUEST,
            Self::BadHost(_) | Self::BadOrigin(_) | Self::OpaqueOrigin => StatusCode::FORBIDDEN,
        }
    }

    /// The answer in plain text. The connection closes behind it, for the body is left unread.
    pub fn to_response(&self) -> Response<Body> {
        respond::closing(respond::text(self.status(), &self.to_string()))
    }
}

enum Value<'a> {
    None,
    One(&'a str),
    Several,
    /// With bytes that are not visible ASCII.
    Unreadable,
}

fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Value<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Value::None,
        (Some(value), None) => value.to_str().map_or(Value::Unreadable, Value::One),
        (Some(_), Some(_)) => Value::Several,
    }
}

#[cfg(test)]
mod tests;
