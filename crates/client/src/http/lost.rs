//! Requests that hyper loses.
//!
//! hyper passes a request to the task of its connection through a channel. If the connection closes at
//! the same moment, the request can stay in the channel for ever: the receiver has emptied the channel
//! just before, and the waiting request itself keeps the channel alive. So a request whose connection
//! has been closed for [`CLOSED_CONNECTION_GRACE`] fails here, unless hyper may be sending it on a
//! connection that is being opened.

use std::time::Duration;

use http::Extensions;
use hyper_util::client::legacy::connect::CaptureConnection;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::connect::ConnectionClosed;

/// How long the outcome of a request may take after its connection was closed and while no new one is
/// being opened. hyper needs only a moment for it.
const CLOSED_CONNECTION_GRACE: Duration = Duration::from_secs(1);

/// The number of connections that a client is opening.
#[derive(Debug, Clone)]
pub(super) struct OpeningConnections {
    number: watch::Sender<usize>,
    /// The longest that the opening of one may take.
    timeout: Duration,
}

/// Counts a connection as being opened, until it is dropped.
pub(super) struct Opening(watch::Sender<usize>);

impl OpeningConnections {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            number: watch::Sender::new(0),
            timeout,
        }
    }

    pub(super) fn begin(&self) -> Opening {
        self.number.send_modify(|number| *number += 1);
        Opening(self.number.clone())
    }

    /// Waits until hyper has had the time to report the outcome of a request whose connection was
    /// closed, or to send it on a new connection.
    async fn grace(&self) {
        sleep(CLOSED_CONNECTION_GRACE).await;
        let mut number = self.number.subscribe();
        if *number.borrow_and_update() > 0 {
            let opened = number.wait_for(|number| *number == 0);
            drop(timeout(self.timeout, opened).await);
            sleep(CLOSED_CONNECTION_GRACE).await;
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number -= 1);
    }
}

/// The connection was closed, and the request had no outcome.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed before the response")]
pub(super) struct Lost;

/// The output of `sending`, unless `lost` completes before. Cancel-safe if `sending` is.
pub(super) async fn unless_lost<F: Future>(
    sending: F,
    lost: impl Future<Output = ()>,
) -> Result<F::Output, Lost> {
    tokio::select! {
        biased;
        sent = sending => Ok(sent),
        () = lost => Err(Lost),
    }
}

/// Completes when the connection of a request has been closed for a while. If hyper sends the request
/// again on another connection, that one counts.
pub(super) async fn lost(mut connection: CaptureConnection, opening: OpeningConnections) {
    loop {
        let Some(ConnectionClosed(closed)) = closed_signal(&mut connection).await else {
            return std::future::pending().await;
        };
        closed.cancelled().await;
        opening.grace().await;
        let current = closed_signal(&mut connection).await;
        if current.is_none_or(|current| current.0.is_cancelled()) {
            return;
        }
    }
}

/// The signal of the request's connection, once it has one.
async fn closed_signal(connection: &mut CaptureConnection) -> Option<ConnectionClosed> {
    let metadata = connection.wait_for_connection_metadata().await;
    let mut extras = Extensions::new();
    metadata.as_ref()?.get_extras(&mut extras);
    extras.remove()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::{Instant, advance};

    use super::*;

    const OPENING_TIMEOUT: Duration = Duration::from_secs(30);

    /// A request that hyper sends again waits for the new connection, however long that takes.
    #[tokio::test(start_paused = true)]
    async fn the_grace_lasts_until_new_connections_are_open() {
        let connections = OpeningConnections::new(OPENING_TIMEOUT);
        let opening = connections.begin();
        let mut grace = Box::pin(connections.grace());
        for _ in 0..10 {
            assert!((&mut grace).now_or_never().is_none());
            advance(2 * CLOSED_CONNECTION_GRACE).await;
        }
        drop(opening);
        assert!((&mut grace).now_or_never().is_none());
        let began = Instant::now();
        grace.await;
        assert_eq!(began.elapsed(), CLOSED_CONNECTION_GRACE);
    }

    /// Requests of others that keep opening connections do not keep a lost one for ever.
    #[tokio::test(start_paused = true)]
    async fn the_grace_ends_although_connections_are_being_opened() {
        let connections = OpeningConnections::new(OPENING_TIMEOUT);
        let _opening = connections.begin();
        let began = Instant::now();
        connections.grace().await;
        assert_eq!(
            began.elapsed(),
            OPENING_TIMEOUT + 2 * CLOSED_CONNECTION_GRACE
        );
    }
}
