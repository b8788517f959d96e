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

/// A set of habits for clients and validators that expect those of an older system. Only legacy
/// revisions are affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// What the specification says.
    #[default]
    Plexus,
    /// As the Substrate documents have it: `-32002` for requests in the wrong state (C05), an
    /// unsupported version is an error instead of a counter-offer (C03).
    Substrate,
    /// What the Janix mcp-validator needs: `initialize` may be repeated, `server/info` and
    /// `shutdown` are answered (C07, C51).
    McpValidator,
}

impl Profile {
    pub(crate) fn rules(self, base: Rules) -> Rules {
        match self {
            Self::Plexus => base,
            Self::Substrate => Rules {
                error_code: code::LEGACY_RESOURCE_NOT_FOUND,
                ..base
            },
            Self::McpValidator => Rules {
                reinitialize: true,
                ..base
            },
        }
    }
}
