use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;

use super::error::HttpError;

/// Scheme, host and port of a URL: the parts that contain no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    is_secure: bool,
    /// In lower case; an IPv6 address stands in brackets.
    host: Arc<str>,
    port: u16,
}

impl Origin {
    /// The origin of an absolute http or https URL without user name and password.
    pub fn of(url: &Uri) -> Result<Self, HttpError> {
        let is_secure = match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(HttpError::NotHttp),
        };
        let authority = url.authority().ok_or(HttpError::NotHttp)?;
        if authority.host().is_empty() {
            return Err(HttpError::NotHttp);
        }
        let origin = Self {
            is_secure,
            host: in_lower_case(authority.host()),
            port: authority
                .port_u16()
                .unwrap_or(if is_secure { 443 } else { 80 }),
        };
        if authority.as_str().contains('@') {
            return Err(HttpError::Userinfo { origin });
        }
        Ok(origin)
    }

    /// Whether connections to it are encrypted.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether it names this machine, so that nothing sent there leaves it.
    pub fn is_loopback(&self) -> bool {
        let bare = self
            .host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(&self.host);
        match bare.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_not_an_address) => bare == "localhost" || bare.ends_with(".localhost"),
        }
    }
}

fn in_lower_case(host: &str) -> Arc<str> {
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}
