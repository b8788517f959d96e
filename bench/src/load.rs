//! The load generator: closed loops over connections or over a pipe.

pub(crate) mod http;
pub(crate) mod stdio;

use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::process::cpu_time;

/// How long a process may take until it is ready.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a server under load may take for an answer. After that, the measurement has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of connections and the duration of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Requests that are in flight at any time.
    pub(crate) concurrency: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

/// The result of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct LoadResult {
    pub(crate) latencies: Histogram,
    pub(crate) elapsed: Duration,
    /// CPU time that the measured process spent.
    pub(crate) server_cpu: Duration,
    /// CPU time that the generator spent. If it is near `elapsed`, the generator limits the rate.
    pub(crate) generator_cpu: Duration,
}

/// The warm-up, and then the window in which requests are counted.
struct Window {
    load: Load,
    subject: u32,
    /// When the current phase began: the warm-up or the window.
    began: Instant,
    /// Number of requests that were answered in this phase.
    answered: usize,
    at_start: Option<Cpu>,
    latencies: Histogram,
}

/// For a slow server, the window lasts longer, until every connection has had this many answers.
const MIN_ANSWERS_PER_CONNECTION: usize = 3;
/// The window lasts at most this many times its usual duration.
const MAX_WINDOW_FACTOR: u32 = 4;

#[derive(Clone, Copy)]
struct Cpu {
    server: Duration,
    generator: Duration,
}

impl Cpu {
    fn now(subject: u32) -> anyhow::Result<Self> {
        Ok(Self {
            server: cpu_time(subject)?,
            generator: cpu_time(std::process::id())?,
        })
    }
}

impl Window {
    /// Begins the warm-up.
    fn begin(load: Load, subject: u32) -> Self {
        Self {
            load,
            subject,
            began: Instant::now(),
            answered: 0,
            at_start: None,
            latencies: Histogram::default(),
        }
    }

    /// Counts a request that was answered at `now`.
    fn count(&mut self, sent: Instant, now: Instant) {
        self.answered += 1;
        if self.at_start.is_some() {
            let took = now.duration_since(sent).as_nanos();
            self.latencies
                .record(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    /// Ends the warm-up after its time; returns the result when the window is over.
    fn advance(&mut self, now: Instant) -> anyhow::Result<Option<LoadResult>> {
        let Some(before) = self.at_start else {
            if self.is_over(self.load.warm_up, 1, now) {
                self.at_start = Some(Cpu::now(self.subject)?);
                self.began = now;
                self.answered = 0;
            }
            return Ok(None);
        };
        if !self.is_over(self.load.window, MIN_ANSWERS_PER_CONNECTION, now) {
            return Ok(None);
        }
        let after = Cpu::now(self.subject)?;
        Ok(Some(LoadResult {
            latencies: std::mem::take(&mut self.latencies),
            elapsed: now.duration_since(self.began),
            server_cpu: after.server.saturating_sub(before.server),
            generator_cpu: after.generator.saturating_sub(before.generator),
        }))
    }

    fn is_over(&self, usual: Duration, answers_per_connection: usize, now: Instant) -> bool {
        let elapsed = now.duration_since(self.began);
        let is_enough = self.answered >= answers_per_connection * self.load.concurrency;
        elapsed >= usual && (is_enough || elapsed >= MAX_WINDOW_FACTOR * usual)
    }
}

#[cfg(test)]
mod tests;
