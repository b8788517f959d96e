//! `[limits]` in `plexus.toml`: limits, timeouts and sizes.

#[cfg(test)]
mod schema;

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use plexus_mcp_client::Definition;
use serde::Deserialize;
use serde_json::Value;

use crate::problem::ConfigProblem;

const KIBIBYTE: usize = 1024;
const MEBIBYTE: usize = 1024 * KIBIBYTE;

/// Allowed sizes. A smaller limit than the minimum would refuse every message.
const SIZE_RANGE_BYTES: RangeInclusive<usize> = KIBIBYTE..=1024 * MEBIBYTE;
/// Allowed counts.
const COUNT_RANGE: RangeInclusive<usize> = 1..=1_000_000;
/// Allowed times: from a millisecond to thirty days.
const TIMEOUT_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_hours(24 * 30);

/// Defines [`Limits`], its defaults, and the table of the file: each key once, with its
/// documentation, its type, its default and the range of its values.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $key:ident: $type:ty = $default:expr, $range:expr;)*) => {
        /// Limits, timeouts and sizes that an operator may change. They are read when Plexus starts.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[doc = $doc])* pub $key: $type,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl Limits {
            /// The keys and their values, as a file has them.
            pub(super) fn values(&self) -> Vec<(&'static str, Value)> {
                vec![$((stringify!($key), self.$key.to_value()),)*]
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for LimitsTable {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "LimitsTable".into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let default = Limits::default();
                let mut properties = serde_json::Map::new();
                $({
                    let key = stringify!($key);
                    let text = concat!($($doc, "\n"),*);
                    let schema = schema::of(key, text, &default.$key, &$range);
                    properties.insert(key.to_owned(), schema);
                })*
                schemars::json_schema!({
                    "type": "object",
                    "description": "Limits, timeouts and sizes. They are read when Plexus starts.",
                    "properties": properties,
                    "additionalProperties": false,
                })
            }
        }

        /// The table of one file, in which each key may be left out.
        #[derive(Deserialize, Default)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct LimitsTable {
            $($key: Option<<$type as Limit>::Written>,)*
        }

        impl LimitsTable {
            /// The limits that the file sets, with defaults for the rest.
            ///
            /// # Errors
            /// A value is outside of its range, or contradicts another.
            pub(super) fn limits(&self, file: &Path) -> Result<Limits, ConfigProblem> {
                let mut limits = Limits::default();
                $(if let Some(written) = self.$key {
                    limits.$key = Limit::within(written, &$range)
                        .map_err(|advice| out_of_range(file, stringify!($key), &written, advice))?;
                })*
                limits.check(file)?;
                Ok(limits)
            }
        }
    };
}

limits! {
    /// The largest message that a client may send, in bytes: an HTTP request body, or a line on
    /// standard input.
    max_message_bytes: usize = MEBIBYTE, SIZE_RANGE_BYTES;
    /// The most messages in one JSON-RPC batch of a client.
    max_batch_messages: usize = 100, COUNT_RANGE;
    /// The largest result that a client is sent, in bytes. A larger one becomes an error.
    max_answer_bytes: usize = 10 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// The most requests that one connection or session may have in flight.
    max_in_flight_requests: usize = 4096, COUNT_RANGE;
    /// The most parked calls: calls that wait until their client retries them with the answers to
    /// their questions.
    max_parked_calls: usize = 10_000, COUNT_RANGE;
    /// The most bytes that the parameters and questions of all parked calls may have together.
    max_parked_bytes: usize = 64 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// How long a client may take to answer a question, and how long a parked call waits for its
    /// retry. The option `--answer-time` takes precedence.
    answer_timeout_seconds: Duration = Duration::from_mins(5), TIMEOUT_RANGE;
    /// The most resources that one session, or one `subscriptions/listen` stream, may subscribe to.
    max_resource_subscriptions: usize = 1000, COUNT_RANGE;
    /// How long requests in flight may take to finish after a signal, or after the client on standard
    /// input has gone. Clients that start Plexus as a program often kill it after two seconds.
    shutdown_drain_seconds: Duration = Duration::from_millis(700), TIMEOUT_RANGE;

    /// The most HTTP connections at a time, if the limit on open files (`ulimit -n`) allows so many.
    /// A further one takes the place of a connection that is idle or whose client does not read, else
    /// it waits.
    max_connections: usize = 16_384, COUNT_RANGE;
    /// How long a client may leave a response unread. Its connection is then closed.
    write_timeout_seconds: Duration = Duration::from_secs(30), TIMEOUT_RANGE;
    /// The most bytes of responses that wait for clients to read them, on all connections together.
    /// Beyond that, the connections whose clients have not read for the longest time are closed.
    max_unread_bytes: usize = 64 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// The largest head of an HTTP request, from 8192 to 1048576 bytes.
    max_request_head_bytes: usize = 64 * KIBIBYTE, 8 * KIBIBYTE..=MEBIBYTE;
    /// How long the head of an HTTP request may take to arrive. This is also how long a connection
    /// may be idle between two requests.
    request_head_timeout_seconds: Duration = Duration::from_secs(30), TIMEOUT_RANGE;
    /// The longest pause between two pieces of an HTTP request body.
    request_body_idle_timeout_seconds: Duration = Duration::from_secs(15), TIMEOUT_RANGE;
    /// How long an HTTP request body may take to arrive.
    request_body_timeout_seconds: Duration = Duration::from_mins(1), TIMEOUT_RANGE;
    /// How long an event stream may be silent before a comment is sent to keep its connection open.
    stream_keep_alive_seconds: Duration = Duration::from_secs(15), TIMEOUT_RANGE;
    /// The most HTTP sessions (revisions up to 2025-11-25). When the table is full, a new session
    /// evicts the longest idle session of the principal that has the most sessions.
    max_sessions: usize = 65_536, COUNT_RANGE;
    /// The most HTTP sessions of one principal, at most `max_sessions`. Beyond that, a new session
    /// evicts the longest idle session of the same principal.
    max_sessions_per_principal: usize = 32_768, COUNT_RANGE;
    /// How long an HTTP session may be idle before it ends.
    session_idle_timeout_seconds: Duration = Duration::from_hours(1), TIMEOUT_RANGE;
    /// The most messages that an event stream keeps for a client that reconnects with `Last-Event-ID`.
    max_replay_messages: usize = 256, COUNT_RANGE;
    /// The most bytes that an event stream keeps for a client that reconnects.
    max_replay_bytes: usize = 4 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// The most bytes that all event streams keep together. Beyond that, the principal whose streams
    /// keep the most loses its oldest messages.
    max_replay_total_bytes: usize = 64 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// How long an event stream that has ended is kept for a client that reconnects.
    replay_timeout_seconds: Duration = Duration::from_mins(5), TIMEOUT_RANGE;

    /// The largest message that a server may send, in bytes: an HTTP response body, the data of an
    /// event, or a line on standard output.
    max_server_message_bytes: usize = 16 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// The most entries in one list of a server: tools, resources, templates or prompts. Further
    /// entries are left out.
    max_listed_entries: usize = 100_000, COUNT_RANGE;
    /// The most bytes of all pages of one list of a server. Further pages are left out.
    max_listed_bytes: usize = 64 * MEBIBYTE, SIZE_RANGE_BYTES;
    /// How long the handshake of a server may take. Its lists then have the same time again. The
    /// key `startup_timeout` of a server takes precedence.
    connect_timeout_seconds: Duration = Duration::from_secs(30), TIMEOUT_RANGE;
    /// How long a server may take to answer a request that is not a tool call.
    request_timeout_seconds: Duration = Duration::from_mins(1), TIMEOUT_RANGE;
    /// How long a tool call may run without a response, a progress notification or a question. The
    /// key `timeout_ms` of a server takes precedence. It cannot be larger than
    /// `call_total_timeout_seconds`.
    call_timeout_seconds: Duration = Duration::from_mins(10), TIMEOUT_RANGE;
    /// How long a tool call may run in all.
    call_total_timeout_seconds: Duration = Duration::from_hours(2), TIMEOUT_RANGE;
    /// The most sessions with one HTTP server of a revision up to 2025-11-25.
    max_server_sessions: usize = 64, COUNT_RANGE;
    /// The most of those sessions for the clients of one principal. It cannot be larger than
    /// `max_server_sessions`.
    max_server_sessions_per_principal: usize = 8, COUNT_RANGE;
    /// How long such a session may be idle before it is closed.
    server_session_idle_timeout_seconds: Duration = Duration::from_mins(10), TIMEOUT_RANGE;
}

impl Limits {
    /// Sets the limits of a connection to a server.
    pub fn apply_to(&self, definition: &mut Definition) {
        definition.limits.max_bytes = self.max_server_message_bytes;
        definition.max_listed = self.max_listed_entries;
        definition.max_listed_bytes = self.max_listed_bytes;
        let timeouts = &mut definition.timeouts;
        timeouts.connect = self.connect_timeout_seconds;
        timeouts.request = self.request_timeout_seconds;
        timeouts.call = self.call_timeout_seconds;
        timeouts.call_total = self.call_total_timeout_seconds;
        let sessions = &mut definition.sessions;
        sessions.max_sessions = self.max_server_sessions;
        sessions.max_per_principal = self.max_server_sessions_per_principal;
        sessions.idle_timeout = self.server_session_idle_timeout_seconds;
    }

    /// Refuses limits that contradict each other.
    fn check(&self, file: &Path) -> Result<(), ConfigProblem> {
        let pairs = [
            (
                "call_timeout_seconds",
                self.call_timeout_seconds > self.call_total_timeout_seconds,
                "call_total_timeout_seconds",
            ),
            (
                "max_server_sessions_per_principal",
                self.max_server_sessions_per_principal > self.max_server_sessions,
                "max_server_sessions",
            ),
        ];
        for (key, is_larger, bound) in pairs {
            if is_larger {
                return Err(
                    ConfigProblem::new(file, format!("it is larger than {bound}"))
                        .key(format!("limits.{key}"))
                        .advice(format!("lower it, or raise limits.{bound}")),
                );
            }
        }
        Ok(())
    }
}

/// The type of a limit: a whole number, or a time.
trait Limit: Sized {
    /// The value as the file has it.
    type Written: Copy + Display;

    /// The value, if it is within the range; else the advice which values may be used.
    fn within(written: Self::Written, range: &RangeInclusive<Self>) -> Result<Self, String>;

    /// The value as a file has it.
    fn to_value(&self) -> Value;
}

impl Limit for usize {
    type Written = WholeNumber;

    fn within(written: WholeNumber, range: &RangeInclusive<Self>) -> Result<Self, String> {
        let WholeNumber::Number(number) = written;
        let number = Self::try_from(number).ok();
        let advice = || {
            format!(
                "use a whole number from {} to {}",
                range.start(),
                range.end()
            )
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(advice)
    }

    fn to_value(&self) -> Value {
        Value::from(*self)
    }
}

impl Limit for Duration {
    type Written = Seconds;

    fn within(written: Seconds, range: &RangeInclusive<Self>) -> Result<Self, String> {
        let seconds = match written {
            #[expect(clippy::cast_precision_loss, reason = "the range is far below 2^53")]
            Seconds::Whole(seconds) => seconds as f64,
            Seconds::Fraction(seconds) => seconds,
        };
        let time = Self::try_from_secs_f64(seconds).ok();
        let advice = || {
            let (min, max) = (range.start().as_secs_f64(), range.end().as_secs());
            format!("use a number of seconds from {min} to {max}")
        };
        time.filter(|time| range.contains(time)).ok_or_else(advice)
    }

    fn to_value(&self) -> Value {
        seconds(*self)
    }
}

/// A time as a file has it: seconds, with a fraction only if it is needed.
pub(super) fn seconds(time: Duration) -> Value {
    if time.subsec_nanos() == 0 {
        Value::from(time.as_secs())
    } else {
        Value::from(time.as_secs_f64())
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(untagged, expecting = "a whole number is expected")]
enum WholeNumber {
    Number(i64),
}

impl Display for WholeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Number(number) = self;
        number.fmt(f)
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(untagged, expecting = "a number of seconds is expected")]
enum Seconds {
    Whole(i64),
    Fraction(f64),
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(seconds) => seconds.fmt(f),
            Self::Fraction(seconds) => seconds.fmt(f),
        }
    }
}

fn out_of_range(file: &Path, key: &str, written: &dyn Display, advice: String) -> ConfigProblem {
    ConfigProblem::new(file, format!("it is {written}"))
        .key(format!("limits.{key}"))
        .advice(advice)
}
