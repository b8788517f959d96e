use std::time::SystemTime;

/// The current time in seconds since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the times in tokens are wall-clock times"
)]
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
