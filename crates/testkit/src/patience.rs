//! How long a test waits.

use std::time::Duration;

use tokio::time::timeout;

/// Far longer than anything takes, even on a busy machine; short enough to wait for in a failing
/// test.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for `future`, or fails saying `what` did not happen.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let output = timeout(PATIENCE, future).await;
    output.unwrap_or_else(|_elapsed| panic!("waited {PATIENCE:?} for {what}"))
}
