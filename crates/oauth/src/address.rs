//! Protection against SSRF: decides which URLs that a server names may be requested (SEC-07, SEC-08).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The networks that a discovered URL may point to: only those that the server which named the URL is
/// in, and the internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is nothing nearer than this machine"
)]
pub enum Reach {
    /// Public addresses only.
    Public,
    /// Public and private addresses.
    Private,
    /// Public, private and loopback addresses.
    Loopback,
}

impl Reach {
    /// The reach that is required for requests to `address`. `None` for reserved addresses and for
    /// link-local ones, where cloud providers serve credentials: these are never requested.
    pub fn required_for(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(address) => required_for_v4(address),
            IpAddr::V6(address) => required_for_v6(address),
        }
    }

    /// Whether requests to `address` are allowed.
    pub fn allows(self, address: IpAddr) -> bool {
        Self::required_for(address).is_some_and(|needed| needed <= self)
    }

    /// The reach of a server whose host name resolved to `addresses`.
    pub fn of_server(addresses: &[IpAddr]) -> Self {
        let needed = addresses
            .iter()
            .filter_map(|address| Self::required_for(*address));
        // A name with several addresses has the least reach of all of them.
        needed.min().unwrap_or(Self::Public)
    }
}

/// Why a URL must not be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not an absolute URL.
    #[error("it is not an absolute URL")]
    Invalid,
    /// Its scheme is not http or https.
    #[error("its scheme is {0:?}, not https")]
    Scheme(String),
    /// It is plain http, and the host is not this machine.
    #[error("it is not https, so the connection would not be encrypted")]
    Plain,
    /// It contains a user name, a password, or a fragment.
    #[error("it contains a user name, a password or a fragment")]
    Extra,
    /// It is in a network that the server is not in.
    #[error("it is in a network that this server may not refer to")]
    OutOfReach,
}

/// Decides which discovered URLs may be requested.
#[derive(Debug, Clone, Copy)]
pub struct UrlPolicy {
    reach: Reach,
}

impl UrlPolicy {
    /// A policy for the URLs that a server of this reach names.
    pub fn new(reach: Reach) -> Self {
        Self { reach }
    }

    /// The allowed networks. Host names must be checked against them again when they are resolved.
    pub fn reach(self) -> Reach {
        self.reach
    }

    /// Parses `text` as a URL that may be requested.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn check(self, text: &str) -> Result<Url, AddressError> {
        let url = Url::parse(text).map_err(|_unusable| AddressError::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(AddressError::Extra);
        }
        let needed = match url.host().ok_or(AddressError::Invalid)? {
            Host::Ipv4(address) => Reach::required_for(address.into()),
            Host::Ipv6(address) => Reach::required_for(address.into()),
            Host::Domain(name) if is_local_name(name) => Some(Reach::Loopback),
            Host::Domain(_) => Some(Reach::Public),
        };
        let needed = needed.filter(|needed| *needed <= self.reach);
        let needed = needed.ok_or(AddressError::OutOfReach)?;
        if url.scheme() == "http" && needed != Reach::Loopback {
            return Err(AddressError::Plain);
        }
        Ok(url)
    }
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

fn required_for_v4(address: Ipv4Addr) -> Option<Reach> {
    let [first, second, third, _] = address.octets();
    if address.is_loopback() {
        return Some(Reach::Loopback);
    }
    if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        return Some(Reach::Private);
    }
    let is_reserved = first == 0
        || first >= 224
        || address.is_link_local()
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (second == 18 || second == 19))
        || address.is_documentation();
    (!is_reserved).then_some(Reach::Public)
}

fn required_for_v6(address: Ipv6Addr) -> Option<Reach> {
    if address.is_loopback() {
        return Some(Reach::Loopback);
    }
    if address.is_unique_local() {
        return Some(Reach::Private);
    }
    let segments = address.segments();
    match segments {
        // NAT64 and 6to4 addresses contain the IPv4 address that packets are sent to.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            required_for_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Only 2000::/3 is assigned; 2001:db8::/32 in it is for documentation.
        [0x2001, 0xdb8, ..] => None,
        [first, ..] if first & 0xe000 == 0x2000 => Some(Reach::Public),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(reach: Reach, text: &str) -> Result<Url, AddressError> {
        UrlPolicy::new(reach).check(text)
    }

    /// SEC-07: every spelling of an internal address is rejected.
    #[test]
    fn a_public_server_cannot_name_internal_addresses() {
        for inside in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://localhost/",
            "https://a.LOCALHOST./",
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fd00::1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://0.0.0.0/",
        ] {
            let error = checked(Reach::Public, inside).unwrap_err();
            assert_eq!(error, AddressError::OutOfReach, "{inside}");
        }
    }

    /// The metadata address of cloud providers, which hands out credentials, is never allowed.
    #[test]
    fn link_local_addresses_are_never_allowed() {
        for metadata in [
            "https://169.254.169.254/latest",
            "http://169.254.169.254/latest",
            "https://[fe80::1]/",
            "https://[::ffff:169.254.169.254]/",
        ] {
            let error = checked(Reach::Loopback, metadata).unwrap_err();
            assert_eq!(error, AddressError::OutOfReach, "{metadata}");
        }
    }

    #[test]
    fn a_server_on_this_machine_may_name_this_machine() {
        assert!(checked(Reach::Loopback, "http://localhost:1/token").is_ok());
        assert!(checked(Reach::Loopback, "https://as.example/token").is_ok());
        assert!(checked(Reach::Private, "https://10.0.0.1/token").is_ok());
        assert!(checked(Reach::Private, "https://127.0.0.1/token").is_err());
    }

    /// SEC-08, AUTH03-10
    #[test]
    fn only_https_urls_are_allowed() {
        let refused = |text| checked(Reach::Loopback, text).unwrap_err();
        assert_eq!(refused("http://as.example/"), AddressError::Plain);
        assert_eq!(refused("http://10.0.0.1/"), AddressError::Plain);
        assert_eq!(refused("https://a:b@as.example/"), AddressError::Extra);
        assert_eq!(refused("https://as.example/#a"), AddressError::Extra);
        assert_eq!(refused("/token"), AddressError::Invalid);
        for scheme in ["javascript:alert(1)", "data:,x", "file:///etc/passwd"] {
            assert!(
                matches!(refused(scheme), AddressError::Scheme(_)),
                "{scheme}"
            );
        }
    }

    #[test]
    fn a_server_with_several_addresses_has_the_least_reach_of_them() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let both = [address("127.0.0.1"), address("93.184.216.34")];
        assert_eq!(Reach::of_server(&both), Reach::Public);
        assert_eq!(Reach::of_server(&both[..1]), Reach::Loopback);
        assert_eq!(Reach::of_server(&[]), Reach::Public);
    }
}
