//! Waiting for always the same time, often.
//!
//! Nearly all requests are answered long before anybody's patience ends, but whoever sets a clock for
//! each wakes the driver of all clocks each time. Here, those who begin to wait within a moment share
//! one clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::lock::lock;

/// How much longer than it should a wait may be, as a part of it.
const COARSENESS: u32 = 16;

/// Waits of one length. They end only while [`Patience::keep`] runs.
#[derive(Debug)]
pub(crate) struct Patience {
    length: Duration,
    /// Those who wait together, and until when.
    waiting: Mutex<VecDeque<(Instant, Arc<Notify>)>>,
    /// Fires when somebody begins to wait.
    begun: Notify,
}

impl Patience {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            waiting: Mutex::default(),
            begun: Notify::new(),
        }
    }

    /// Begins to wait.
    pub(crate) fn end(&self) -> OwnedNotified {
        let earliest = Instant::now() + self.length;
        let mut waiting = lock(&self.waiting);
        if let Some((end, together)) = waiting.back()
            && *end >= earliest
        {
            return Arc::clone(together).notified_owned();
        }
        let together = Arc::new(Notify::new());
        waiting.push_back((earliest + self.length / COARSENESS, Arc::clone(&together)));
        drop(waiting);
        self.begun.notify_one();
        together.notified_owned()
    }

    /// Ends the waits whose time has come, until nobody waits any more.
    pub(crate) async fn keep(&self, over: &CancellationToken) {
        while over.run_until_cancelled(self.end_next()).await.is_some() {}
    }

    /// Ends the next waits when it is time.
    async fn end_next(&self) {
        let next = lock(&self.waiting).front().map(|(end, _)| *end);
        let Some(next) = next else {
            return self.begun.notified().await;
        };
        sleep_until(next).await;
        if let Some((_, together)) = lock(&self.waiting).pop_front() {
            together.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(16);

    /// Nobody waits less than he should, nor much longer.
    #[tokio::test(start_paused = true)]
    async fn waits_end_when_their_time_has_come() {
        let (patience, never) = (Patience::new(LENGTH), CancellationToken::new());
        let waiting = async {
            let began = Instant::now();
            let first = patience.end();
            advance(Duration::from_millis(900)).await;
            let second = patience.end();
            advance(Duration::from_secs(5)).await;
            let (third, third_began) = (patience.end(), Instant::now());
            first.await;
            assert_eq!(began.elapsed(), Duration::from_secs(17));
            assert!(second.now_or_never().is_some(), "it shares the clock");
            third.await;
            let waited = third_began.elapsed();
            let longest = LENGTH + LENGTH / COARSENESS;
            assert!((LENGTH..=longest).contains(&waited), "{waited:?}");
        };
        tokio::select! {
            () = waiting => {}
            () = patience.keep(&never) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_after_a_pause_is_kept_as_well() {
        let (patience, never) = (Patience::new(LENGTH), CancellationToken::new());
        let waiting = async {
            for _ in 0..3 {
                patience.end().await;
                tokio::time::sleep(LENGTH * 3).await;
            }
        };
        tokio::select! {
            () = waiting => {}
            () = patience.keep(&never) => {}
        }
    }
}
