//! Parses and checks `Origin`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::host::Host;

/// A web origin: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// In lower case.
    scheme: String,
    /// Without the port that the scheme implies, so that equal origins compare equal.
    host: Host,
}

/// A text that is not an origin, such as `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not an origin, as in https://example.com")]
pub struct InvalidOrigin;

impl Origin {
    /// Whether the page was served by this machine.
    pub(super) fn is_loopback(&self) -> bool {
        matches!(self.scheme.as_str(), "http" | "https") && self.host.is_loopback()
    }

    /// Whether the page was served by this machine at `port`.
    pub(super) fn is_loopback_at(&self, port: u16) -> bool {
        let served_at = self.host.port().or_else(|| implied_port(&self.scheme));
        self.is_loopback() && served_at == Some(port)
    }

    /// Whether the page was served by `host`.
    pub(super) fn is_at(&self, host: &Host) -> bool {
        let implied = implied_port(&self.scheme);
        implied.is_some() && self.host == host.clone().without_port(implied)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let (scheme, host) = text.split_once("://").ok_or(InvalidOrigin)?;
        let is_legal =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if scheme.is_empty() || !scheme.bytes().all(is_legal) {
            return Err(InvalidOrigin);
        }
        let scheme = scheme.to_ascii_lowercase();
        let host = Host::from_str(host).ok().ok_or(InvalidOrigin)?;
        let host = host.without_port(implied_port(&scheme));
        Ok(Self { scheme, host })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme, self.host)
    }
}

fn implied_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}
