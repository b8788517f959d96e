//! Options of the server edge. Every default is safe.

use std::num::NonZeroUsize;
use std::time::Duration;

use plexus_mcp_protocol::classify::ServedEras;
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use plexus_mcp_protocol::{Revision, code, cursor};
use plexus_mcp_wire::Limits;

/// Settings that hold for every transport of one [`Edge`](crate::Edge).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Which eras are served.
    pub served: ServedEras,
    /// The newest revision that a handshake can open.
    pub newest_handshake: Revision,
    /// The behaviour where the specification and the documents of older systems differ.
    pub profile: Profile,
    /// Whether the Janix mcp-validator is to be satisfied: `initialize` may be repeated,
    /// `server/info` and `shutdown` are answered (C07, C51). Only legacy revisions are affected.
    pub mcp_validator: bool,
    /// Whether tools may be called as methods of their own and without a handshake, on pipes and
    /// over HTTP at `/native`: the native view (S003-05, C49).
    pub native: bool,
    /// The limits of one message.
    pub limits: Limits,
    /// How many entries one page of a list has.
    pub page_size: NonZeroUsize,
    /// The largest answer, in bytes; a larger one becomes an error (C09).
    pub max_answer: usize,
    /// How many calls one connection or session may have in flight.
    pub max_in_flight: usize,
    /// How long a question to the client may stay unanswered, and a parked call wait for its retry.
    pub answer_time: Duration,
    /// How many calls may be parked at once.
    pub max_parked: usize,
    /// How many bytes the parameters and questions of all parked calls may have together.
    pub max_parked_bytes: usize,
    /// How many resources one session or one `subscriptions/listen` stream may subscribe to.
    pub max_resource_subscriptions: usize,
    /// How long further questions of a call are waited for before the first ones are put.
    pub collect_window: Duration,
    /// How long work in flight may take to finish when the server ends.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            served: ServedEras::Both,
            newest_handshake: Revision::NEWEST_HANDSHAKE,
            profile: Profile::default(),
            mcp_validator: false,
            native: false,
            limits: Limits::default(),
            page_size: cursor::DEFAULT_PAGE_SIZE,
            max_answer: 10 * 1024 * 1024,
            max_in_flight: 4096,
            answer_time: Duration::from_mins(5),
            max_parked: 10_000,
            max_parked_bytes: 64 * 1024 * 1024,
            max_resource_subscriptions: 1000,
            collect_window: Duration::from_millis(25),
            drain: Duration::from_secs(5),
        }
    }
}

/// The behaviour towards clients that expect that of an older system. Only legacy revisions are
/// affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// The behaviour of the specification.
    #[default]
    Plexus,
    /// The behaviour of the Substrate document: `-32002` for requests in the wrong state (C05), and an
    /// error for an unsupported version instead of a counter-offer (C03).
    Substrate,
}

impl Options {
    pub(crate) fn rules(&self, base: LifecycleRules) -> LifecycleRules {
        let error_code = match self.profile {
            Profile::Plexus => base.error_code,
            Profile::Substrate => code::LEGACY_RESOURCE_NOT_FOUND,
        };
        LifecycleRules {
            error_code,
            reinitialize: base.reinitialize || self.mcp_validator,
            // A client that initializes twice sends `initialized` only once.
            wait_for_initialized: base.wait_for_initialized && !self.mcp_validator,
            ..base
        }
    }
}
