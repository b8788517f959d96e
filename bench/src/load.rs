//! The load generator: closed loops over connections or over a pipe.

pub(crate) mod http;
pub(crate) mod stdio;

use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::usage::{ProcessTree, Usage, machine_cpu};

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
    /// The number of answers within the window.
    pub(crate) answers: u64,
    /// The latencies of those whose request was sent within the window as well.
    pub(crate) latencies: Histogram,
    pub(crate) elapsed: Duration,
    /// What the measured process and its descendants used.
    pub(crate) subject: Usage,
    /// CPU time that the generator spent. If it is near `elapsed`, the generator limits the rate.
    pub(crate) generator_cpu: Duration,
    /// CPU time that all processes and the kernel spent.
    pub(crate) machine_cpu: Duration,
}

/// The warm-up, and then the window in which requests are counted.
struct Window {
    load: Load,
    /// Found before the warm-up, because finding it takes milliseconds.
    subject: ProcessTree,
    generator: ProcessTree,
    /// When the current phase began: the warm-up or the window.
    began: Instant,
    /// Number of requests that were answered in this phase.
    answered: usize,
    at_start: Option<Counters>,
    latencies: Histogram,
}

/// For a slow server, the window lasts longer, until every connection has had this many answers.
const MIN_ANSWERS_PER_CONNECTION: usize = 3;
/// The window lasts at most this many times its usual duration.
const MAX_WINDOW_FACTOR: u32 = 4;

#[derive(Clone, Copy)]
struct Counters {
    subject: Usage,
    generator: Usage,
    machine_cpu: Duration,
}

impl Window {
    /// Begins the warm-up.
    fn begin(load: Load, subject: u32) -> anyhow::Result<Self> {
        Ok(Self {
            load,
            subject: ProcessTree::of(subject)?,
            generator: ProcessTree::only(std::process::id()),
            began: Instant::now(),
            answered: 0,
            at_start: None,
            latencies: Histogram::default(),
        })
    }

    fn counters(&self) -> anyhow::Result<Counters> {
        Ok(Counters {
            subject: self.subject.usage(),
            generator: self.generator.usage(),
            machine_cpu: machine_cpu()?,
        })
    }

    /// Counts a request that was answered at `now`.
    fn count(&mut self, sent: Instant, now: Instant) {
        self.answered += 1;
        // The generator reads the counters at the start of the window. Requests that are in flight
        // then wait for it, and not for the subject.
        if self.at_start.is_some() && sent >= self.began {
            let took = now.duration_since(sent).as_nanos();
            self.latencies
                .record(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    /// Ends the warm-up after its time; returns the result when the window is over.
    fn advance(&mut self, now: Instant) -> anyhow::Result<Option<LoadResult>> {
        let Some(before) = self.at_start else {
            if self.is_over(self.load.warm_up, 1, now) {
                self.at_start = Some(self.counters()?);
                self.began = Instant::now();
                self.answered = 0;
            }
            return Ok(None);
        };
        if !self.is_over(self.load.window, MIN_ANSWERS_PER_CONNECTION, now) {
            return Ok(None);
        }
        let after = self.counters()?;
        Ok(Some(LoadResult {
            answers: self.answered as u64,
            latencies: std::mem::take(&mut self.latencies),
            elapsed: now.duration_since(self.began),
            subject: after.subject.since(before.subject),
            generator_cpu: after.generator.since(before.generator).cpu,
            machine_cpu: after.machine_cpu.saturating_sub(before.machine_cpu),
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
