//! The report of a growth run: a table for each series, the bounds, and the plots.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use super::plot;
use super::series::Series;

/// What was measured.
#[derive(Debug)]
pub(super) struct Report {
    facts: Vec<String>,
    series: Vec<Series>,
    bounds: Vec<Bound>,
    failed: Vec<String>,
}

/// A figure that must stay below a bound.
#[derive(Debug)]
struct Bound {
    name: &'static str,
    unit: &'static str,
    limit: f64,
    /// `None` if it was not measured at that size.
    figure: Option<f64>,
}

impl Bound {
    fn holds(&self) -> bool {
        self.figure.is_none_or(|figure| figure <= self.limit)
    }
}

impl Report {
    pub(super) fn new(facts: &[String]) -> Self {
        Self {
            facts: facts.to_vec(),
            series: Vec::new(),
            bounds: Vec::new(),
            failed: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, series: Series) {
        self.series.push(series);
    }

    /// Adds a bound. A figure that was not measured is not compared.
    pub(super) fn bound(
        &mut self,
        name: &'static str,
        figure: Option<f64>,
        limit: f64,
        unit: &'static str,
    ) {
        self.bounds.push(Bound {
            name,
            unit,
            limit,
            figure,
        });
    }

    /// Notes that a part could not be measured.
    pub(super) fn failed(&mut self, part: &str, error: &anyhow::Error) {
        let failure = format!("{part}: cannot be measured: {error:#}");
        super::progress(&failure);
        self.failed.push(failure);
    }

    /// What makes the run fail.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = self.failed.clone();
        failures.extend(self.series.iter().filter_map(Series::failure));
        let missed = self.bounds.iter().filter(|bound| !bound.holds());
        failures.extend(missed.map(|bound| {
            let Bound {
                name, unit, limit, ..
            } = bound;
            format!("{name}: above {} {unit}", rounded(*limit))
        }));
        failures
    }

    /// Writes `growth.md` and `growth.svg`.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("growth.svg"), plot::draw(&self.series))?;
        fs::write(folder.join("growth.md"), self.markdown())?;
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut text = INTRODUCTION.to_owned();
        for fact in &self.facts {
            push(
                &mut text,
                format_args!("- {}\n", fact.replacen('=', ": ", 1)),
            );
        }
        text.push_str("\n## Bounds\n\n| figure | measured | bound | holds |\n|---|---|---|---|\n");
        for bound in &self.bounds {
            let Bound {
                name,
                unit,
                limit,
                figure,
            } = bound;
            let measured = figure.map_or("not measured".to_owned(), |figure| {
                format!("{} {unit}", rounded(figure))
            });
            let holds = match figure {
                None => "",
                Some(_) if bound.holds() => "yes",
                Some(_) => "**no**",
            };
            push(
                &mut text,
                format_args!(
                    "| {name} | {measured} | {} {unit} | {holds} |\n",
                    rounded(*limit)
                ),
            );
        }
        text.push_str("\n## Series\n\n![All series, with logarithmic axes](growth.svg)\n");
        for series in &self.series {
            text.push_str(&table(series));
        }
        let failures = self.failures();
        if !failures.is_empty() {
            text.push_str("\n## Failures\n\n");
            for failure in failures {
                push(&mut text, format_args!("- {failure}\n"));
            }
        }
        text
    }
}

fn push(text: &mut String, more: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(more).unwrap_or_default();
}

/// A figure with three digits, or all digits of a large number.
fn rounded(figure: f64) -> String {
    match figure.abs() {
        0.0..10.0 => format!("{figure:.2}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

const INTRODUCTION: &str = "# Growth

This page is for operators who want to know how Plexus behaves with many tools, servers, sessions, rules, tasks, memories, long messages and many connections.
`bench/run growth` writes it, on one machine, over the loopback interface, with one gateway process for each size.
Databases are in memory (`/dev/shm`) if the machine has that, so that the figures show the work and not the disk.

The growth exponent says how the total cost grows from one size to the next: 1 is linear, 0 is constant, 2 is quadratic.
Figures below the noise floor of a series are compared as if they were that floor; the exponent is left out where both figures are below it.
A series with an exponent clearly above 1 fails the run: above 1.2 over all sizes, or above 1.6 in one step, because a single step is noisier.

";

fn table(series: &Series) -> String {
    let mut text = format!(
        "\n### {}\n\n| {} | {} | growth exponent |\n|---|---|---|\n",
        series.name, series.size, series.unit
    );
    for (step, exponent) in series.steps() {
        let exponent = exponent.map_or(String::new(), |exponent| format!("{exponent:.2}"));
        push(
            &mut text,
            format_args!(
                "| {} | {} | {exponent} |\n",
                step.size,
                rounded(step.figure)
            ),
        );
    }
    if let Some(overall) = series.overall() {
        push(&mut text, format_args!("\nOver all sizes: {overall:.2}.\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::series::Cost;
    use super::*;

    #[test]
    fn a_bound_that_does_not_hold_fails_the_run() {
        let mut report = Report::new(&["commit=abc".to_owned()]);
        report.bound("search", Some(0.5), 1.0, "ms");
        report.bound("claim", None, 1.0, "ms");
        assert!(report.failures().is_empty());
        report.bound("next", Some(3.0), 2.0, "ms");
        assert_eq!(report.failures(), ["next: above 2.00 ms"]);
        let text = report.markdown();
        assert!(text.contains("- commit: abc"), "{text}");
        assert!(
            text.contains("| next | 3.00 ms | 2.00 ms | **no** |"),
            "{text}"
        );
    }

    #[test]
    fn a_series_is_a_table() {
        let mut series = Series::new("lists", "tools", "ms", Cost::Whole, 0.0);
        series.add(10, 1.0);
        series.add(1000, 100.0);
        let text = table(&series);
        assert!(text.contains("| 10 | 1.00 |  |"), "{text}");
        assert!(text.contains("| 1000 | 100 | 1.00 |"), "{text}");
        assert!(text.ends_with("Over all sizes: 1.00.\n"), "{text}");
    }
}
