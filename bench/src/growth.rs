//! How cost grows with size: `plexus-bench growth`.
//!
//! Each series measures one figure at growing sizes. A series fails if its total cost grows faster
//! than its size, and some figures have a bound. Nothing leaves this machine: servers listen on the
//! loopback address, and all files are in one temporary folder.

mod client;
mod connections;
mod gateway;
mod memories;
mod messages;
mod plot;
mod report;
mod rules;
mod series;
mod servers;
mod sessions;
mod tasks;
mod tools;
mod upstream;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use tokio::time::Instant;

use gateway::Gateways;
use report::Report;
pub(crate) use upstream::serve as serve_upstream;

/// How to measure growth.
#[derive(Debug, Args)]
pub(crate) struct GrowthArgs {
    /// The `plexus` binary.
    #[arg(long)]
    plexus: PathBuf,
    /// The folder to write `growth.md` and the plots to.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Only these parts, separated by commas: tools, servers, sessions, rules, tasks, memories,
    /// messages, connections.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The largest size that is measured, for a quick look.
    #[arg(long, default_value_t = u32::MAX)]
    max: u32,
    /// A fact to state in the report, as in `commit=abc`.
    #[arg(long)]
    say: Vec<String>,
}

/// Measures a part, and adds its series and bounds to the report.
type Part = fn(&Gateways, &mut Report) -> anyhow::Result<()>;

const PARTS: [(&str, Part); 8] = [
    ("tools", tools::measure),
    ("servers", servers::measure),
    ("sessions", sessions::measure),
    ("rules", rules::measure),
    ("tasks", tasks::measure),
    ("memories", memories::measure),
    ("messages", messages::measure),
    ("connections", connections::measure),
];

/// Runs all parts.
///
/// # Errors
/// A part could not be measured, a series grows too fast, or a bound does not hold.
pub(crate) fn run(arguments: &GrowthArgs) -> anyhow::Result<()> {
    for name in &arguments.only {
        let is_known = PARTS.iter().any(|(part, _)| part == name);
        ensure!(is_known, "there is no part {name}");
    }
    crate::process::allow_many_files();
    let plexus = arguments.plexus.canonicalize();
    let plexus = plexus.with_context(|| format!("no {}", arguments.plexus.display()))?;
    let gateways = Gateways::new(plexus, arguments.max)?;
    let mut report = Report::new(&arguments.say);
    for (name, measure) in PARTS {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        let began = Instant::now();
        if let Err(error) = measure(&gateways, &mut report) {
            report.failed(name, &error);
        }
        let seconds = began.elapsed().as_secs_f64();
        progress(&format!("{name}: measured in {seconds:.0} s\n"));
    }
    if let Some(folder) = &arguments.report {
        report.write(folder).with_context(|| shown(folder))?;
    }
    let failures = report.failures();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Prints progress.
#[expect(clippy::print_stderr, reason = "the progress of a run is for people")]
fn progress(text: &str) {
    eprintln!("{text}");
}

fn shown(path: &Path) -> String {
    format!("cannot write to {}", path.display())
}
