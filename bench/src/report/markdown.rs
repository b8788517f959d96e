//! The report as a page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::svg::rounded;
use crate::about::About;
use crate::acceptance::{Bound, Demand};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::results::{Results, Row};
use crate::servers::LIMIT;

const AGAIN: &str = "\
This page is written by `bench/run`, which anyone can run again, on two quiet cores of a Linux
machine with Rust, Node.js and Python:

```sh
bench/run                        # everything, and this page; about half an hour
bench/run quick                  # without rivals, in less than three minutes
bench/run quick --save FILE      # keeps the figures
bench/run quick --against FILE   # compares with figures that were kept
```

It builds what is ours, installs the rivals from their registries at pinned versions
([which, and how each is started](../../bench/rivals/README.md)), and measures. All figures, those
of each round, too, are in [`figures.json`](figures.json).
";

const METHOD: &str = "\
- **Cores.** Whatever is measured is pinned to one core and the load generator to another, so that
  work is compared and not threads. Servers behind a gateway have a third core, or share the
  generator's where there is none.
- **Turns.** At each point all subjects are measured one right after the other, and all points in
  each of several rounds. What is shown are the medians of the rounds.
- **Load.** A closed loop: so many keep-alive connections (`c`), each with one request in flight and,
  in the handshake era, a session of its own. Requests are prepared bytes in which only the id
  changes. After a warm-up there is a window in which everything counts; it lasts longer, up to four
  times, for who has not answered three times on each connection.
- **Errors.** The id and the content of every answer are checked; of those longer than 64 KiB one in
  sixteen as a whole, the others by id, length and both ends. One wrong answer, one error, one closed
  connection or ten seconds of silence, in any round, and there is *failed* instead of a figure.
- **Figures.** Latency is from the first byte written to the last byte read. CPU time is what the
  kernel counts for the subject, without programs that it started. Memory is what is resident.
- **The limit** is what the machine can do at all, measured at the same point in the same run. For
  servers it is a bare hyper server that reads the whole request and answers with a fixed body, as
  long as ours in 2025-11-25 and a hundred bytes shorter in 2026-07-28; for gateways a proxy that
  passes bytes on without looking at them; for stdio a program that writes the lines that it reads.
  Absolute figures are those of this machine; ratios travel better.
- **Fairness.** Rivals are compiled as we are, and configured for speed as far as their documentation
  says how: without Nagle's algorithm, without sessions and in JSON where that exists. An event
  stream of ours begins with a progress notification, as we answer in JSON otherwise.
- **Who is not here.** What is in no registry of packages, as agentgateway, and what may not be used
  by everybody, as mcp-gateway of crates.io.
";

/// A part that is put under load, and what its rates are compared with.
struct Loaded {
    part: &'static str,
    title: &'static str,
    charts: &'static [&'static str],
    base: &'static str,
    of_base: &'static str,
}

const LOADED: [Loaded; 4] = [
    Loaded {
        part: server::PART,
        title: "Servers over HTTP",
        charts: &["servers-2025-11-25", "servers-2026-07-28", "servers-cpu"],
        base: LIMIT,
        of_base: "the limit's",
    },
    Loaded {
        part: stdio::PART,
        title: "Servers over stdio",
        charts: &["stdio"],
        base: LIMIT,
        of_base: "a bare line echo's",
    },
    Loaded {
        part: gateway::PART,
        title: "Gateways",
        charts: &["gateways-rate", "gateways-latency"],
        base: gateway::DIRECT,
        of_base: "the upstream's own",
    },
    Loaded {
        part: lists::PART,
        title: "Lists, and many upstreams",
        charts: &[],
        base: LIMIT,
        of_base: "the limit's",
    },
];

/// A page with everything.
pub(crate) fn page(
    results: &Results,
    about: &About,
    demands: &[Demand],
    charts: &[String],
) -> String {
    let mut page = format!(
        "# Benchmark\n\n{AGAIN}\n## What is demanded\n\n{}\n## How it is measured\n\n{METHOD}\n\
         ## Machine and versions\n\n{}",
        acceptance(demands),
        describe(about)
    );
    for loaded in &LOADED {
        page.push_str(&section(results, loaded, charts));
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

fn section(results: &Results, loaded: &Loaded, charts: &[String]) -> String {
    let Loaded {
        part,
        title,
        base,
        of_base,
        ..
    } = *loaded;
    let mut text = format!("\n## {title}\n");
    for chart in loaded.charts {
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

fn describe(about: &About) -> String {
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
    format!("\n## What failed, and why\n\n{text}")
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
        let wanted = "| 2026-07-28, JSON, 100 B, c=16 | 100,000 | 75,000 (0.75) | failed |";
        assert!(page.contains(wanted), "{page}");
        let failed = "- other, server: 2026-07-28, JSON, 100 B, c=16: a wrong answer\n";
        assert!(page.contains(failed), "{page}");
        let demand =
            "| server, 2026-07-28, JSON, 100 B, c=16: req/s of the limit's | ≥ 0.7 | 0.75 | met |";
        assert!(page.contains(demand), "{page}");
    }
}
