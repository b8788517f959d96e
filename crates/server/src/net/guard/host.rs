//! The `Host` of a request, checked against DNS rebinding.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A host name or address, with or without a port.
///
/// Names are compared case-insensitively, otherwise byte by byte: a trailing dot makes a different
/// name, and unusual spellings of addresses (`127.1`) are names, not addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: Name,
    port: Option<u16>,
}

/// A text that is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a host name or address with an optional port")]
pub struct InvalidHost;

impl Host {
    /// Whether only this machine can be meant.
    pub fn is_loopback(&self) -> bool {
        match &self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Domain(domain) => domain == "localhost",
        }
    }

    /// Whether it is an address, for which no name server was asked.
    pub fn is_address(&self) -> bool {
        matches!(self.name, Name::Address(_))
    }

    /// The port, if one is named.
    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether `other` is this host; without a port, this host is meant at any port.
    pub fn admits(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }

    /// The same host, without the port that is understood anyway.
    pub(super) fn without_port(mut self, understood: Option<u16>) -> Self {
        if self.port == understood {
            self.port = None;
        }
        self
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if let Some(text) = text.strip_prefix('[') {
            let (address, rest) = text.split_once(']').ok_or(InvalidHost)?;
            let address: Ipv6Addr = address.parse().ok().ok_or(InvalidHost)?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(parse_port(port)?),
                None if rest.is_empty() => None,
                None => return Err(InvalidHost),
            };
            let name = Name::Address(address.into());
            return Ok(Self { name, port });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(port)?)),
            None => (text, None),
        };
        let name = parse_name(name)?;
        Ok(Self { name, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
            Name::Address(address) => write!(formatter, "{address}")?,
            Name::Domain(domain) => formatter.write_str(domain)?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    /// In lower case.
    Domain(String),
}

/// The maximum length of a domain name (RFC 1035, section 2.3.4).
const MAX_DOMAIN_BYTES: usize = 255;

fn parse_name(text: &str) -> Result<Name, InvalidHost> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Name::Address(address.into()));
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if text.is_empty() || text.len() > MAX_DOMAIN_BYTES || !text.bytes().all(is_legal) {
        return Err(InvalidHost);
    }
    Ok(Name::Domain(text.to_ascii_lowercase()))
}

fn parse_port(text: &str) -> Result<u16, InvalidHost> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidHost);
    }
    text.parse().ok().ok_or(InvalidHost)
}
