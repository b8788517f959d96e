//! `[limits]` of the settings, as options of the server edge.

use plexus_mcp_config::Limits;
use plexus_mcp_server::Options;
use plexus_mcp_server::http::HttpOptions;

/// Sets the limits that every transport shares.
pub(crate) fn apply(limits: &Limits, options: &mut Options) {
    options.limits.max_bytes = limits.max_message_bytes;
    options.limits.max_batch = limits.max_batch_messages;
    options.max_answer = limits.max_answer_bytes;
    options.max_in_flight = limits.max_in_flight_requests;
    options.max_parked = limits.max_parked_calls;
    options.max_parked_bytes = limits.max_parked_bytes;
    options.answer_time = limits.answer_timeout_seconds;
    options.max_resource_subscriptions = limits.max_resource_subscriptions;
    options.drain = limits.shutdown_drain_seconds;
}

/// Sets the limits of HTTP.
pub(crate) fn apply_to_http(limits: &Limits, options: &mut HttpOptions) {
    let connections = &mut options.connections;
    connections.connections = limits.max_connections;
    connections.write_stall = limits.write_timeout_seconds;
    connections.unread_bytes = limits.max_unread_bytes;
    connections.head_bytes = limits.max_request_head_bytes;
    connections.head_time = limits.request_head_timeout_seconds;
    connections.drain = limits.shutdown_drain_seconds;
    options.body_idle = limits.request_body_idle_timeout_seconds;
    options.body_total = limits.request_body_timeout_seconds;
    options.keep_alive = limits.stream_keep_alive_seconds;
    options.max_sessions = limits.max_sessions;
    options.max_sessions_per_principal = limits.max_sessions_per_principal;
    options.session_idle = limits.session_idle_timeout_seconds;
    options.replay.messages = limits.max_replay_messages;
    options.replay.bytes = limits.max_replay_bytes;
    options.replay.total_bytes = limits.max_replay_total_bytes;
    options.replay.time = limits.replay_timeout_seconds;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plexus_mcp_client::{Definition, Program, Target};

    use super::*;

    /// The defaults of `[limits]` are those of the crates that enforce them.
    #[test]
    fn default_limits_change_no_option_but_the_drain() {
        let limits = Limits::default();
        let mut expected = Options::default();
        expected.drain = Duration::from_millis(700);
        let mut options = Options::default();
        apply(&limits, &mut options);
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));

        let mut expected = HttpOptions::default();
        expected.connections.drain = Duration::from_millis(700);
        let mut options = HttpOptions::default();
        apply_to_http(&limits, &mut options);
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));

        let expected = Definition::new(Target::Stdio(Program::new("program")));
        let mut definition = expected.clone();
        limits.apply_to(&mut definition);
        assert_eq!(format!("{definition:?}"), format!("{expected:?}"));
    }
}
