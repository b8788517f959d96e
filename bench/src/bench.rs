//! A run: its options, its measurements and its results.

use std::time::Duration;

use crate::launcher::Launcher;
use crate::load::Load;
use crate::load::http::{self, Target};
use crate::message::Job;
use crate::results::{Figures, Key, Results, of_load};
use crate::servers::ProgramPaths;

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Only the measurements that show the effect of a change.
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
    pub(crate) paths: ProgramPaths,
    pub(crate) launcher: Launcher,
    pub(crate) effort: Effort,
    pub(crate) results: Results,
}

impl Bench {
    /// Measures `subject` at `point`, and prints the result. Skips a subject that failed there in
    /// an earlier round, since it gets no figures.
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
        print_progress(&describe(part, point, subject, &measured));
        let key = Key {
            part: part.to_owned(),
            point: point.to_owned(),
            subject: subject.to_owned(),
        };
        self.results.add(key, measured);
    }

    /// Measures a load over HTTP.
    pub(crate) fn load(
        &self,
        target: &Target,
        job: &Job,
        concurrency: usize,
    ) -> anyhow::Result<Figures> {
        let measured = http::run(target, job, self.effort.load(concurrency))?;
        Ok(of_load(&measured, job.bytes()))
    }
}

/// Prints progress.
#[expect(clippy::print_stderr, reason = "the progress of a run is for people")]
pub(crate) fn print_progress(text: &str) {
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
