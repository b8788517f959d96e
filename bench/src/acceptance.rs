//! The acceptance criteria of a run, and whether they are met.

use plexus_mcp_protocol::Era;

use crate::gateways::{BRIDGE, HUB, UpstreamTransport};
use crate::message::SIZES;
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::results::Results;
use crate::servers::{LIMIT, OURS};

/// One acceptance criterion.
#[derive(Debug, Clone)]
pub(crate) struct Criterion {
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
    criteria.extend(evaluation.pipes());
    criteria.extend(evaluation.memory());
    criteria.extend(evaluation.lists());
    criteria
}

struct Evaluation<'a> {
    results: &'a Results,
}

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];
const CONCURRENCIES: [usize; 3] = [1, 16, 256];

impl Evaluation<'_> {
    fn servers(&self) -> Vec<Criterion> {
        let mut criteria = Vec::new();
        for era in ERAS {
            for (concurrency, bound) in [(1, 0.85), (16, 0.70), (256, 0.70)] {
                let point = json_point(era, SIZES[0], concurrency);
                criteria.push(Criterion {
                    description: format!("server, {point}: req/s of the limit's"),
                    bound: Bound::AtLeast(bound),
                    measured: self.of_limit(server::PART, &point, OURS, "req_s"),
                    unit: "",
                });
            }
        }
        for era in ERAS {
            for concurrency in [16, 256] {
                let point = json_point(era, SIZES[0], concurrency);
                criteria.push(Criterion {
                    description: format!("server, {point}: req/s of the best rival's"),
                    bound: Bound::AtLeast(1.5),
                    measured: self.of_best_other(server::PART, &point, &[OURS], &[LIMIT]),
                    unit: "×",
                });
            }
        }
        for (bytes, name, figure) in [(SIZES[1], "10 KiB", "req_s"), (SIZES[2], "1 MiB", "mib_s")] {
            let points = ERAS.iter().flat_map(|&era| {
                CONCURRENCIES.map(|concurrency| json_point(era, bytes, concurrency))
            });
            let ratios =
                points.filter_map(|point| self.of_limit(server::PART, &point, OURS, figure));
            criteria.push(Criterion {
                description: format!(
                    "server, JSON, {name}, the worst of all points: rate of the limit's"
                ),
                bound: Bound::AtLeast(0.6),
                measured: least(ratios),
                unit: "",
            });
        }
        criteria
    }

    fn gateways(&self) -> Vec<Criterion> {
        let part = gateway::PART;
        let p50 = |point: &str, subject| self.results.figure(part, point, subject, "p50_us");
        let extra = |transport, subject| {
            let point = pass_through(transport, Era::Handshake, 1);
            Some(p50(&point, subject)? - p50(&point, gateway::DIRECT)?)
        };
        let proxy = extra(UpstreamTransport::Http, LIMIT);
        let relative = |transport| Some(extra(transport, BRIDGE)? / proxy?);
        let mut criteria = vec![
            Criterion {
                description: "gateway, HTTP upstream, c=1: extra p50, of the bare proxy's"
                    .to_owned(),
                bound: Bound::AtMost(1.3),
                measured: relative(UpstreamTransport::Http),
                unit: "×",
            },
            Criterion {
                description: "gateway, stdio upstream, c=1: extra p50, of the bare proxy's"
                    .to_owned(),
                bound: Bound::AtMost(1.0),
                measured: relative(UpstreamTransport::Stdio),
                unit: "×",
            },
        ];
        for transport in [UpstreamTransport::Http, UpstreamTransport::Stdio] {
            let point = pass_through(transport, Era::Handshake, 16);
            let rate = |subject| self.results.figure(part, &point, subject, "req_s");
            let of_upstream = || Some(rate(BRIDGE)? / rate(gateway::DIRECT)?);
            criteria.push(Criterion {
                description: format!(
                    "gateway, {}, c=16: req/s of the upstream's own",
                    transport.name()
                ),
                bound: Bound::AtLeast(0.6),
                measured: of_upstream(),
                unit: "",
            });
            criteria.push(Criterion {
                description: format!("gateway, {}, c=16: CPU for each request", transport.name()),
                bound: Bound::AtMost(35.0),
                measured: self.results.figure(part, &point, BRIDGE, "cpu_us"),
                unit: " µs",
            });
            let points = gateway::points(false, transport).into_iter();
            let others = points.filter_map(|point| {
                let ignored = [LIMIT, gateway::DIRECT];
                self.of_best_other(part, &point.name(), &[BRIDGE, HUB], &ignored)
            });
            criteria.push(Criterion {
                description: format!(
                    "gateway, {}, the worst of all points: req/s of the best other gateway's",
                    transport.name()
                ),
                bound: Bound::AtLeast(1.0),
                measured: least(others),
                unit: "×",
            });
        }
        criteria.push(Criterion {
            description: "gateway, HTTP upstream, c=16: cost of translation between eras"
                .to_owned(),
            bound: Bound::AtMost(15.0),
            measured: self.translation(),
            unit: " %",
        });
        criteria
    }

    /// How much slower the slower direction of translation is than passing through, in per cent of
    /// the mean of both eras. The mean is the reference because translation uses one era at each
    /// edge.
    fn translation(&self) -> Option<f64> {
        let rate = |client, server| {
            let point = gateway::Point {
                transport: UpstreamTransport::Http,
                client,
                server,
                concurrency: 16,
            };
            let name = point.name();
            self.results.figure(gateway::PART, &name, BRIDGE, "req_s")
        };
        let [old, new] = ERAS;
        let through = f64::midpoint(rate(old, old)?, rate(new, new)?);
        let translated = rate(new, old)?.min(rate(old, new)?);
        Some((1.0 - translated / through) * 100.0)
    }

    fn pipes(&self) -> Vec<Criterion> {
        let of_echo = |in_flight| {
            let point = stdio::point(in_flight);
            self.of_limit(stdio::PART, &point, OURS, "req_s")
        };
        let milliseconds = |point| self.results.figure(start::PART, point, OURS, "ms");
        vec![
            Criterion {
                description: "stdio, serial: req/s of a bare line echo's".to_owned(),
                bound: Bound::AtLeast(0.8),
                measured: of_echo(1),
                unit: "",
            },
            Criterion {
                description: "stdio, 32 in flight: req/s of a bare line echo's".to_owned(),
                bound: Bound::AtLeast(0.4),
                measured: of_echo(32),
                unit: "",
            },
            Criterion {
                description: "cold start to the first tools/list over stdio, no upstream"
                    .to_owned(),
                bound: Bound::AtMost(2.5),
                measured: milliseconds(start::ALONE),
                unit: " ms",
            },
            Criterion {
                description: "the same with 100 upstreams configured, remembered".to_owned(),
                bound: Bound::AtMost(15.0),
                measured: milliseconds(start::CONFIGURED),
                unit: " ms",
            },
        ]
    }

    fn memory(&self) -> Vec<Criterion> {
        let figure = |point, name| self.results.figure(memory::PART, point, OURS, name);
        let of_bridge = |point, name| self.results.figure(memory::PART, point, BRIDGE, name);
        vec![
            Criterion {
                description: "memory, idle".to_owned(),
                bound: Bound::AtMost(6.0),
                measured: figure(memory::IDLE, "resident_mib"),
                unit: " MiB",
            },
            Criterion {
                description: "memory for each of 10,000 idle sessions".to_owned(),
                bound: Bound::AtMost(1.5),
                measured: figure(memory::SESSIONS, "each_kib"),
                unit: " KiB",
            },
            Criterion {
                description: "memory for each idle session with its GET stream".to_owned(),
                bound: Bound::AtMost(20.0),
                measured: figure(memory::STREAMS, "each_kib"),
                unit: " KiB",
            },
            Criterion {
                description: "processes that 16 clients of a stdio upstream start".to_owned(),
                bound: Bound::AtMost(1.0),
                measured: of_bridge(memory::PROCESSES, "processes"),
                unit: "",
            },
            Criterion {
                description: "how often the gateway holds a result of 1 MiB".to_owned(),
                bound: Bound::AtMost(2.0),
                measured: of_bridge(memory::RESULT_COPIES, "times"),
                unit: "×",
            },
        ]
    }

    fn lists(&self) -> Vec<Criterion> {
        let point = lists::list_point(1);
        vec![Criterion {
            description: format!("{point}: rate of the limit's for that body"),
            bound: Bound::AtLeast(0.7),
            measured: self.of_limit(lists::PART, &point, HUB, "req_s"),
            unit: "",
        }]
    }

    fn of_limit(&self, part: &str, point: &str, subject: &str, figure: &str) -> Option<f64> {
        let of = |subject| self.results.figure(part, point, subject, figure);
        Some(of(subject)? / of(LIMIT)?)
    }

    /// The rate of the first of `ours` as a multiple of the best rate of the other subjects.
    fn of_best_other(
        &self,
        part: &str,
        point: &str,
        ours: &[&str],
        ignored: &[&str],
    ) -> Option<f64> {
        let best = self
            .results
            .rows
            .iter()
            .filter(|row| row.key.part == part && row.key.point == point)
            .filter(|row| {
                let subject = row.key.subject.as_str();
                !ours.contains(&subject) && !ignored.contains(&subject)
            })
            .filter_map(|row| row.figures.get("req_s").copied())
            .max_by(f64::total_cmp)?;
        let own = self.results.figure(part, point, ours.first()?, "req_s")?;
        Some(own / best)
    }
}

fn json_point(era: Era, bytes: usize, concurrency: usize) -> String {
    let point = server::Point {
        era,
        is_stream: false,
        bytes,
        concurrency,
    };
    point.name()
}

fn pass_through(transport: UpstreamTransport, era: Era, concurrency: usize) -> String {
    let point = gateway::Point {
        transport,
        client: era,
        server: era,
        concurrency,
    };
    point.name()
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Key, figures};

    fn add(results: &mut Results, subject: &str, rate: f64) {
        let key = Key {
            part: server::PART.to_owned(),
            point: "2026-07-28, JSON, 100 B, c=16".to_owned(),
            subject: subject.to_owned(),
        };
        results.add(key, Ok(figures([("req_s", rate)])));
    }

    fn found<'a>(criteria: &'a [Criterion], description: &str) -> &'a Criterion {
        criteria
            .iter()
            .find(|criterion| criterion.description == description)
            .unwrap()
    }

    #[test]
    fn a_server_is_compared_with_the_limit_and_with_the_best_rival() {
        let mut results = Results::default();
        for (subject, rate) in [(LIMIT, 100.0), (OURS, 69.0), ("slow", 10.0), ("fast", 46.0)] {
            add(&mut results, subject, rate);
        }
        let criteria = criteria(&results);
        let of_limit = "server, 2026-07-28, JSON, 100 B, c=16: req/s of the limit's";
        assert_eq!(found(&criteria, of_limit).is_met(), Some(false));
        let of_rival = "server, 2026-07-28, JSON, 100 B, c=16: req/s of the best rival's";
        assert_eq!(found(&criteria, of_rival).is_met(), Some(true));
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        let criteria = criteria(&Results::default());
        assert!(criteria.len() > 20);
        assert!(
            criteria
                .iter()
                .all(|criterion| criterion.is_met().is_none())
        );
    }
}
