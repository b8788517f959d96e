//! The report as a Markdown page.

mod text;

use super::compare::compare;
use super::sections::{LOAD_SECTIONS, LoadSection};
use super::svg::rounded;
use super::tables::{by_point, by_subject, line, single};
use super::{Notes, Report};
use crate::acceptance::{Bound, Criterion, criteria};
use crate::part::{load_memory, memory, server, start};
use crate::results::{Results, Row};
use crate::run_metadata::{Build, RunMetadata};

use text::{METHOD, PLACEMENT, REPRODUCTION};

/// The whole page.
pub(super) fn page(report: &Report, notes: &Notes, charts: &[String]) -> String {
    let Report { about, results } = report;
    let mut page = format!(
        "# Benchmark\n\n{REPRODUCTION}\n## Acceptance criteria\n\n\
         {PLACEMENT}\n{}\n## How it is measured\n\n{METHOD}\n\
         ## Machine\n\n{}\n## How each subject was built\n\n{}",
        acceptance(&criteria(results), notes),
        machine(about),
        builds(&about.builds)
    );
    for section_spec in &LOAD_SECTIONS {
        page.push_str(&section(results, section_spec, charts));
    }
    line(
        &mut page,
        format_args!(
            "\n## Memory\n\nA rival that takes longer than eight seconds for 10,000 sessions is \
             measured with those that it has by then.\n"
        ),
    );
    page.push_str(&by_point(results, memory::PART, single));
    line(
        &mut page,
        format_args!(
            "\n## Memory under load\n\nOf the whole process with its children, in the first round: \
             256 connections with 100 B, then 16 with 1 MiB. Each is measured again 60 s after the \
             end of its own load; others are loaded meanwhile. Gateways are in front of a stdio \
             upstream, which is one of their children.\n"
        ),
    );
    page.push_str(&by_subject(results, load_memory::PART, single));
    line(
        &mut page,
        format_args!(
            "\n## Cold start\n\nFrom the start of the process to the answer to its first \
             `tools/list` over stdio.\n"
        ),
    );
    page.push_str(&by_point(results, start::PART, single));
    if let Some(second) = &notes.second {
        page.push_str(&compare(results, &second.results).section());
    }
    page.push_str(&left_out(results, about));
    page
}

fn section(results: &Results, section_spec: &LoadSection, charts: &[String]) -> String {
    let LoadSection {
        part,
        title,
        of_base,
        ..
    } = *section_spec;
    let mut text = format!("\n## {title}\n");
    for chart in section_spec.charts {
        if charts.iter().any(|drawn| drawn == chart) {
            line(&mut text, format_args!("\n![{chart}]({chart}.svg)"));
        }
    }
    line(
        &mut text,
        format_args!("\nRequests a second (in parentheses the part of {of_base}):\n"),
    );
    text.push_str(&by_point(results, part, |row| {
        let rate = row.figures.get("req_s")?;
        let ratio = section_spec.ratio(results, row);
        let ratio = ratio.map(|ratio| format!(" ({ratio:.2})"));
        Some(format!("{}{}", rounded(*rate), ratio.unwrap_or_default()))
    }));
    text.push_str("\nLatency in µs, p50 / p99 / p99.9:\n\n");
    text.push_str(&by_point(results, part, |row| {
        figures_of(row, ["p50_us", "p99_us", "p999_us"])
    }));
    text.push_str("\nCPU time for each request in µs, of the subject / of the machine:\n\n");
    text.push_str(&by_point(results, part, |row| {
        figures_of(row, ["cpu_us", "machine_cpu_us"])
    }));
    text.push_str("\nVoluntary context switches of the subject for each request:\n\n");
    text.push_str(&by_point(results, part, |row| {
        figures_of(row, ["switches"])
    }));
    if part == server::PART {
        text.push_str(
            "\nCores that the subject used / that the generator used, in per cent of one core. The \
             generator has one thread: where it is near 100 per cent, it limits the rate:\n\n",
        );
        text.push_str(&by_point(results, part, |row| {
            let percent = |name| row.figures.get(name).map(|part| part * 100.0);
            let (subject, generator) = (percent("busy")?, percent("generator_busy")?);
            Some(format!("{subject:.0} / {generator:.0}"))
        }));
    }
    text
}

/// Figures of a row with slashes between them.
fn figures_of<const N: usize>(row: &Row, names: [&str; N]) -> Option<String> {
    let values = names.into_iter().map(|name| row.figures.get(name));
    let shown: Option<Vec<_>> = values
        .map(|value| value.map(|value| rounded(*value)))
        .collect();
    Some(shown?.join(" / "))
}

fn machine(about: &RunMetadata) -> String {
    let mut text = "| | |\n|---|---|\n".to_owned();
    let mut row = |name: &str, value: &str| {
        line(&mut text, format_args!("| {name} | {value} |"));
    };
    for (name, value) in &about.said {
        row(name, value);
    }
    let machine = format!(
        "{}, {} cores, {} GiB of memory, Linux {}",
        about.processor,
        about.cores,
        about.memory_mib.div_ceil(1024),
        about.kernel
    );
    row("machine", &machine);
    let effort = format!(
        "{} ms at each point, rounds: {}, in {:.0} minutes",
        about.window_ms, about.rounds, about.minutes
    );
    row("measured", &effort);
    row("server behind the gateways", &about.upstream);
    text
}

fn builds(builds: &[Build]) -> String {
    let mut text =
        "| subject | version | build command | profile |\n|---|---|---|---|\n".to_owned();
    for build in builds {
        let Build {
            subject,
            version,
            command,
            profile,
        } = build;
        line(
            &mut text,
            format_args!("| {subject} | {version} | `{command}` | {profile} |"),
        );
    }
    text
}

fn acceptance(criteria: &[Criterion], notes: &Notes) -> String {
    let mut table =
        "| criterion | bound | measured | | cause |\n|---|---|---|---|---|\n".to_owned();
    for criterion in criteria {
        let unit = criterion.unit;
        let bound = match criterion.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}{unit}"),
            Bound::AtMost(bound) => format!("≤ {bound}{unit}"),
        };
        let measured = criterion.measured;
        let measured = measured.map_or("–".to_owned(), |value| {
            format!("{}{unit}", rounded(value))
        });
        let cause = notes.causes.get(&criterion.name).map(String::as_str);
        let (verdict, cause) = match criterion.is_met() {
            Some(true) => ("met", ""),
            Some(false) => ("**missed**", cause.unwrap_or("not known yet")),
            None => ("not measured", ""),
        };
        line(
            &mut table,
            format_args!(
                "| {} | {bound} | {measured} | {verdict} | {cause} |",
                criterion.description
            ),
        );
    }
    table
}

fn left_out(results: &Results, about: &RunMetadata) -> String {
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
    format!("\n## What failed, and why\n\n{text}")
}

#[cfg(test)]
mod tests;
