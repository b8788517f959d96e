//! The report as a Markdown page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::svg::rounded;
use crate::acceptance::{Bound, Criterion};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::results::{Results, Row};
use crate::run_metadata::RunMetadata;
use crate::servers::LIMIT;

const REPRODUCTION: &str = "\
This page is written by `bench/run`. To reproduce it, use two quiet cores of a Linux machine with
Rust, Node.js and Python:

```sh
bench/run                        # everything, and this page; about half an hour
bench/run quick                  # without rivals, in less than three minutes
bench/run quick --save FILE      # saves the figures
bench/run quick --against FILE   # compares with saved figures
```

It builds Plexus, installs the rivals from their package registries at pinned versions
([versions and options](../../bench/rivals/README.md)), and measures. All figures, including those
of each round, are in [`figures.json`](figures.json).
";

const METHOD: &str = "\
- **Cores.** The measured process is pinned to one core and the load generator to another, so that
  CPU work is compared and not the number of threads. Servers behind a gateway have a third core,
  or share that of the generator if there is none.
- **Order.** At each point all subjects are measured one after the other, and all points in each of
  several rounds. The tables show the medians of the rounds.
- **Load.** A closed loop with a number of keep-alive connections (`c`). Each has one request in
  flight and, in the handshake era, its own session. Requests are prepared bytes in which only the
  id changes. After a warm-up, all requests within a window are counted. The window is up to four
  times longer for a subject that has not answered three times on each connection.
- **Errors.** The id and the content of every response are checked. Of responses longer than 64
  KiB, one in sixteen is checked as a whole, the others by id, length and both ends. A wrong
  response, an error, a closed connection or ten seconds without a response, in any round, is shown
  as *failed*.
- **Figures.** Latency is from the first byte written to the last byte read. CPU time is that of
  the subject, without programs that it started. Memory is resident memory.
- **The limit** is a reference value of the same machine, measured at the same point in the same
  run. For servers it is a bare hyper server that reads the whole request and answers with a fixed
  body, as long as that of Plexus in 2025-11-25 and a hundred bytes shorter in 2026-07-28; for
  gateways a proxy that forwards bytes without parsing them; for stdio a program that echoes lines.
  Compare ratios, not absolute figures, between machines.
- **Fairness.** Rivals are compiled with the same options as Plexus, and configured for speed as
  their documentation says: without Nagle's algorithm, and without sessions and with JSON responses
  where they support that. An event stream of Plexus begins with a progress notification, because
  otherwise Plexus answers with JSON.
- **Not included.** Programs that are in no package registry, such as agentgateway, and programs
  whose licence does not permit everyone to use them, such as mcp-gateway of crates.io.
";

/// A section with a table of rates, and the subject that its rates are compared with.
struct LoadSection {
    part: &'static str,
    title: &'static str,
    charts: &'static [&'static str],
    base: &'static str,
    of_base: &'static str,
}

const LOAD_SECTIONS: [LoadSection; 4] = [
    LoadSection {
        part: server::PART,
        title: "Servers over HTTP",
        charts: &["servers-2025-11-25", "servers-2026-07-28", "servers-cpu"],
        base: LIMIT,
        of_base: "the limit's",
    },
    LoadSection {
        part: stdio::PART,
        title: "Servers over stdio",
        charts: &["stdio"],
        base: LIMIT,
        of_base: "a bare line echo's",
    },
    LoadSection {
        part: gateway::PART,
        title: "Gateways",
        charts: &["gateways-rate", "gateways-latency"],
        base: gateway::DIRECT,
        of_base: "the upstream's own",
    },
    LoadSection {
        part: lists::PART,
        title: "Lists, and many upstreams",
        charts: &[],
        base: LIMIT,
        of_base: "the limit's",
    },
];

/// The whole page.
pub(crate) fn page(
    results: &Results,
    about: &RunMetadata,
    criteria: &[Criterion],
    charts: &[String],
) -> String {
    let mut page = format!(
        "# Benchmark\n\n{REPRODUCTION}\n## Acceptance criteria\n\n{}\n## How it is measured\n\n{METHOD}\n\
         ## Machine and versions\n\n{}",
        acceptance(criteria),
        describe(about)
    );
    for section_spec in &LOAD_SECTIONS {
        page.push_str(&section(results, section_spec, charts));
    }
    let others = [
        (
            memory::PART,
            "Memory",
            "A rival that takes longer than eight seconds for 10,000 sessions is measured with those \
             that it has by then.",
        ),
        (
            start::PART,
            "Cold start",
            "From the start of the process to the answer to its first `tools/list` over stdio.",
        ),
    ];
    for (part, title, text) in others {
        line(&mut page, format_args!("\n## {title}\n\n{text}\n"));
        page.push_str(&table(results, part, single));
    }
    page.push_str(&left_out(results, about));
    page
}

fn section(results: &Results, section_spec: &LoadSection, charts: &[String]) -> String {
    let LoadSection {
        part,
        title,
        base,
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
    text.push_str(&table(results, part, |row| {
        let rate = row.figures.get("req_s")?;
        let key = &row.key;
        let base_rate = results.figure(part, &key.point, base, "req_s");
        let ratio = base_rate.filter(|_| key.subject != base);
        let ratio = ratio.map(|base_rate| format!(" ({:.2})", rate / base_rate));
        Some(format!("{}{}", rounded(*rate), ratio.unwrap_or_default()))
    }));
    text.push_str("\nLatency in µs, p50 / p99 / p99.9:\n\n");
    text.push_str(&table(results, part, |row| {
        let micros = |name| row.figures.get(name).map(|value| rounded(*value));
        let [p50, p99, p999] = ["p50_us", "p99_us", "p999_us"].map(micros);
        Some(format!("{} / {} / {}", p50?, p99?, p999?))
    }));
    text.push_str("\nCPU time of the subject for each request, in µs:\n\n");
    text.push_str(&table(results, part, |row| {
        row.figures.get("cpu_us").map(|value| rounded(*value))
    }));
    if part == server::PART {
        text.push_str(
            "\nHow busy the core of the subject was / that of the generator, in per cent. While the \
             first is fuller than the second, the subject is what is measured:\n\n",
        );
        text.push_str(&table(results, part, |row| {
            let percent = |name| row.figures.get(name).map(|part| part * 100.0);
            let (subject, generator) = (percent("busy")?, percent("generator_busy")?);
            Some(format!("{subject:.0} / {generator:.0}"))
        }));
    }
    text
}

fn describe(about: &RunMetadata) -> String {
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
        "{} ms at each point, rounds: {}",
        about.window_ms, about.rounds
    );
    row("measured", &effort);
    row("server behind the gateways", &about.upstream);
    for (name, version) in &about.rivals {
        row(name, version);
    }
    text
}

fn acceptance(criteria: &[Criterion]) -> String {
    let mut table = "| criterion | bound | measured | |\n|---|---|---|---|\n".to_owned();
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
        let verdict = match criterion.is_met() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "not measured",
        };
        line(
            &mut table,
            format_args!(
                "| {} | {bound} | {measured} | {verdict} |",
                criterion.description
            ),
        );
    }
    table
}

/// A table with a line for each point and a column for each subject.
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
            .map(|subject| match results.row(part, point, subject) {
                Some(row) if row.failure.is_some() => "failed".to_owned(),
                row => row.and_then(&cell).unwrap_or_else(|| "–".to_owned()),
            })
            .collect();
        line(
            &mut table,
            format_args!("| {point} | {} |", cells.join(" | ")),
        );
    }
    table
}

/// The first figure of a row, with its unit.
fn single(row: &Row) -> Option<String> {
    let (name, value) = row.figures.iter().next()?;
    let (_, unit) = name.rsplit_once('_').unwrap_or(("", name));
    let unit = match unit {
        "mib" => " MiB",
        "kib" => " KiB",
        "ms" => " ms",
        _ => "",
    };
    Some(format!("{}{unit}", rounded(*value)))
}

/// The distinct names, in order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
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

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{text}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceptance::criteria;
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
        let page = page(&results, &RunMetadata::default(), &criteria(&results), &[]);
        let wanted = "| 2026-07-28, JSON, 100 B, c=16 | 100,000 | 75,000 (0.75) | failed |";
        assert!(page.contains(wanted), "{page}");
        let failed = "- other, server: 2026-07-28, JSON, 100 B, c=16: a wrong answer\n";
        assert!(page.contains(failed), "{page}");
        let criterion =
            "| server, 2026-07-28, JSON, 100 B, c=16: req/s of the limit's | ≥ 0.7 | 0.75 | met |";
        assert!(page.contains(criterion), "{page}");
    }
}
