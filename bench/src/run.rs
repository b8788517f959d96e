//! `plexus-bench run`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::time::Instant;

use crate::bench::{Bench, Effort, say};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::process::{Cores, allow_many_files};
use crate::report;
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
    let before = arguments.against.as_ref().map(|file| {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice::<Results>(&text).context("no figures of a run")
    });
    let before = before.transpose()?;
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
    let results = bench.results;
    if let Some(file) = &arguments.save {
        fs::write(file, serde_json::to_vec_pretty(&results)?)?;
    }
    report::print(&results, before.as_ref());
    let failed = report::failures(&results);
    if failed > 0 {
        bail!("{failed} measurements failed");
    }
    Ok(())
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
