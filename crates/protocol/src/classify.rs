//! Decides which era a message belongs to. Each message is classified by itself, because both eras
//! may arrive at one endpoint, and even on one pipe (TRANSLATION §2, VER26-13, VER26-14).

use std::fmt;
use std::str::FromStr;

use crate::fault::Fault;
use crate::method;
use crate::revision::{Era, Revision, UnknownEra};

/// Which eras an endpoint serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is no fourth way to serve two eras"
)]
pub enum ServedEras {
    /// Handshake revisions only.
    Handshake,
    /// Stateless revisions only.
    Stateless,
    /// Both.
    Both,
}

impl ServedEras {
    /// Whether `era` is served.
    pub fn includes(self, era: Era) -> bool {
        match self {
            Self::Handshake => era == Era::Handshake,
            Self::Stateless => era == Era::Stateless,
            Self::Both => true,
        }
    }

    /// Names of the served revisions, newest first.
    pub fn versions(self) -> Vec<&'static str> {
        match self {
            Self::Handshake => Revision::supported(&[Era::Handshake]),
            Self::Stateless => Revision::supported(&[Era::Stateless]),
            Self::Both => Revision::supported(&[Era::Handshake, Era::Stateless]),
        }
    }

    /// The name of the choice on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => Era::Handshake.as_str(),
            Self::Stateless => Era::Stateless.as_str(),
            Self::Both => "both",
        }
    }

    fn unsupported(self, requested: &str) -> Fault {
        Fault::UnsupportedVersion {
            requested: requested.to_owned(),
            supported: self.versions(),
        }
    }
}

impl fmt::Display for ServedEras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ServedEras {
    type Err = UnknownEra;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Handshake, Self::Stateless, Self::Both]
            .into_iter()
            .find(|served| served.as_str() == name)
            .ok_or_else(|| UnknownEra(name.to_owned()))
    }
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other kinds")]
pub enum Kind<'a> {
    /// A request for this method.
    Request(&'a str),
    /// A notification.
    Notification,
    /// A response to a request that this side sent.
    Response,
    /// An array of messages.
    Batch,
}

/// The facts about a message that decide its era.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the complete input of a pure function"
)]
pub struct MessageFacts<'a> {
    /// Its kind.
    pub kind: Kind<'a>,
    /// The version that an `initialize` requests, if any.
    pub requested: Option<&'a str>,
    /// Whether `_meta` names a protocol version.
    pub version_in_meta: bool,
    /// The `MCP-Protocol-Version` header; `None` where the transport has no headers.
    pub version_header: Option<&'a str>,
    /// Whether the message comes in a legacy session: a session id header, or a pipe on which
    /// `initialize` was answered.
    pub in_session: bool,
}

/// How a message is dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every route must be handled")]
pub enum Route {
    /// Served by itself.
    Stateless,
    /// `initialize`: opens a legacy session.
    Handshake,
    /// Belongs to the legacy session it came in.
    Session,
    /// Accepted and dropped: a notification of the stateless era, which defines none over HTTP.
    Ignore,
}

/// Routes a message that was received over HTTP.
///
/// # Errors
/// The message belongs to neither era: the fault to answer with.
pub fn route_http(facts: &MessageFacts<'_>, served: ServedEras) -> Result<Route, Fault> {
    let header = facts
        .version_header
        .map(|name| (name, name.parse::<Revision>().ok()));
    let stateless_header =
        matches!(header, Some((_, Some(revision))) if revision.era() == Era::Stateless);
    let stateless = served.includes(Era::Stateless);
    match facts.kind {
        Kind::Request(_) if facts.version_in_meta && stateless => Ok(Route::Stateless),
        Kind::Request(method::INITIALIZE) => handshake(facts, served),
        Kind::Request(_) if stateless_header && stateless => Err(missing_version()),
        Kind::Request(method::DISCOVER) if stateless => Err(missing_version()),
        Kind::Notification if stateless_header && stateless => Ok(Route::Ignore),
        _ => {
            if let Some((name, None)) = header {
                return Err(served.unsupported(name));
            }
            if facts.in_session {
                return Ok(Route::Session);
            }
            Err(no_session(facts.kind, served))
        }
    }
}

/// Routes a message that was received over stdio.
///
/// # Errors
/// The message belongs to neither era: the fault to answer with.
pub fn route_line(facts: &MessageFacts<'_>, served: ServedEras) -> Result<Route, Fault> {
    let stateless = served.includes(Era::Stateless);
    match facts.kind {
        Kind::Request(_) if facts.version_in_meta && stateless => Ok(Route::Stateless),
        Kind::Request(method::INITIALIZE) => handshake(facts, served),
        Kind::Request(method::DISCOVER) if stateless && !facts.in_session => Err(missing_version()),
        // The lifecycle of the legacy session refuses requests before `initialize`.
        _ if served.includes(Era::Handshake) => Ok(Route::Session),
        Kind::Request(_) => Err(missing_version()),
        // `notifications/cancelled` is how stateless clients cancel on a pipe.
        Kind::Notification => Ok(Route::Stateless),
        Kind::Response | Kind::Batch => Err(no_session(facts.kind, served)),
    }
}

/// VER26-22: a server that is stateless only answers `initialize` with its versions.
fn handshake(facts: &MessageFacts<'_>, served: ServedEras) -> Result<Route, Fault> {
    if served.includes(Era::Handshake) {
        Ok(Route::Handshake)
    } else {
        Err(served.unsupported(facts.requested.unwrap_or_default()))
    }
}

fn missing_version() -> Fault {
    Fault::MissingMeta(format!(
        "params._meta must carry {:?} and {:?}",
        crate::key::PROTOCOL_VERSION,
        crate::key::CLIENT_CAPABILITIES
    ))
}

fn no_session(kind: Kind<'_>, served: ServedEras) -> Fault {
    let what = match kind {
        Kind::Request(_) => "request",
        Kind::Notification => "notification",
        Kind::Response => "response",
        Kind::Batch => "batch",
    };
    let versions = served.versions().join(", ");
    let hint = match served {
        ServedEras::Handshake => "send initialize first, then the Mcp-Session-Id it returns",
        ServedEras::Stateless => "send params._meta with the protocol version",
        ServedEras::Both => {
            "send initialize first, then the Mcp-Session-Id it returns, or send params._meta with a stateless protocol version"
        }
    };
    Fault::InvalidRequest(format!(
        "{what} outside a session: {hint} (supported versions: {versions})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(
        kind: Kind<'a>,
        meta: bool,
        header: Option<&'a str>,
        session: bool,
    ) -> MessageFacts<'a> {
        MessageFacts {
            kind,
            requested: Some("2025-06-18"),
            version_in_meta: meta,
            version_header: header,
            in_session: session,
        }
    }

    const CALL: Kind<'static> = Kind::Request("tools/call");
    const INIT: Kind<'static> = Kind::Request(method::INITIALIZE);

    /// TRANSLATION §2, all rows of the HTTP table; VER26-14, VER26-23, HTTPL-23.
    #[test]
    fn http_rows() {
        let both = |f: &MessageFacts<'_>| route_http(f, ServedEras::Both);
        let modern = Some("2026-07-28");
        let legacy = Some("2025-06-18");
        // 2
        assert!(matches!(
            both(&facts(Kind::Batch, false, None, false)),
            Err(Fault::InvalidRequest(_))
        ));
        assert_eq!(
            both(&facts(Kind::Batch, false, None, true)),
            Ok(Route::Session)
        );
        // 3, initialize included
        assert_eq!(both(&facts(CALL, true, None, false)), Ok(Route::Stateless));
        assert_eq!(both(&facts(INIT, true, modern, true)), Ok(Route::Stateless));
        // 4
        assert_eq!(
            both(&facts(INIT, false, modern, false)),
            Ok(Route::Handshake)
        );
        assert_eq!(
            both(&facts(INIT, false, Some("junk"), false)),
            Ok(Route::Handshake)
        );
        // 5, 6
        assert!(matches!(
            both(&facts(CALL, false, modern, true)),
            Err(Fault::MissingMeta(_))
        ));
        let discover = Kind::Request(method::DISCOVER);
        assert!(matches!(
            both(&facts(discover, false, None, false)),
            Err(Fault::MissingMeta(_))
        ));
        // 7
        assert_eq!(both(&facts(CALL, false, legacy, true)), Ok(Route::Session));
        assert_eq!(both(&facts(CALL, false, None, true)), Ok(Route::Session));
        // 8
        let unknown = both(&facts(CALL, false, Some("2020-01-01"), false));
        assert!(
            matches!(unknown, Err(Fault::UnsupportedVersion { requested, .. }) if requested == "2020-01-01")
        );
        let unknown = both(&facts(CALL, false, Some("2020-01-01"), true));
        assert!(matches!(unknown, Err(Fault::UnsupportedVersion { .. })));
        // 9
        assert!(
            matches!(both(&facts(CALL, false, legacy, false)), Err(Fault::InvalidRequest(text)) if text.contains("2025-11-25"))
        );
        // 10, 11
        assert_eq!(
            both(&facts(Kind::Notification, false, modern, false)),
            Ok(Route::Ignore)
        );
        assert!(both(&facts(Kind::Notification, false, None, false)).is_err());
        assert_eq!(
            both(&facts(Kind::Notification, false, legacy, true)),
            Ok(Route::Session)
        );
        // 12
        assert!(both(&facts(Kind::Response, false, None, false)).is_err());
        assert_eq!(
            both(&facts(Kind::Response, false, None, true)),
            Ok(Route::Session)
        );
    }

    /// TRANSLATION §2, the same table without headers: eras may interleave on a pipe.
    #[test]
    fn line_rows() {
        let both = |f: &MessageFacts<'_>| route_line(f, ServedEras::Both);
        for session in [false, true] {
            assert_eq!(
                both(&facts(CALL, true, None, session)),
                Ok(Route::Stateless)
            );
            assert_eq!(both(&facts(CALL, false, None, session)), Ok(Route::Session));
            assert_eq!(
                both(&facts(INIT, false, None, session)),
                Ok(Route::Handshake)
            );
            assert_eq!(
                both(&facts(Kind::Batch, false, None, session)),
                Ok(Route::Session)
            );
        }
        let discover = Kind::Request(method::DISCOVER);
        assert!(matches!(
            both(&facts(discover, false, None, false)),
            Err(Fault::MissingMeta(_))
        ));
    }

    /// VER26-22.
    #[test]
    fn a_server_of_one_era_routes_only_that_era() {
        let answer = route_http(&facts(INIT, false, None, false), ServedEras::Stateless);
        assert!(
            matches!(answer, Err(Fault::UnsupportedVersion { requested, supported }) if supported == ["2026-07-28"] && requested == "2025-06-18")
        );
        assert_eq!(
            route_line(&facts(CALL, true, None, true), ServedEras::Handshake),
            Ok(Route::Session)
        );
        assert!(matches!(
            route_line(&facts(CALL, false, None, false), ServedEras::Stateless),
            Err(Fault::MissingMeta(_))
        ));
        assert_eq!(
            route_http(&facts(INIT, true, None, false), ServedEras::Handshake),
            Ok(Route::Handshake)
        );
    }
}
