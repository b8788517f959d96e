//! What the head of a request says to us.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use plexus_mcp::{Era, Revision};

use super::access::Admitted;
use super::negotiation::{self, Accepted};
use crate::stateless::VERSION_HEADER;

pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// The headers of a request and what they say, which is found in one go: there are few of them, and
/// to look for one by its name costs nearly as much as to look at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    /// Who sends the request.
    pub(super) caller: &'a Admitted,
    pub(super) accepted: Accepted,
    /// Whether the body is said to be JSON.
    pub(super) is_json: bool,
    pub(super) session: Option<&'a HeaderValue>,
    pub(super) last_event: Option<&'a HeaderValue>,
    version: Option<&'a HeaderValue>,
}

impl<'a> Head<'a> {
    pub(super) fn read(headers: &'a HeaderMap, caller: &'a Admitted) -> Self {
        let mut accepted = None;
        let mut content_type = None;
        let mut session = None;
        let mut last_event = None;
        let mut version = None;
        for (name, value) in headers {
            let place = match name {
                _ if *name == header::ACCEPT => {
                    accepted.get_or_insert(Accepted::NOTHING).add_all(value);
                    continue;
                }
                _ if *name == header::CONTENT_TYPE => &mut content_type,
                _ if *name == SESSION_HEADER => &mut session,
                _ if *name == VERSION_HEADER => &mut version,
                _ if *name == LAST_EVENT_HEADER => &mut last_event,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        Self {
            headers,
            caller,
            accepted: accepted.unwrap_or(Accepted::UNSAID),
            is_json: content_type.is_some_and(negotiation::is_json),
            session,
            last_event,
            version,
        }
    }

    /// The version that the request names.
    pub(super) fn version(&self) -> Option<&'a str> {
        // A value that is no text names no version; it must not pass for "absent".
        let text = |value: &'a HeaderValue| value.to_str().unwrap_or("\u{fffd}");
        self.version.map(text)
    }

    pub(super) fn speaks_stateless(&self) -> bool {
        let revision = self.revision();
        revision.is_some_and(|revision| revision.era() == Era::Stateless)
    }

    /// The revision in which a message is answered that never came to have one (HTTPL-22).
    pub(super) fn spoken(&self) -> Revision {
        self.revision().unwrap_or(Revision::ASSUMED_WITHOUT_HEADER)
    }

    fn revision(&self) -> Option<Revision> {
        self.version()?.parse().ok()
    }
}
