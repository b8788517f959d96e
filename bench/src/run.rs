//! `plexus-bench run`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tokio::time::Instant;

use crate::about::About;
use crate::bench::{Bench, Effort, say};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::process::{Cores, allow_many_files};
use crate::report::{self, Report};
use crate::results::Results;
use crate::servers::Places;
use crate::stage::Stage;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The product.
    #[arg(long)]
    plexus: PathBuf,
    /// The folder in which rivals are installed.
    #[arg(long)]
    rivals: Option<PathBuf>,
    /// Measure only what shows whether a change pays.
    #[arg(long)]
    quick: bool,
    /// How often everything is measured.
    #[arg(long)]
    rounds: Option<usize>,
    /// How long each measurement takes, in milliseconds.
    #[arg(long, value_name = "MS")]
    window: Option<u64>,
    /// Measure only these parts: server, stdio, gateway, lists, memory, start.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where to write the figures.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Where to write a report with charts.
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// What else the report says of the run.
    #[arg(long = "say", value_name = "NAME=VALUE", value_parser = parse_said)]
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

/// Measures everything, round by round.
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
        places: Places {
            bench: std::env::current_exe()?,
            plexus: fs::canonicalize(&arguments.plexus).context("no plexus to measure")?,
            rivals: arguments
                .rivals
                .as_ref()
                .map(fs::canonicalize)
                .transpose()?,
            compares: !arguments.quick,
        },
        stage: Stage::new(cores)?,
        effort,
        results: Results::default(),
    };
    let began = Instant::now();
    for round in 1..=effort.rounds {
        say(&format!("round {round} of {}", effort.rounds));
        for part in &parts {
            part(&mut bench);
        }
    }
    say(&format!("measured in {:.0?}", began.elapsed()));
    let report = Report {
        about: About::new(&arguments.said, &effort, &bench.places, cores),
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

fn parse_said(text: &str) -> Result<(String, String), String> {
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
