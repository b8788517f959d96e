//! The report as a page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::svg::rounded;
use crate::about::About;
use crate::acceptance::{Bound, Demand};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::results::{Results, Row};
use crate::servers::LIMIT;

const METHOD: &str = "\
This page is written by `bench/run`, which anyone can run again; the figures are in
[`figures.json`](figures.json). All subjects are put through the same points, in turn, in each of
several rounds, and what is shown are the medians. Whatever is measured has one core, the load
generator another; servers behind a gateway share the generator's core where there is no third one.
The generator keeps connections open, has one request in flight on each, and checks the id and the
content of every answer: one wrong answer, and there is no figure.

The **limit** is what the machine can do at all, measured in the same run: for servers a bare hyper
server that answers with a fixed body, for gateways a proxy that passes bytes on without looking at
them, for stdio a program that writes the lines it reads. Absolute figures are those of this
machine; ratios travel better. Rivals are configured for speed as far as their documentation says
how: without Nagle's algorithm, without sessions and in JSON where that exists.
An event stream of ours begins with a progress notification, as we answer in JSON otherwise.
What is in no registry of packages, as agentgateway, and what may not be used by everybody, as
mcp-gateway of crates.io, is not compared.
";

/// A page with everything.
pub(crate) fn page(
    results: &Results,
    about: &About,
    demands: &[Demand],
    charts: &[String],
) -> String {
    let mut page = format!("# Benchmark\n\n{METHOD}\n{}\n", describe(about));
    page.push_str("## What is demanded\n\n");
    page.push_str(&acceptance(demands));
    for chart in charts {
        line(&mut page, format_args!("\n![{chart}]({chart}.svg)"));
    }
    for (part, title) in [
        (server::PART, "Servers over HTTP"),
        (stdio::PART, "Servers over stdio"),
        (gateway::PART, "Gateways"),
        (lists::PART, "Lists, and many upstreams"),
    ] {
        line(&mut page, format_args!("\n## {title}\n"));
        page.push_str("Requests a second, and in parentheses the part of the limit's:\n\n");
        page.push_str(&table(results, part, |row| {
            let rate = row.figures.get("req_s")?;
            let key = &row.key;
            let limit = results.figure(part, &key.point, LIMIT, "req_s");
            let ratio = limit.filter(|_| key.subject != LIMIT);
            let ratio = ratio.map(|limit| format!(" ({:.2})", rate / limit));
            Some(format!("{}{}", rounded(*rate), ratio.unwrap_or_default()))
        }));
        page.push_str("\nLatency in µs, p50 / p99 / p99.9:\n\n");
        page.push_str(&table(results, part, |row| {
            let micros = |name| row.figures.get(name).map(|value| rounded(*value));
            let [p50, p99, p999] = ["p50_us", "p99_us", "p999_us"].map(micros);
            Some(format!("{} / {} / {}", p50?, p99?, p999?))
        }));
        page.push_str("\nCPU time of the subject for each request, in µs:\n\n");
        page.push_str(&table(results, part, |row| {
            row.figures.get("cpu_us").map(|value| rounded(*value))
        }));
    }
    page.push_str("\n## Memory\n\nMiB, KiB for each session, or a count:\n\n");
    page.push_str(&table(results, memory::PART, single));
    page.push_str("\n## Cold start\n\nMilliseconds from the start of the process to the answer to its first `tools/list` over stdio:\n\n");
    page.push_str(&table(results, start::PART, single));
    page.push_str(&left_out(results, about));
    page
}

fn describe(about: &About) -> String {
    let mut text = String::new();
    for (name, value) in &about.said {
        line(&mut text, format_args!("- {name}: {value}"));
    }
    line(
        &mut text,
        format_args!(
            "- machine: {}, {} cores, {} MiB of memory, Linux {}",
            about.processor, about.cores, about.memory_mib, about.kernel
        ),
    );
    line(
        &mut text,
        format_args!(
            "- {} rounds of {} ms at each point; the server behind the gateways is {}",
            about.rounds, about.window_ms, about.upstream
        ),
    );
    text
}

fn acceptance(demands: &[Demand]) -> String {
    let mut table = "| demand | bound | measured | |\n|---|---|---|---|\n".to_owned();
    for demand in demands {
        let unit = demand.unit;
        let bound = match demand.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}{unit}"),
            Bound::AtMost(bound) => format!("≤ {bound}{unit}"),
        };
        let measured = demand.measured;
        let measured = measured.map_or("–".to_owned(), |value| {
            format!("{}{unit}", rounded(value))
        });
        let verdict = match demand.is_met() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "not measured",
        };
        line(
            &mut table,
            format_args!("| {} | {bound} | {measured} | {verdict} |", demand.what),
        );
    }
    table
}

/// A line for each point and a column for each subject.
fn table(results: &Results, part: &str, cell: impl Fn(&Row) -> Option<String>) -> String {
    let rows = || results.rows.iter().filter(|row| row.key.part == part);
    let subjects = distinct(rows().map(|row| row.key.subject.as_str()));
    let points = distinct(rows().map(|row| row.key.point.as_str()));
    let mut table = format!("| | {} |\n|---|", subjects.join(" | "));
    table.push_str(&"---|".repeat(subjects.len()));
    table.push('\n');
    for point in points {
        let cells: Vec<_> = subjects
            .iter()
            .map(|subject| {
                let row = results.row(part, point, subject);
                row.and_then(&cell).unwrap_or_else(|| "–".to_owned())
            })
            .collect();
        line(
            &mut table,
            format_args!("| {point} | {} |", cells.join(" | ")),
        );
    }
    table
}

/// The one figure of a row that has one.
fn single(row: &Row) -> Option<String> {
    row.figures.values().next().map(|value| rounded(*value))
}

/// In the order in which they come.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn left_out(results: &Results, about: &About) -> String {
    let mut text = String::new();
    for (name, reason) in &about.missing {
        line(
            &mut text,
            format_args!("- {name} was not installed: {reason}"),
        );
    }
    for row in &results.rows {
        if let Some(failure) = &row.failure {
            let first = failure.lines().next().unwrap_or_default();
            let failure: String = first.chars().take(200).collect();
            let key = &row.key;
            line(
                &mut text,
                format_args!("- {}, {}: {}: {failure}", key.subject, key.part, key.point),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\n## What has no figures, and why\n\n{text}")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{text}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceptance::demands;
    use crate::results::{Key, figures};

    #[test]
    fn a_page_shows_figures_ratios_and_what_failed() {
        let mut results = Results::default();
        let point = "2026-07-28, JSON, 100 B, c=16";
        let key = |subject: &str| Key {
            part: server::PART.to_owned(),
            point: point.to_owned(),
            subject: subject.to_owned(),
        };
        results.add(key(LIMIT), Ok(figures([("req_s", 100_000.0)])));
        results.add(key("plexus"), Ok(figures([("req_s", 75_000.0)])));
        results.add(
            key("other"),
            Err(anyhow::anyhow!("a wrong answer\nand more")),
        );
        let page = page(&results, &About::default(), &demands(&results), &[]);
        let wanted = "| 2026-07-28, JSON, 100 B, c=16 | 100,000 | 75,000 (0.75) | – |";
        assert!(page.contains(wanted), "{page}");
        let failed = "- other, server: 2026-07-28, JSON, 100 B, c=16: a wrong answer\n";
        assert!(page.contains(failed), "{page}");
        let demand =
            "| server, 2026-07-28, JSON, 100 B, c=16: req/s of the limit's | ≥ 0.7 | 0.75 | met |";
        assert!(page.contains(demand), "{page}");
    }
}
