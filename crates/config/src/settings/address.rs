//! The address that HTTP is served on.

use std::net::{Ipv4Addr, SocketAddr};

use serde::de::{Deserialize, Deserializer, Error};

/// Parses an address and port to listen on. `localhost` is 127.0.0.1; other host names are not
/// looked up, because what they stand for may change.
///
/// # Errors
/// The text is something else. The error says what is expected.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let local = || {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let is_local = host.eq_ignore_ascii_case("localhost");
        is_local.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    text.parse().ok().or_else(local).ok_or_else(|| {
        "expected an address and a port, as in 127.0.0.1:4445, localhost:4445 or [::1]:4445"
            .to_owned()
    })
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    listen_address(&text).map(Some).map_err(Error::custom)
}

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn localhost_is_an_address() {
        for (text, address) in [
            ("localhost:4445", "127.0.0.1:4445"),
            ("LocalHost:0", "127.0.0.1:0"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address);
        }
        for text in [
            "",
            "4445",
            "localhost",
            "localhost:",
            "localhost:x",
            "a.example:80",
            "::1:80",
        ] {
            assert!(listen_address(text).unwrap_err().contains("localhost:4445"));
        }
    }
}
