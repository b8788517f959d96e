//! Which addresses of somebody else's choice may be visited (SEC-07, SEC-08).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// How far into this network a discovered address may reach: no further than the server did that
/// named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is nothing nearer than this machine"
)]
pub enum Reach {
    /// Only the internet.
    Public,
    /// The networks that are not the internet's as well.
    Private,
    /// This machine as well.
    Loopback,
}

impl Reach {
    /// What naming a host with this address takes; nothing suffices for link-local addresses, where
    /// clouds tell machines their credentials, nor for those that are no host's.
    pub fn needed(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(address) => needed_v4(address),
            IpAddr::V6(address) => needed_v6(address),
        }
    }

    /// Whether a host with this address may be visited.
    pub fn admits(self, address: IpAddr) -> bool {
        Self::needed(address).is_some_and(|needed| needed <= self)
    }

    /// How far a server may reach whose host resolved to `addresses`.
    pub fn of_server(addresses: &[IpAddr]) -> Self {
        let needed = addresses
            .iter()
            .filter_map(|address| Self::needed(*address));
        // A name that leads to several places gives the rights of the furthest only.
        needed.min().unwrap_or(Self::Public)
    }
}

/// Why an address must not be visited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is none.
    #[error("it is no absolute address")]
    Invalid,
    /// Its scheme is not http or https.
    #[error("its scheme is {0:?}, not https")]
    Scheme(String),
    /// It is not encrypted, and leaves this machine.
    #[error("it is not https, so that others could read along")]
    Plain,
    /// It holds a user name, a password, or a fragment.
    #[error("it holds a user name, a password or a fragment")]
    Extra,
    /// It leads into a network that the server has no business in.
    #[error("it leads into a network that this server may not send us to")]
    OutOfReach,
}

/// Decides which discovered addresses are visited.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    reach: Reach,
}

impl Guard {
    /// A guard for what a server of this reach names.
    pub fn new(reach: Reach) -> Self {
        Self { reach }
    }

    /// How far it lets go. Names must be held against it once more when they are resolved.
    pub fn reach(self) -> Reach {
        self.reach
    }

    /// The address in `text`, if it may be visited.
    ///
    /// # Errors
    /// Why not.
    pub fn check(self, text: &str) -> Result<Url, AddressError> {
        let url = Url::parse(text).map_err(|_unusable| AddressError::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(AddressError::Extra);
        }
        let needed = match url.host().ok_or(AddressError::Invalid)? {
            Host::Ipv4(address) => Reach::needed(address.into()),
            Host::Ipv6(address) => Reach::needed(address.into()),
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

fn needed_v4(address: Ipv4Addr) -> Option<Reach> {
    let [first, second, third, _] = address.octets();
    if address.is_loopback() {
        return Some(Reach::Loopback);
    }
    if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        return Some(Reach::Private);
    }
    let is_nobody = first == 0
        || first >= 224
        || address.is_link_local()
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (second == 18 || second == 19))
        || address.is_documentation();
    (!is_nobody).then_some(Reach::Public)
}

fn needed_v6(address: Ipv6Addr) -> Option<Reach> {
    if address.is_loopback() {
        return Some(Reach::Loopback);
    }
    if address.is_unique_local() {
        return Some(Reach::Private);
    }
    let segments = address.segments();
    match segments {
        // NAT64 and 6to4 hold an IPv4 address, which is where the packets go.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            needed_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Only this block is handed out; it has a corner for documentation.
        [0x2001, 0xdb8, ..] => None,
        [first, ..] if first & 0xe000 == 0x2000 => Some(Reach::Public),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(reach: Reach, text: &str) -> Result<Url, AddressError> {
        Guard::new(reach).check(text)
    }

    /// SEC-07: however an address is spelt, it is the place that counts.
    #[test]
    fn a_public_server_cannot_send_us_inside() {
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

    /// The address at which clouds hand out credentials is nobody's.
    #[test]
    fn nobody_can_send_us_to_link_local_addresses() {
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
    fn only_encrypted_web_addresses_are_visited() {
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
    fn a_server_with_several_addresses_has_the_rights_of_the_furthest() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let both = [address("127.0.0.1"), address("93.184.216.34")];
        assert_eq!(Reach::of_server(&both), Reach::Public);
        assert_eq!(Reach::of_server(&both[..1]), Reach::Loopback);
        assert_eq!(Reach::of_server(&[]), Reach::Public);
    }
}
