//! Reports of a run: a page with charts, and text for the terminal.

mod charts;
pub(crate) mod compare;
mod markdown;
mod notes;
mod sections;
mod svg;
mod tables;

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::acceptance::{Bound, criteria};
use crate::part::gateway;
use crate::results::{Results, Row};
use crate::run_metadata::RunMetadata;
use crate::servers::{LIMIT, OURS};

pub(crate) use notes::Notes;

/// A saved run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) about: RunMetadata,
    pub(crate) results: Results,
}

impl Report {
    /// Reads a saved run.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("no figures of a run in {}", file.display()))
    }

    /// Writes the page, its charts and the figures into `folder`.
    pub(crate) fn write(&self, folder: &Path, notes: &Notes) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        let mut names = Vec::new();
        for (name, chart) in charts::all(&self.results) {
            fs::write(folder.join(format!("{name}.svg")), chart.draw())?;
            names.push(name.to_owned());
        }
        let page = markdown::page(self, notes, &names);
        fs::write(folder.join("README.md"), page)?;
        fs::write(
            folder.join("figures.json"),
            serde_json::to_vec_pretty(self)?,
        )?;
        Ok(())
    }
}

/// Figures for which less is better.
const COSTS: [&str; 5] = ["p50_us", "cpu_us", "resident_mib", "each_kib", "ms"];

/// Figures that are compared with the run before.
const COMPARED: [&str; 6] = [
    "req_s",
    "p50_us",
    "cpu_us",
    "resident_mib",
    "each_kib",
    "ms",
];

/// Prints all rows, with the ratio to the limit and to the run before.
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub(crate) fn print(report: &Report, before: Option<&Report>) {
    let results = &report.results;
    let mut last = "";
    for row in &results.rows {
        let point = format!("{}: {}", row.key.part, row.key.point);
        if row.key.point != last {
            println!("\n{point}");
            last = &row.key.point;
        }
        println!("  {:<18} {}", row.key.subject, line(results, row));
        if let Some(change) = before.and_then(|before| change(&before.results, row)) {
            println!("  {:<18} {change}", "");
        }
    }
    println!();
    for criterion in criteria(results) {
        if let (Some(measured), Some(is_met)) = (criterion.measured, criterion.is_met()) {
            let verdict = if is_met { "met   " } else { "MISSED" };
            let bound = match criterion.bound {
                Bound::AtLeast(bound) => format!("at least {bound}"),
                Bound::AtMost(bound) => format!("at most {bound}"),
            };
            let unit = criterion.unit;
            println!(
                "{verdict} {}: {measured:.2}{unit}, {bound} ({})",
                criterion.description, criterion.name
            );
        }
    }
    if let Some(before) = before
        && before.about.upstream != report.about.upstream
    {
        println!(
            "\nthe server behind the gateways was another one before; they cannot be compared"
        );
    }
}

/// The failures of our own programs and of the limits, which fail the run.
pub(crate) fn failures_of_ours(results: &Results) -> impl Iterator<Item = String> {
    let failed = results.rows.iter().filter(|row| row.failure.is_some());
    let is_ours =
        |subject: &str| subject.starts_with(OURS) || subject == LIMIT || subject == gateway::DIRECT;
    failed
        .filter(move |row| is_ours(&row.key.subject))
        .map(|row| format!("{}: {}: {}", row.key.part, row.key.point, row.key.subject))
}

fn line(results: &Results, row: &Row) -> String {
    if let Some(failure) = &row.failure {
        return format!("failed: {failure}");
    }
    let figure = |name: &str| row.figures.get(name).copied();
    if let Some(rate) = figure("req_s") {
        let limit = results.figure(&row.key.part, &row.key.point, LIMIT, "req_s");
        let of_limit = limit.map_or(String::new(), |limit| {
            format!("{:.2} of the limit", rate / limit)
        });
        let value = |name| figure(name).unwrap_or_default();
        return format!(
            "{rate:>9.0} req/s  p50 {:>8.1}  p99 {:>8.1}  p99.9 {:>8.1} µs  CPU {:>6.1} of \
             {:>6.1} µs  switches {:>5.2}  {of_limit}",
            value("p50_us"),
            value("p99_us"),
            value("p999_us"),
            value("cpu_us"),
            value("machine_cpu_us"),
            value("switches"),
        );
    }
    let shown = row
        .figures
        .iter()
        .map(|(name, value)| format!("{name} {value:.2}"));
    shown.collect::<Vec<_>>().join("  ")
}

/// The difference of a row from the run before, if it exceeds noise.
fn change(before: &Results, row: &Row) -> Option<String> {
    let old = before.row(&row.key.part, &row.key.point, &row.key.subject)?;
    let mut changes = Vec::new();
    for name in COMPARED {
        let (Some(now), Some(then)) = (row.figures.get(name), old.figures.get(name)) else {
            continue;
        };
        let change = (now / then - 1.0) * 100.0;
        if then.abs() > f64::EPSILON && change.abs() >= 3.0 {
            let is_better = (change < 0.0) == COSTS.contains(&name);
            let verdict = if is_better { "better" } else { "worse" };
            changes.push(format!("{name} {change:+.0} % ({verdict})"));
        }
    }
    (!changes.is_empty()).then(|| format!("against before: {}", changes.join(", ")))
}
