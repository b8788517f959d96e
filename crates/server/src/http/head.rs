//! The request headers that the HTTP transport reads.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use plexus_mcp_protocol::{Era, Revision};

use super::negotiation::{self, Accepted};
use crate::caller::CallerIdentity;
use crate::stateless::VERSION_HEADER;

pub(super) const SESSION_HEADER: HeaderName =
    HeaderName::from_static(plexus_mcp_protocol::header::SESSION_ID);
const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// The headers of a request that the transport itself reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The caller that sends the request.
    pub(super) caller: &'a CallerIdentity,
    pub(super) accepted: Accepted,
    /// Whether `Content-Type` is JSON.
    pub(super) is_json: bool,
    pub(super) session: Option<&'a HeaderValue>,
    pub(super) last_event: Option<&'a HeaderValue>,
    version: Option<&'a HeaderValue>,
}

impl<'a> Head<'a> {
    pub(super) fn read(headers: &'a HeaderMap, caller: &'a CallerIdentity) -> Self {
        let mut accepted = Accepted::NO_MEDIA_TYPE;
        for value in headers.get_all(header::ACCEPT) {
            accepted.add_all(value);
        }
        if !headers.contains_key(header::ACCEPT) {
            accepted = Accepted::WITHOUT_ACCEPT_HEADER;
        }
        Self {
            headers,
            caller,
            accepted,
            is_json: headers
                .get(header::CONTENT_TYPE)
                .is_some_and(negotiation::is_json),
            session: headers.get(SESSION_HEADER),
            last_event: headers.get(LAST_EVENT_HEADER),
            version: headers.get(VERSION_HEADER),
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

    /// The revision for the answer to a message: that of the version header, else the assumed one
    /// (HTTPL-22).
    pub(super) fn spoken(&self) -> Revision {
        self.revision().unwrap_or(Revision::ASSUMED_WITHOUT_HEADER)
    }

    fn revision(&self) -> Option<Revision> {
        self.version()?.parse().ok()
    }
}
