//! Results: figures by part, point and subject.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::LoadResult;

/// Figures by name; the unit is a suffix of the name.
pub(crate) type Figures = BTreeMap<String, f64>;

/// The figures of latency.
const LATENCIES: [&str; 3] = ["p50_us", "p99_us", "p999_us"];

/// The key of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The table of the report.
    pub(crate) part: String,
    /// The line of the table: the parameters of the measurement.
    pub(crate) point: String,
    pub(crate) subject: String,
}

/// One subject at one point, in all rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) key: Key,
    /// The medians of all rounds.
    pub(crate) figures: Figures,
    /// Why the measurement failed; then there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    #[serde(default)]
    pub(crate) rounds: Vec<Figures>,
}

/// All rows, in the order in which they were first measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
}

impl Results {
    /// Adds the result of one round. If a round fails, the row has failed: there is no median of an
    /// unreliable subject.
    pub(crate) fn add(&mut self, key: Key, measured: anyhow::Result<Figures>) {
        let at = self.rows.iter().position(|row| row.key == key);
        let at = at.unwrap_or_else(|| {
            self.rows.push(Row {
                key,
                figures: Figures::new(),
                failure: None,
                rounds: Vec::new(),
            });
            self.rows.len() - 1
        });
        let Some(row) = self.rows.get_mut(at) else {
            return;
        };
        match measured {
            Ok(figures) => row.rounds.push(figures),
            Err(error) => row.failure = Some(without_folders(&format!("{error:#}"))),
        }
        row.figures = if row.failure.is_none() {
            medians(&row.rounds)
        } else {
            Figures::new()
        };
    }

    pub(crate) fn row(&self, part: &str, point: &str, subject: &str) -> Option<&Row> {
        self.rows.iter().find(|row| {
            row.key.part == part && row.key.point == point && row.key.subject == subject
        })
    }

    pub(crate) fn figure(&self, part: &str, point: &str, subject: &str, name: &str) -> Option<f64> {
        self.row(part, point, subject)?.figures.get(name).copied()
    }
}

/// The figures of one measurement.
pub(crate) fn of_load(measured: &LoadResult, payload: usize) -> Figures {
    let answers = ratio(measured.answers, 1);
    let seconds = measured.elapsed.as_secs_f64();
    let rate = answers / seconds;
    let micros = |share| ratio(measured.latencies.per_mille(share), 1000);
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / answers;
    let mut found = figures([
        ("req_s", rate),
        ("p50_us", micros(500)),
        ("p99_us", micros(990)),
        ("p999_us", micros(999)),
        ("cpu_us", per_request(measured.subject.cpu)),
        ("machine_cpu_us", per_request(measured.machine_cpu)),
        (
            "switches",
            ratio(measured.subject.switches, measured.answers),
        ),
        ("busy", measured.subject.cpu.as_secs_f64() / seconds),
        (
            "generator_busy",
            measured.generator_cpu.as_secs_f64() / seconds,
        ),
        ("mib_s", rate * ratio(payload as u64, 1024 * 1024)),
    ]);
    // A slow subject may answer only requests that were sent before the window.
    if measured.latencies.total() == 0 {
        found.retain(|name, _| !LATENCIES.contains(&name.as_str()));
    }
    found
}

/// A text with file names instead of paths, so that the report does not reveal local paths.
pub(crate) fn without_folders(text: &str) -> String {
    let mut kept = String::new();
    let ends = |letter: char| letter.is_whitespace() || "\"'()=:,;`".contains(letter);
    for word in text.split_inclusive(ends) {
        let is_path = word.starts_with('/') && !kept.ends_with(':');
        let name = word.rsplit_once('/').filter(|_| is_path);
        match name {
            Some((folder, name)) if !folder.is_empty() => kept.push_str(name),
            _ => kept.push_str(word),
        }
    }
    kept
}

pub(crate) fn figures<const N: usize>(named: [(&str, f64); N]) -> Figures {
    named
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of as f64
}

pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied()?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = values.get(middle.checked_sub(1)?).copied()?;
    Some(f64::midpoint(lower, upper))
}

fn medians(rounds: &[Figures]) -> Figures {
    let Some(first) = rounds.first() else {
        return Figures::new();
    };
    let of = |name: &String| {
        let mut values: Vec<_> = rounds
            .iter()
            .filter_map(|round| round.get(name).copied())
            .collect();
        Some((name.clone(), median(&mut values)?))
    };
    first.keys().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::usage::Usage;

    fn key() -> Key {
        Key {
            part: "server".to_owned(),
            point: "c=1".to_owned(),
            subject: "plexus".to_owned(),
        }
    }

    #[test]
    fn the_cost_of_a_load_is_shown_for_each_request() {
        let mut latencies = Histogram::default();
        latencies.record(100_000);
        let measured = LoadResult {
            answers: 2000,
            latencies,
            elapsed: Duration::from_millis(500),
            subject: Usage {
                cpu: Duration::from_millis(100),
                switches: 3000,
            },
            generator_cpu: Duration::from_millis(50),
            machine_cpu: Duration::from_millis(400),
        };
        let found = of_load(&measured, 1024 * 1024);
        let expected = [
            ("req_s", 4000.0),
            ("cpu_us", 50.0),
            ("machine_cpu_us", 200.0),
            ("switches", 1.5),
            ("busy", 0.2),
            ("generator_busy", 0.1),
            ("mib_s", 4000.0),
        ];
        for (name, value) in expected {
            assert!((found[name] - value).abs() < 1e-6, "{name}: {found:?}");
        }
    }

    #[test]
    fn figures_are_medians_of_all_rounds() {
        let mut results = Results::default();
        for value in [5.0, 1.0, 2.0] {
            results.add(key(), Ok(figures([("req_s", value)])));
        }
        assert_eq!(
            results.figure("server", "c=1", "plexus", "req_s"),
            Some(2.0)
        );
        results.add(key(), Ok(figures([("req_s", 4.0)])));
        assert_eq!(
            results.figure("server", "c=1", "plexus", "req_s"),
            Some(3.0)
        );
    }

    #[test]
    fn nothing_says_where_files_lie() {
        let said =
            "cannot start /home/me/x/proxy: File \"/opt/lib/a.py\", GET http://h:1/mcp and /mcp";
        let kept = "cannot start proxy: File \"a.py\", GET http://h:1/mcp and /mcp";
        assert_eq!(without_folders(said), kept);
    }

    #[test]
    fn a_failure_in_any_round_spoils_the_row() {
        let mut results = Results::default();
        results.add(key(), Err(anyhow::anyhow!("wrong answer")));
        results.add(key(), Ok(figures([("req_s", 4.0)])));
        assert_eq!(results.figure("server", "c=1", "plexus", "req_s"), None);
        assert_eq!(results.rows[0].failure.as_deref(), Some("wrong answer"));
    }
}
