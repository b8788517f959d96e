//! The load generator: closed loops over connections or over a pipe.

pub(crate) mod http;
pub(crate) mod stdio;

use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::process::cpu_time;

/// How long a server may take for an answer before the run has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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
    began: Instant,
    subject: u32,
    at_start: Option<(Instant, Cpu)>,
    latencies: Histogram,
}

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
            began: Instant::now(),
            subject,
            at_start: None,
            latencies: Histogram::default(),
        }
    }

    /// Counts a request that was answered `now`.
    fn count(&mut self, sent: Instant, now: Instant) {
        if self.at_start.is_some() {
            let took = now.duration_since(sent).as_nanos();
            self.latencies
                .record(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    /// Ends the warm-up when it is time; gives what was seen once the window is over.
    fn advance(&mut self, now: Instant) -> anyhow::Result<Option<Seen>> {
        let Some((start, before)) = self.at_start else {
            if now.duration_since(self.began) >= self.load.warm_up {
                self.at_start = Some((now, Cpu::now(self.subject)?));
            }
            return Ok(None);
        };
        let elapsed = now.duration_since(start);
        if elapsed < self.load.window {
            return Ok(None);
        }
        let after = Cpu::now(self.subject)?;
        Ok(Some(Seen {
            latencies: std::mem::take(&mut self.latencies),
            elapsed,
            server_cpu: after.server.saturating_sub(before.server),
            generator_cpu: after.generator.saturating_sub(before.generator),
        }))
    }
}

#[cfg(test)]
mod tests;
