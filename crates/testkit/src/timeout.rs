//! Timeouts of tests.

use std::time::Duration;

use tokio::time::timeout;

/// The timeout of every wait in a test: longer than any operation takes, even on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for `future`; panics after the timeout with `what` as the reason.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let output = timeout(TEST_TIMEOUT, future).await;
    output.unwrap_or_else(|_elapsed| panic!("waited {TEST_TIMEOUT:?} for {what}"))
}
