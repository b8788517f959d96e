//! The load generator: closed loops over connections or over a pipe.

pub(crate) mod http;
pub(crate) mod stdio;

use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::process::cpu_time;

/// How long a program may take until it is ready.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a server under load may be silent. Who takes longer has no figures there.
const SILENCE: Duration = Duration::from_secs(10);

/// How hard, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Requests that are in flight at any time.
    pub(crate) concurrency: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

/// What was seen in the window.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) latencies: Histogram,
    pub(crate) elapsed: Duration,
    /// CPU time that the measured process spent.
    pub(crate) server_cpu: Duration,
    /// CPU time that the generator spent; near `elapsed`, it is itself what limits the rate.
    pub(crate) generator_cpu: Duration,
}

/// The time between the warm-up and the end, in which everything counts.
struct Window {
    load: Load,
    subject: u32,
    /// When the warm-up began, then the window.
    began: Instant,
    /// How many requests were answered since then.
    answered: usize,
    at_start: Option<Cpu>,
    latencies: Histogram,
}

/// The warm-up and the window of a slow server last longer, until every connection has had so many
/// answers, but not longer than so many times the usual.
const ANSWERS_OF_EACH: usize = 3;
const LONGEST: u32 = 4;

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

    /// Counts a request that was answered `now`.
    fn count(&mut self, sent: Instant, now: Instant) {
        self.answered += 1;
        if self.at_start.is_some() {
            let took = now.duration_since(sent).as_nanos();
            self.latencies
                .record(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    /// Ends the warm-up when it is time; gives what was seen once the window is over.
    fn advance(&mut self, now: Instant) -> anyhow::Result<Option<Seen>> {
        let Some(before) = self.at_start else {
            if self.is_over(self.load.warm_up, 1, now) {
                self.at_start = Some(Cpu::now(self.subject)?);
                self.began = now;
                self.answered = 0;
            }
            return Ok(None);
        };
        if !self.is_over(self.load.window, ANSWERS_OF_EACH, now) {
            return Ok(None);
        }
        let after = Cpu::now(self.subject)?;
        Ok(Some(Seen {
            latencies: std::mem::take(&mut self.latencies),
            elapsed: now.duration_since(self.began),
            server_cpu: after.server.saturating_sub(before.server),
            generator_cpu: after.generator.saturating_sub(before.generator),
        }))
    }

    fn is_over(&self, usual: Duration, answers_of_each: usize, now: Instant) -> bool {
        let elapsed = now.duration_since(self.began);
        let is_enough = self.answered >= answers_of_each * self.load.concurrency;
        elapsed >= usual && (is_enough || elapsed >= LONGEST * usual)
    }
}

#[cfg(test)]
mod tests;
