//! What can be set about the server edge. Every default is safe.

use std::time::Duration;

use plexus_mcp::classify::Served;
use plexus_mcp::lifecycle::Rules;
use plexus_mcp::{Revision, code};
use plexus_wire::Limits;

/// Settings that hold for every transport of one [`Edge`](crate::Edge).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Which eras are served.
    pub served: Served,
    /// The newest revision that a handshake can open.
    pub newest_handshake: Revision,
    /// Whose habits are followed where the founding documents differ from one another.
    pub profile: Profile,
    /// Whether the Janix mcp-validator is to be satisfied: `initialize` may be repeated,
    /// `server/info` and `shutdown` are answered (C07, C51). Only legacy revisions are affected.
    pub mcp_validator: bool,
    /// Whether tools may be called as methods of their own on pipes, and without a handshake: the
    /// native view (S003-05, C49). Over HTTP there is none.
    pub native: bool,
    /// What a message may be like.
    pub limits: Limits,
    /// The largest answer, in bytes; a larger one becomes an error (C09).
    pub max_answer: usize,
    /// How many calls one connection or session may have in flight.
    pub max_in_flight: usize,
    /// How long a question to the client may stay unanswered, and a parked call wait for its retry.
    pub answer_time: Duration,
    /// How many calls may be parked at once.
    pub max_parked: usize,
    /// How long further questions of a call are waited for before the first ones are put.
    pub collect_window: Duration,
    /// How long work in flight may take to finish when the server ends.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            served: Served::Both,
            newest_handshake: Revision::NEWEST_HANDSHAKE,
            profile: Profile::default(),
            mcp_validator: false,
            native: false,
            limits: Limits::default(),
            max_answer: 10 * 1024 * 1024,
            max_in_flight: 4096,
            answer_time: Duration::from_mins(5),
            max_parked: 10_000,
            collect_window: Duration::from_millis(25),
            drain: Duration::from_secs(5),
        }
    }
}

/// A set of habits for clients that expect those of an older system. Only legacy revisions are
/// affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// What the specification says.
    #[default]
    Plexus,
    /// As the Substrate documents have it: `-32002` for requests in the wrong state (C05), an
    /// unsupported version is an error instead of a counter-offer (C03).
    Substrate,
}

impl Options {
    pub(crate) fn rules(&self, base: Rules) -> Rules {
        let error_code = match self.profile {
            Profile::Plexus => base.error_code,
            Profile::Substrate => code::LEGACY_RESOURCE_NOT_FOUND,
        };
        Rules {
            error_code,
            reinitialize: base.reinitialize || self.mcp_validator,
            // Whoever initializes twice does not say that it is ready twice.
            wait_for_initialized: base.wait_for_initialized && !self.mcp_validator,
            ..base
        }
    }
}
