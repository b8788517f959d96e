use std::time::SystemTime;

/// Seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "tokens live by the clock on the wall"
)]
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
