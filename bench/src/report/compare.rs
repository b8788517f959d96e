//! The comparison of two runs: how well the ratios are repeated.

use std::fmt::Write as _;

use super::sections::LOAD_SECTIONS;
use super::svg::rounded;
use crate::acceptance::criteria;
use crate::results::{Results, Row};

/// A ratio that differs by this much or more is not repeated.
const MAX_DIFFERENCE: f64 = 0.15;

/// The values of two runs.
#[derive(Debug, Clone)]
pub(crate) struct Comparisons {
    /// Those of all criteria.
    criteria: Vec<Comparison>,
    /// The ratios in the tables of loads.
    ratios: Vec<Comparison>,
}

/// One value in two runs.
#[derive(Debug, Clone)]
struct Comparison {
    description: String,
    unit: &'static str,
    first: Option<f64>,
    second: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Repeated,
    Differs,
    /// It was not measured in one of the runs, or failed there.
    NotInBoth,
}

impl Comparison {
    /// The change from the first run to the second, as a part of the first; `None` if one of them
    /// did not measure it.
    fn change(&self) -> Option<f64> {
        Some(self.second? / self.first? - 1.0)
    }

    fn verdict(&self) -> Verdict {
        match self.change() {
            Some(change) if change.abs() < MAX_DIFFERENCE => Verdict::Repeated,
            Some(_) => Verdict::Differs,
            None => Verdict::NotInBoth,
        }
    }

    fn cells(&self) -> [String; 3] {
        let unit = self.unit;
        let shown = |value: Option<f64>| {
            value.map_or("–".to_owned(), |value| {
                format!("{}{unit}", rounded(value))
            })
        };
        let change = self.change();
        let change = change.map_or("–".to_owned(), |change| {
            format!("{:+.1} %", change * 100.0)
        });
        [shown(self.first), shown(self.second), change]
    }
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Repeated => "repeated",
            Self::Differs => "differs",
            Self::NotInBoth => "not in both",
        }
    }
}

/// Compares the values of all criteria, and all ratios of the tables, in two runs.
pub(crate) fn compare(first: &Results, second: &Results) -> Comparisons {
    let pairs = criteria(first).into_iter().zip(criteria(second));
    let criteria = pairs.map(|(criterion, second)| Comparison {
        description: criterion.description,
        unit: criterion.unit,
        first: criterion.measured,
        second: second.measured,
    });
    Comparisons {
        criteria: criteria.collect(),
        ratios: ratios(first, second),
    }
}

/// The ratios of the tables that at least one run has.
fn ratios(first: &Results, second: &Results) -> Vec<Comparison> {
    let mut ratios = Vec::new();
    for section in &LOAD_SECTIONS {
        let is_new = |row: &&Row| {
            let key = &row.key;
            first.row(&key.part, &key.point, &key.subject).is_none()
        };
        let rows = first.rows.iter();
        let rows = rows.chain(second.rows.iter().filter(is_new));
        for row in rows.filter(|row| row.key.part == section.part) {
            let key = &row.key;
            let [first, second] = [first, second].map(|results| {
                let row = results.row(&key.part, &key.point, &key.subject)?;
                section.ratio(results, row)
            });
            if first.or(second).is_some() {
                ratios.push(Comparison {
                    description: format!("{}, {}: {}", key.part, key.point, key.subject),
                    unit: "",
                    first,
                    second,
                });
            }
        }
    }
    ratios
}

impl Comparisons {
    /// Prints a line for each criterion, and for each ratio that is not repeated.
    #[expect(clippy::print_stdout, reason = "the comparison is the output")]
    pub(crate) fn print(&self) {
        for comparison in self.criteria.iter().chain(self.unrepeated()) {
            let [first, second, change] = comparison.cells();
            println!(
                "{:<12} {first:>9} {second:>9} {change:>9}  {}",
                comparison.verdict().as_str(),
                comparison.description
            );
        }
        println!("criteria: {}", summary(&self.criteria));
        println!("ratios of the tables: {}", summary(&self.ratios));
    }

    /// The comparison as a section of the page.
    pub(super) fn section(&self) -> String {
        let mut text = format!(
            "\n## Repeatability\n\nThe same in a second full run.\n\nCriteria: {}\n\n{}\
             \nRatios of the tables of requests a second (the numbers in parentheses): {}\n",
            summary(&self.criteria),
            table("criterion", self.criteria.iter()),
            summary(&self.ratios)
        );
        if self.unrepeated().next().is_some() {
            text.push_str("These are not repeated:\n\n");
            text.push_str(&table("ratio", self.unrepeated()));
        }
        text
    }

    /// The ratios of the tables that differ, or are not in both runs.
    fn unrepeated(&self) -> impl Iterator<Item = &Comparison> {
        let ratios = self.ratios.iter();
        ratios.filter(|ratio| ratio.verdict() != Verdict::Repeated)
    }
}

fn table<'a>(kind: &str, comparisons: impl Iterator<Item = &'a Comparison>) -> String {
    let mut text =
        format!("| {kind} | first run | second run | change | |\n|---|---|---|---|---|\n");
    for comparison in comparisons {
        let [first, second, change] = comparison.cells();
        let verdict = match comparison.verdict() {
            Verdict::Differs => "**differs**",
            verdict => verdict.as_str(),
        };
        // Writing to a string cannot fail.
        writeln!(
            text,
            "| {} | {first} | {second} | {change} | {verdict} |",
            comparison.description
        )
        .unwrap_or_default();
    }
    text
}

fn summary(comparisons: &[Comparison]) -> String {
    let count = |verdict| {
        let verdicts = comparisons.iter().map(Comparison::verdict);
        verdicts.filter(|found| *found == verdict).count()
    };
    format!(
        "of {} values, {} differ by less than {:.0} %, {} by as much or more, and {} were not \
         measured twice.",
        comparisons.len(),
        count(Verdict::Repeated),
        MAX_DIFFERENCE * 100.0,
        count(Verdict::Differs),
        count(Verdict::NotInBoth)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::{memory, server, start};
    use crate::results::{Key, figures};
    use crate::servers::{LIMIT, SERVE};

    fn add(results: &mut Results, part: &str, point: &str, subject: &str, named: (&str, f64)) {
        let key = Key {
            part: part.to_owned(),
            point: point.to_owned(),
            subject: subject.to_owned(),
        };
        results.add(key, Ok(figures([named])));
    }

    fn run(idle: f64, start: f64) -> Results {
        let mut results = Results::default();
        let mut add = |part, point, named| add(&mut results, part, point, SERVE, named);
        add(memory::PART, memory::IDLE, ("resident_mib", idle));
        add(start::PART, start::ALONE, ("ms", start));
        results
    }

    #[test]
    fn values_that_differ_much_are_marked() {
        let comparisons = compare(&run(10.0, 4.0), &run(11.4, 3.4));
        let text = comparisons.section();
        let idle = "| plexus serve: resident memory when idle | 10.0 MiB | 11.4 MiB | +14.0 % | repeated |";
        assert!(text.contains(idle), "{text}");
        let start = "| plexus serve --stdio: start to the first tools/list | 4.00 ms | 3.40 ms | -15.0 % | **differs** |";
        assert!(text.contains(start), "{text}");
        let missing = comparisons.criteria.len() - 2;
        let summary =
            format!("1 differ by less than 15 %, 1 by as much or more, and {missing} were not");
        assert!(text.contains(&summary), "{text}");
        assert!(!text.contains("These are not repeated"), "{text}");
    }

    #[test]
    fn the_ratios_that_are_not_repeated_are_listed() {
        let run = |rates: &[(&str, f64)]| {
            let mut results = Results::default();
            for &(subject, rate) in rates {
                add(&mut results, server::PART, "c=1", subject, ("req_s", rate));
            }
            results
        };
        // A machine that is half as fast changes no ratio.
        let first = run(&[
            (LIMIT, 100.0),
            ("same", 50.0),
            ("slower", 40.0),
            ("gone", 1.0),
        ]);
        let second = run(&[
            (LIMIT, 50.0),
            ("same", 25.0),
            ("slower", 16.0),
            ("new", 5.0),
        ]);
        let comparisons = compare(&first, &second);
        let text = comparisons.section();
        let differs = "| server, c=1: slower | 0.40 | 0.32 | -20.0 % | **differs** |";
        assert!(text.contains(differs), "{text}");
        let summary = "of 4 values, 1 differ by less than 15 %, 1 by as much or more, and 2 were";
        assert!(text.contains(summary), "{text}");
        assert!(text.contains("| server, c=1: gone | 0.01 | – | – | not in both |"));
        assert!(text.contains("| server, c=1: new | – | 0.10 | – | not in both |"));
        assert!(!text.contains("c=1: same"), "{text}");
    }
}
