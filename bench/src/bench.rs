//! A run: what is measured, how often and how long, and what came of it.

use std::time::Duration;

use crate::load::Load;
use crate::load::http::{self, Target};
use crate::message::Job;
use crate::results::{Figures, Key, Results, of_load};
use crate::servers::Places;
use crate::stage::Stage;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Only what shows whether a change pays.
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

impl Effort {
    pub(crate) fn quick() -> Self {
        Self {
            quick: true,
            rounds: 3,
            warm_up: Duration::from_millis(100),
            window: Duration::from_millis(500),
        }
    }

    pub(crate) fn full() -> Self {
        Self {
            quick: false,
            rounds: 3,
            warm_up: Duration::from_millis(150),
            window: Duration::from_millis(500),
        }
    }

    pub(crate) fn load(&self, concurrency: usize) -> Load {
        Load {
            concurrency,
            warm_up: self.warm_up,
            window: self.window,
        }
    }
}

/// A run in progress.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) places: Places,
    pub(crate) stage: Stage,
    pub(crate) effort: Effort,
    pub(crate) results: Results,
}

impl Bench {
    /// Measures `subject` at `point`, and says so; not again if it failed there in a round before,
    /// as no other round would give it figures.
    pub(crate) fn measure(
        &mut self,
        part: &str,
        point: &str,
        subject: &str,
        measure: impl FnOnce(&Self) -> anyhow::Result<Figures>,
    ) {
        let before = self.results.row(part, point, subject);
        if before.is_some_and(|row| row.failure.is_some()) {
            return;
        }
        let measured = measure(self);
        say(&describe(part, point, subject, &measured));
        let key = Key {
            part: part.to_owned(),
            point: point.to_owned(),
            subject: subject.to_owned(),
        };
        self.results.add(key, measured);
    }

    /// The figures of a load over HTTP.
    pub(crate) fn load(
        &self,
        target: &Target,
        job: &Job,
        concurrency: usize,
    ) -> anyhow::Result<Figures> {
        let seen = http::run(target, job, self.effort.load(concurrency))?;
        Ok(of_load(&seen, job.bytes()))
    }
}

/// Tells the person who waits.
#[expect(clippy::print_stderr, reason = "the progress of a run is for people")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

fn describe(part: &str, point: &str, subject: &str, measured: &anyhow::Result<Figures>) -> String {
    let what = format!("{part}: {point}: {subject}");
    let figures = match measured {
        Ok(figures) => figures,
        Err(error) => return format!("{what:<76} failed: {error:#}"),
    };
    let mut shown = Vec::new();
    for (name, value) in figures {
        if !matches!(
            name.as_str(),
            "p999_us" | "busy" | "generator_cpu_us" | "generator_busy" | "mib_s"
        ) {
            let precision = usize::from(*value < 100.0);
            shown.push(format!("{name} {value:.precision$}"));
        }
    }
    format!("{what:<76} {}", shown.join("  "))
}
