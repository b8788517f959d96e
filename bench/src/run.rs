//! `plexus-bench run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tokio::time::Instant;

use crate::bench::{Bench, Effort, print_progress};
use crate::launcher::Launcher;
use crate::part::{gateway, lists, load_memory, memory, policy, server, start, stdio};
use crate::placement::{Cores, Placement};
use crate::process::allow_many_files;
use crate::report::{self, Notes, Report};
use crate::results::Results;
use crate::run_metadata::{self, Build, RunMetadata};
use crate::servers::{self, ProgramPaths};

/// The options of `plexus-bench run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The `plexus` binary.
    #[arg(long)]
    plexus: PathBuf,
    /// The folder with the installed rivals.
    #[arg(long)]
    rivals: Option<PathBuf>,
    /// Measure only what shows the effect of a change.
    #[arg(long)]
    quick: bool,
    /// The number of rounds.
    #[arg(long)]
    rounds: Option<usize>,
    /// The duration of each measurement, in milliseconds.
    #[arg(long, value_name = "MS")]
    window: Option<u64>,
    /// Measure only these parts: server, stdio, gateway, policy, lists, memory, load-memory, start.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a report with charts to this folder.
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// A file that says how each subject was built: lines with the subject, its version, the build
    /// command and the profile, separated by tabs.
    #[arg(long, value_name = "FILE")]
    builds: Option<PathBuf>,
    /// A file with the causes of missed criteria, by their names.
    #[arg(long, value_name = "FILE")]
    causes: Option<PathBuf>,
    /// A further fact for the report, such as the date or the commit.
    #[arg(long = "say", value_name = "NAME=VALUE", value_parser = parse_fact)]
    said: Vec<(String, String)>,
    /// Compare with the figures in this file.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// A part of a run.
struct Part {
    name: &'static str,
    round: fn(&mut Bench),
    placements: &'static [Placement],
    /// Whether it is measured in the first round only.
    is_measured_once: bool,
}

impl Part {
    const fn new(name: &'static str, round: fn(&mut Bench)) -> Self {
        Self {
            name,
            round,
            placements: &[Placement::AllCores],
            is_measured_once: false,
        }
    }

    const fn in_all_placements(name: &'static str, round: fn(&mut Bench)) -> Self {
        Self {
            placements: &Placement::ALL,
            ..Self::new(name, round)
        }
    }
}

const PARTS: [Part; 8] = [
    Part::in_all_placements(server::PART, server::round),
    Part::in_all_placements(stdio::PART, stdio::round),
    Part::in_all_placements(gateway::PART, gateway::round),
    Part::new(policy::PART, policy::round),
    Part::new(lists::PART, lists::round),
    Part::new(memory::PART, memory::round),
    Part {
        is_measured_once: true,
        ..Part::new(load_memory::PART, load_memory::round)
    },
    Part::new(start::PART, start::round),
];

/// Measures all parts, round by round.
pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<()> {
    let before = arguments.against.as_deref().map(Report::read).transpose()?;
    let notes = Notes::read(arguments.causes.as_deref(), None)?;
    let builds = match &arguments.builds {
        Some(file) => Build::read(&fs::read_to_string(file)?)?,
        None => Vec::new(),
    };
    let parts = wanted(&arguments.only)?;
    let mut effort = if arguments.quick {
        Effort::quick()
    } else {
        Effort::full()
    };
    effort.rounds = arguments.rounds.unwrap_or(effort.rounds);
    if let Some(window) = arguments.window {
        effort.window = Duration::from_millis(window);
    }
    allow_many_files();
    let cores = Cores::find()?;
    let program = std::env::current_exe()?;
    let mut bench = Bench {
        paths: ProgramPaths {
            server: program.with_file_name("plexus-repeat"),
            bench: program,
            plexus: fs::canonicalize(&arguments.plexus).context("no plexus to measure")?,
            rivals: arguments
                .rivals
                .as_ref()
                .map(fs::canonicalize)
                .transpose()?,
            compares: !arguments.quick,
        },
        launcher: Launcher::new(cores)?,
        effort,
        results: Results::default(),
    };
    servers::check_upstream(&bench.paths)?;
    if !arguments.quick && arguments.only.is_empty() {
        check_complete(bench.paths.rivals.as_deref())?;
    }
    let began = Instant::now();
    for round in 1..=effort.rounds {
        print_progress(&format!("round {round} of {}", effort.rounds));
        let parts = parts.iter();
        for part in parts.filter(|part| round == 1 || !part.is_measured_once) {
            for placement in part.placements {
                bench.launcher.place(*placement)?;
                (part.round)(&mut bench);
            }
        }
    }
    let took = began.elapsed();
    print_progress(&format!("measured in {took:.0?}"));
    let said = &arguments.said;
    let report = Report {
        about: RunMetadata::new(said, builds, &effort, &bench.paths, cores, took),
        results: bench.results,
    };
    if let Some(file) = &arguments.save {
        fs::write(file, serde_json::to_vec_pretty(&report)?)?;
    }
    if let Some(folder) = &arguments.report {
        report.write(folder, &notes)?;
    }
    report::print(&report, before.as_ref());
    let ours: Vec<_> = report::failures_of_ours(&report.results).collect();
    ensure!(ours.is_empty(), "measurements failed: {}", ours.join("; "));
    Ok(())
}

fn parse_fact(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Checks that all rivals are installed: without one, a ratio to the best rival would be of another.
fn check_complete(rivals: Option<&Path>) -> anyhow::Result<()> {
    let missing = rivals.map(run_metadata::missing).unwrap_or_default();
    let reasons: Vec<_> = missing
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    ensure!(
        reasons.is_empty(),
        "a full run needs all rivals, and bench/rivals/install could not install some (--only \
         measures parts without them):\n{}",
        reasons.join("\n")
    );
    Ok(())
}

fn wanted(only: &[String]) -> anyhow::Result<Vec<Part>> {
    for name in only {
        if !PARTS.iter().any(|part| part.name == name) {
            let names = PARTS.map(|part| part.name);
            bail!(
                "there is no part '{name}'; the parts are: {}",
                names.join(", ")
            );
        }
    }
    let is_wanted = |part: &Part| only.is_empty() || only.iter().any(|name| name == part.name);
    Ok(PARTS.into_iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_that_is_not_installed_fails_a_full_run() {
        let folder = tempfile::tempdir().unwrap();
        check_complete(None).unwrap();
        check_complete(Some(folder.path())).unwrap();
        fs::write(folder.path().join("node.missing"), "no network\n").unwrap();
        let failed = check_complete(Some(folder.path())).unwrap_err().to_string();
        assert!(failed.ends_with("\nnode: no network"), "{failed}");
    }
}
