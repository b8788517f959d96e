//! A run: its options, its measurements and its results.

use std::time::Duration;

use tokio::time::Instant;

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
    /// How long a server that has just started is warmed up. A runtime with a just-in-time compiler
    /// needs seconds until it is as fast as it gets.
    pub(crate) first_warm_up: Duration,
    /// The warm-up of each measurement.
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
    /// How long after a load the memory is measured again; `None` if it is not.
    pub(crate) settling_time: Option<Duration>,
}

impl Effort {
    pub(crate) fn quick() -> Self {
        Self {
            quick: true,
            rounds: 3,
            // No rivals are measured.
            first_warm_up: Duration::ZERO,
            warm_up: Duration::from_millis(100),
            window: Duration::from_millis(400),
            settling_time: None,
        }
    }

    pub(crate) fn full() -> Self {
        Self {
            quick: false,
            rounds: 3,
            first_warm_up: Duration::from_secs(2),
            warm_up: Duration::from_millis(150),
            window: Duration::from_millis(500),
            settling_time: Some(Duration::from_mins(1)),
        }
    }

    pub(crate) fn load(&self, concurrency: usize) -> Load {
        Load {
            concurrency,
            warm_up: self.warm_up,
            window: self.window,
        }
    }

    /// The load of a process that has just started.
    pub(crate) fn first_load(&self, concurrency: usize) -> Load {
        Load {
            warm_up: self.warm_up.max(self.first_warm_up),
            ..self.load(concurrency)
        }
    }
}

/// After this many answers, a server is warm: it has compiled what it runs often.
const WARM_ANSWERS: u64 = 20_000;
/// A warm-up is a series of loads of this duration.
const WARM_UP_SLICE: Duration = Duration::from_millis(200);
const WARM_UP_CONNECTIONS: usize = 16;

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
        if self.has_failed(part, point, subject) {
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

    /// Whether `subject` failed at `point` in this round or an earlier one.
    pub(crate) fn has_failed(&self, part: &str, point: &str, subject: &str) -> bool {
        let row = self.results.row(part, point, subject);
        row.is_some_and(|row| row.failure.is_some())
    }

    /// Warms up a server that has just started, with the requests of a measurement. If that fails,
    /// so does the measurement, which says why.
    pub(crate) fn warm_up(&self, target: &Target, job: &Job) {
        let slice = Load {
            concurrency: WARM_UP_CONNECTIONS,
            warm_up: Duration::ZERO,
            window: WARM_UP_SLICE,
        };
        let began = Instant::now();
        let mut answers = 0;
        while answers < WARM_ANSWERS && began.elapsed() < self.effort.first_warm_up {
            match http::run(target, job, slice) {
                Ok(loaded) => answers += loaded.answers,
                Err(_) => return,
            }
        }
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
            "p999_us" | "busy" | "machine_cpu_us" | "switches" | "generator_busy" | "mib_s"
        ) {
            let precision = usize::from(*value < 100.0);
            shown.push(format!("{name} {value:.precision$}"));
        }
    }
    format!("{what:<76} {}", shown.join("  "))
}
