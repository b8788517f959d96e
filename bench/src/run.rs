//! `plexus-bench run`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tokio::time::Instant;

use crate::bench::{Bench, Effort, print_progress};
use crate::launcher::Launcher;
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::process::{Cores, allow_many_files};
use crate::report::{self, Report};
use crate::results::Results;
use crate::run_metadata::RunMetadata;
use crate::servers::ProgramPaths;

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
    /// Measure only these parts: server, stdio, gateway, lists, memory, start.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a report with charts to this folder.
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// A further fact for the report, such as the date or the commit.
    #[arg(long = "say", value_name = "NAME=VALUE", value_parser = parse_fact)]
    said: Vec<(String, String)>,
    /// Compare with the figures in this file.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

type Part = fn(&mut Bench);

const PARTS: [(&str, Part); 6] = [
    (server::PART, server::round),
    (stdio::PART, stdio::round),
    (gateway::PART, gateway::round),
    (lists::PART, lists::round),
    (memory::PART, memory::round),
    (start::PART, start::round),
];

/// Measures all parts, round by round.
pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<()> {
    let before = arguments.against.as_deref().map(Report::read).transpose()?;
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
    let cores = Cores::take()?;
    let mut bench = Bench {
        paths: ProgramPaths {
            bench: std::env::current_exe()?,
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
    let began = Instant::now();
    for round in 1..=effort.rounds {
        print_progress(&format!("round {round} of {}", effort.rounds));
        for part in &parts {
            part(&mut bench);
        }
    }
    print_progress(&format!("measured in {:.0?}", began.elapsed()));
    let report = Report {
        about: RunMetadata::new(&arguments.said, &effort, &bench.paths, cores),
        results: bench.results,
    };
    if let Some(file) = &arguments.save {
        fs::write(file, serde_json::to_vec_pretty(&report)?)?;
    }
    if let Some(folder) = &arguments.report {
        report.write(folder)?;
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

fn wanted(only: &[String]) -> anyhow::Result<Vec<Part>> {
    for name in only {
        if !PARTS.iter().any(|(part, _)| part == name) {
            let names: Vec<_> = PARTS.iter().map(|(part, _)| *part).collect();
            bail!(
                "there is no part '{name}'; the parts are: {}",
                names.join(", ")
            );
        }
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    let parts = PARTS.iter().filter(|(name, _)| is_wanted(name));
    Ok(parts.map(|(_, part)| *part).collect())
}
