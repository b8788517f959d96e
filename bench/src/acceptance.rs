//! What is demanded of a run, and whether it is met.

use crate::gateways::{BRIDGE, Behind, HUB};
use crate::message::{Era, SIZES};
use crate::part::{gateway, lists, memory, server, start, stdio};
use crate::results::Results;
use crate::servers::{LIMIT, OURS};

/// One demand.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    /// What was measured; nothing if it was not.
    pub(crate) measured: Option<f64>,
    pub(crate) unit: &'static str,
}

/// How a figure is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Demand {
    /// Whether it is met; unknown if it was not measured.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(match self.bound {
            Bound::AtLeast(bound) => measured >= bound,
            Bound::AtMost(bound) => measured <= bound,
        })
    }
}

/// All demands, with what `results` have to say to them.
pub(crate) fn demands(results: &Results) -> Vec<Demand> {
    let judge = Judge { results };
    let mut demands = judge.servers();
    demands.extend(judge.gateways());
    demands.extend(judge.pipes());
    demands.extend(judge.memory());
    demands.extend(judge.lists());
    demands
}

struct Judge<'a> {
    results: &'a Results,
}

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];
const CONCURRENCIES: [usize; 3] = [1, 16, 256];

impl Judge<'_> {
    fn servers(&self) -> Vec<Demand> {
        let mut demands = Vec::new();
        for era in ERAS {
            for (concurrency, bound) in [(1, 0.85), (16, 0.70), (256, 0.70)] {
                let point = json_point(era, SIZES[0], concurrency);
                demands.push(Demand {
                    what: format!("server, {point}: req/s of the limit's"),
                    bound: Bound::AtLeast(bound),
                    measured: self.of_limit(server::PART, &point, OURS, "req_s"),
                    unit: "",
                });
            }
        }
        for era in ERAS {
            for concurrency in [16, 256] {
                let point = json_point(era, SIZES[0], concurrency);
                demands.push(Demand {
                    what: format!("server, {point}: req/s of the best rival's"),
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
            demands.push(Demand {
                what: format!("server, JSON, {name}, the worst of all points: rate of the limit's"),
                bound: Bound::AtLeast(0.6),
                measured: least(ratios),
                unit: "",
            });
        }
        demands
    }

    fn gateways(&self) -> Vec<Demand> {
        let part = gateway::PART;
        let p50 = |point: &str, subject| self.results.figure(part, point, subject, "p50_us");
        let extra = |behind, subject| {
            let point = pass_through(behind, Era::Handshake, 1);
            Some(p50(&point, subject)? - p50(&point, gateway::DIRECT)?)
        };
        let proxy = extra(Behind::Http, LIMIT);
        let relative = |behind| Some(extra(behind, BRIDGE)? / proxy?);
        let mut demands = vec![
            Demand {
                what: "gateway, HTTP upstream, c=1: extra p50, of the bare proxy's".to_owned(),
                bound: Bound::AtMost(1.3),
                measured: relative(Behind::Http),
                unit: "×",
            },
            Demand {
                what: "gateway, stdio upstream, c=1: extra p50, of the bare proxy's".to_owned(),
                bound: Bound::AtMost(1.0),
                measured: relative(Behind::Stdio),
                unit: "×",
            },
        ];
        for behind in [Behind::Http, Behind::Stdio] {
            let point = pass_through(behind, Era::Handshake, 16);
            let rate = |subject| self.results.figure(part, &point, subject, "req_s");
            let of_upstream = || Some(rate(BRIDGE)? / rate(gateway::DIRECT)?);
            demands.push(Demand {
                what: format!(
                    "gateway, {}, c=16: req/s of the upstream's own",
                    behind.name()
                ),
                bound: Bound::AtLeast(0.6),
                measured: of_upstream(),
                unit: "",
            });
            demands.push(Demand {
                what: format!("gateway, {}, c=16: CPU for each request", behind.name()),
                bound: Bound::AtMost(35.0),
                measured: self.results.figure(part, &point, BRIDGE, "cpu_us"),
                unit: " µs",
            });
            let points = gateway::points(false, behind).into_iter();
            let others = points.filter_map(|point| {
                let ignored = [LIMIT, gateway::DIRECT];
                self.of_best_other(part, &point.name(), &[BRIDGE, HUB], &ignored)
            });
            demands.push(Demand {
                what: format!(
                    "gateway, {}, the worst of all points: req/s of the best other gateway's",
                    behind.name()
                ),
                bound: Bound::AtLeast(1.0),
                measured: least(others),
                unit: "×",
            });
        }
        demands.push(Demand {
            what: "gateway, HTTP upstream, c=16: what translation between eras costs".to_owned(),
            bound: Bound::AtMost(15.0),
            measured: self.translation(),
            unit: " %",
        });
        demands
    }

    /// By how much the slower direction of translation is slower than passing through, in per cent
    /// of the mean of both eras: each of them costs at one edge what it costs there anyway.
    fn translation(&self) -> Option<f64> {
        let rate = |client, server| {
            let point = gateway::Point {
                behind: Behind::Http,
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

    fn pipes(&self) -> Vec<Demand> {
        let of_echo = |in_flight| {
            let point = stdio::point(in_flight);
            self.of_limit(stdio::PART, &point, OURS, "req_s")
        };
        let milliseconds = |point| self.results.figure(start::PART, point, OURS, "ms");
        vec![
            Demand {
                what: "stdio, serial: req/s of a bare line echo's".to_owned(),
                bound: Bound::AtLeast(0.8),
                measured: of_echo(1),
                unit: "",
            },
            Demand {
                what: "stdio, 32 in flight: req/s of a bare line echo's".to_owned(),
                bound: Bound::AtLeast(0.4),
                measured: of_echo(32),
                unit: "",
            },
            Demand {
                what: "cold start to the first tools/list over stdio, no upstream".to_owned(),
                bound: Bound::AtMost(2.5),
                measured: milliseconds(start::ALONE),
                unit: " ms",
            },
            Demand {
                what: "the same with 100 upstreams configured, remembered".to_owned(),
                bound: Bound::AtMost(15.0),
                measured: milliseconds(start::CONFIGURED),
                unit: " ms",
            },
        ]
    }

    fn memory(&self) -> Vec<Demand> {
        let figure = |point, name| self.results.figure(memory::PART, point, OURS, name);
        let of_bridge = |point, name| self.results.figure(memory::PART, point, BRIDGE, name);
        vec![
            Demand {
                what: "memory, idle".to_owned(),
                bound: Bound::AtMost(6.0),
                measured: figure(memory::IDLE, "resident_mib"),
                unit: " MiB",
            },
            Demand {
                what: "memory for each of 10,000 idle sessions".to_owned(),
                bound: Bound::AtMost(1.5),
                measured: figure(memory::SESSIONS, "each_kib"),
                unit: " KiB",
            },
            Demand {
                what: "memory for each idle session with its GET stream".to_owned(),
                bound: Bound::AtMost(20.0),
                measured: figure(memory::STREAMS, "each_kib"),
                unit: " KiB",
            },
            Demand {
                what: "processes that 16 clients of a stdio upstream start".to_owned(),
                bound: Bound::AtMost(1.0),
                measured: of_bridge(memory::PROCESSES, "processes"),
                unit: "",
            },
            Demand {
                what: "how often the gateway holds a result of 1 MiB".to_owned(),
                bound: Bound::AtMost(2.0),
                measured: of_bridge(memory::HELD, "times"),
                unit: "×",
            },
        ]
    }

    fn lists(&self) -> Vec<Demand> {
        let point = lists::list_point(1);
        vec![Demand {
            what: format!("{point}: rate of the limit's for that body"),
            bound: Bound::AtLeast(0.7),
            measured: self.of_limit(lists::PART, &point, HUB, "req_s"),
            unit: "",
        }]
    }

    fn of_limit(&self, part: &str, point: &str, subject: &str, figure: &str) -> Option<f64> {
        let of = |subject| self.results.figure(part, point, subject, figure);
        Some(of(subject)? / of(LIMIT)?)
    }

    /// The rate of the first of `ours` as a multiple of the best rate of anybody else.
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

fn pass_through(behind: Behind, era: Era, concurrency: usize) -> String {
    let point = gateway::Point {
        behind,
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

    fn found<'a>(demands: &'a [Demand], what: &str) -> &'a Demand {
        demands.iter().find(|demand| demand.what == what).unwrap()
    }

    #[test]
    fn a_server_is_compared_with_the_limit_and_with_the_best_rival() {
        let mut results = Results::default();
        for (subject, rate) in [(LIMIT, 100.0), (OURS, 69.0), ("slow", 10.0), ("fast", 46.0)] {
            add(&mut results, subject, rate);
        }
        let demands = demands(&results);
        let of_limit = "server, 2026-07-28, JSON, 100 B, c=16: req/s of the limit's";
        assert_eq!(found(&demands, of_limit).is_met(), Some(false));
        let of_rival = "server, 2026-07-28, JSON, 100 B, c=16: req/s of the best rival's";
        assert_eq!(found(&demands, of_rival).is_met(), Some(true));
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        let demands = demands(&Results::default());
        assert!(demands.len() > 20);
        assert!(demands.iter().all(|demand| demand.is_met().is_none()));
    }
}
