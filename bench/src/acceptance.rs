//! The acceptance criteria of a run, and whether they are met.
//!
//! All are of the placement on all cores. A criterion that is missed does not fail the run.

use plexus_mcp_protocol::Era;

use crate::gateways::UpstreamTransport;
use crate::part::{gateway, memory, policy, server, start, stdio};
use crate::placement::Placement;
use crate::results::Results;
use crate::servers::{LIMIT, OURS, SERVE};

/// One acceptance criterion.
#[derive(Debug, Clone)]
pub(crate) struct Criterion {
    /// The name under which the cause of a miss is stated.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) bound: Bound,
    /// The measured value; `None` if it was not measured.
    pub(crate) measured: Option<f64>,
    pub(crate) unit: &'static str,
}

/// The bound of a criterion.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Criterion {
    /// Whether the criterion is met; `None` if it was not measured.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(match self.bound {
            Bound::AtLeast(bound) => measured >= bound,
            Bound::AtMost(bound) => measured <= bound,
        })
    }
}

/// All criteria, with the values in `results`.
pub(crate) fn criteria(results: &Results) -> Vec<Criterion> {
    let evaluation = Evaluation { results };
    let mut criteria = evaluation.servers();
    criteria.extend(evaluation.gateways());
    criteria.extend(evaluation.policy());
    criteria.extend(evaluation.pipes());
    criteria.extend(evaluation.program());
    criteria
}

struct Evaluation<'a> {
    results: &'a Results,
}

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// The form of the answers, and the least rates as parts of the limit's and of the best rival's.
const SERVER_BOUNDS: [(bool, f64, f64); 2] = [(false, 0.6, 1.7), (true, 0.45, 1.5)];

impl Evaluation<'_> {
    fn servers(&self) -> Vec<Criterion> {
        let mut criteria = Vec::new();
        for (is_stream, of_limit, of_rival) in SERVER_BOUNDS {
            for era in ERAS {
                for concurrency in [16, 256] {
                    let point = server::Point::new(era, is_stream, concurrency).name();
                    let form = if is_stream { "sse" } else { "json" };
                    let revision = era.newest_revision().as_str();
                    let name = format!("server-{form}-{revision}-c{concurrency}");
                    criteria.push(Criterion {
                        name: format!("{name}-limit"),
                        description: format!("server, {point}: req/s of the bare hyper server's"),
                        bound: Bound::AtLeast(of_limit),
                        measured: self.of_limit(server::PART, &point, OURS),
                        unit: "",
                    });
                    criteria.push(Criterion {
                        name: format!("{name}-rival"),
                        description: format!("server, {point}: req/s of the best rival's"),
                        bound: Bound::AtLeast(of_rival),
                        measured: self.of_best_rival(&point),
                        unit: "×",
                    });
                }
            }
        }
        criteria
    }

    /// `plexus serve` in front of one server. With a server on stdio, the bare proxy is the one that
    /// forwards lines to the same server (`limit/lines.rs`). It performs the handshake for all
    /// clients, so there is a bound for the handshake era only.
    fn gateways(&self) -> Vec<Criterion> {
        let measured = [
            (UpstreamTransport::Http, "http", Era::Handshake),
            (UpstreamTransport::Http, "http", Era::Stateless),
            (UpstreamTransport::Stdio, "stdio", Era::Handshake),
        ];
        let criterion = |(transport, upstream, era): (_, _, Era)| {
            let point = gateway::Point {
                transport,
                client: era,
                server: era,
                concurrency: 16,
                placement: Placement::AllCores,
            };
            let point = point.name();
            let revision = era.newest_revision().as_str();
            Criterion {
                name: format!("gateway-{upstream}-{revision}-c16-limit"),
                description: format!("{SERVE}, {point}: req/s of the bare proxy's"),
                bound: Bound::AtLeast(0.7),
                measured: self.of_limit(gateway::PART, &point, SERVE),
                unit: "",
            }
        };
        measured.map(criterion).into()
    }

    fn policy(&self) -> Vec<Criterion> {
        let [without, with] = policy::RULE_COUNTS.map(|rules| {
            let subject = policy::subject(rules);
            self.rate(policy::PART, policy::POINT, &subject)
        });
        let ratio = || Some(without? / with?);
        vec![Criterion {
            name: "policy-1000-rules".to_owned(),
            description: format!(
                "{SERVE} with 1,000 policy rules, {}: time for each request, of that without rules",
                policy::POINT
            ),
            bound: Bound::AtMost(1.1),
            measured: ratio(),
            unit: "×",
        }]
    }

    fn pipes(&self) -> Vec<Criterion> {
        let point = stdio::point(1, Placement::AllCores);
        vec![Criterion {
            name: "stdio-serial-limit".to_owned(),
            description: format!("stdio, {point}: req/s of the bare line echo's"),
            bound: Bound::AtLeast(0.7),
            measured: self.of_limit(stdio::PART, &point, OURS),
            unit: "",
        }]
    }

    fn program(&self) -> Vec<Criterion> {
        let figure = |part, point, name| self.results.figure(part, point, SERVE, name);
        vec![
            Criterion {
                name: "idle-memory".to_owned(),
                description: format!("{SERVE}: resident memory when idle"),
                bound: Bound::AtMost(14.0),
                measured: figure(memory::PART, memory::IDLE, "resident_mib"),
                unit: " MiB",
            },
            Criterion {
                name: "start".to_owned(),
                description: format!("{SERVE} --stdio: start to the first tools/list"),
                bound: Bound::AtMost(5.0),
                measured: figure(start::PART, start::ALONE, "ms"),
                unit: " ms",
            },
        ]
    }

    fn rate(&self, part: &str, point: &str, subject: &str) -> Option<f64> {
        self.results.figure(part, point, subject, "req_s")
    }

    fn of_limit(&self, part: &str, point: &str, subject: &str) -> Option<f64> {
        Some(self.rate(part, point, subject)? / self.rate(part, point, LIMIT)?)
    }

    /// The rate of our server as a multiple of the best rival's.
    fn of_best_rival(&self, point: &str) -> Option<f64> {
        let rows = self.results.rows.iter();
        let best = rows
            .filter(|row| row.key.part == server::PART && row.key.point == point)
            .filter(|row| ![OURS, LIMIT].contains(&row.key.subject.as_str()))
            .filter_map(|row| row.figures.get("req_s").copied())
            .max_by(f64::total_cmp)?;
        Some(self.rate(server::PART, point, OURS)? / best)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::results::{Key, figures};

    fn add(results: &mut Results, part: &str, point: &str, subject: &str, rate: f64) {
        let key = Key {
            part: part.to_owned(),
            point: point.to_owned(),
            subject: subject.to_owned(),
        };
        results.add(key, Ok(figures([("req_s", rate)])));
    }

    fn found<'a>(criteria: &'a [Criterion], name: &str) -> &'a Criterion {
        let mut criteria = criteria.iter();
        criteria.find(|criterion| criterion.name == name).unwrap()
    }

    #[test]
    fn a_server_is_compared_with_the_limit_and_with_the_best_rival() {
        let mut results = Results::default();
        let rates = [(LIMIT, 100.0), (OURS, 59.0), ("slow", 10.0), ("fast", 34.0)];
        for (subject, rate) in rates {
            let point = "2026-07-28, JSON, 100 B, c=16";
            add(&mut results, server::PART, point, subject, rate);
            // Another placement does not count.
            let pinned = format!("{point}, one core");
            add(&mut results, server::PART, &pinned, subject, 100.0);
        }
        let criteria = criteria(&results);
        let of_limit = found(&criteria, "server-json-2026-07-28-c16-limit");
        assert_eq!(of_limit.is_met(), Some(false));
        let of_rival = found(&criteria, "server-json-2026-07-28-c16-rival");
        assert_eq!(of_rival.is_met(), Some(true));
        let streams = found(&criteria, "server-sse-2026-07-28-c16-limit");
        assert_eq!(streams.is_met(), None);
    }

    #[test]
    fn a_gateway_is_compared_with_the_proxy_in_front_of_the_same_server() {
        let mut results = Results::default();
        for transport in ["HTTP upstream", "stdio upstream"] {
            let point = format!("{transport}, 2025-11-25 → 2025-11-25, c=16");
            let rates = [(LIMIT, 100.0), (SERVE, 71.0), (gateway::DIRECT, 500.0)];
            for (subject, rate) in rates {
                add(&mut results, gateway::PART, &point, subject, rate);
            }
        }
        let criteria = criteria(&results);
        for upstream in ["http", "stdio"] {
            let name = format!("gateway-{upstream}-2025-11-25-c16-limit");
            assert_eq!(found(&criteria, &name).measured, Some(0.71));
            assert_eq!(found(&criteria, &name).is_met(), Some(true));
        }
    }

    #[test]
    fn rules_are_compared_with_none() {
        let with = |rate| {
            let mut results = Results::default();
            for (rules, rate) in [(0, 100.0), (1000, rate)] {
                let subject = policy::subject(rules);
                add(&mut results, policy::PART, policy::POINT, &subject, rate);
            }
            found(&criteria(&results), "policy-1000-rules").clone()
        };
        assert_eq!(with(80.0).measured, Some(1.25));
        // At 90 % of the rate, a request takes 11 % longer.
        assert_eq!(with(90.0).is_met(), Some(false));
        assert_eq!(with(91.0).is_met(), Some(true));
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        let criteria = criteria(&Results::default());
        assert_eq!(criteria.len(), 16 + 3 + 1 + 1 + 2);
        let mut criteria_of = criteria.iter();
        assert!(criteria_of.all(|criterion| criterion.is_met().is_none()));
        let names: BTreeSet<_> = criteria.iter().map(|criterion| &criterion.name).collect();
        assert_eq!(names.len(), criteria.len());
    }
}
