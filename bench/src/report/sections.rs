//! The sections of the page with tables of loads.

use crate::part::{gateway, lists, policy, server, stdio};
use crate::results::{Results, Row};
use crate::servers::LIMIT;

/// A section with tables of loads, and the subject that its rates are compared with.
pub(super) struct LoadSection {
    pub(super) part: &'static str,
    pub(super) title: &'static str,
    pub(super) charts: &'static [&'static str],
    pub(super) base: &'static str,
    pub(super) of_base: &'static str,
}

impl LoadSection {
    /// The rate of a row of this section as a part of the base's at the same point; `None` for the
    /// base itself, and where either has no rate.
    pub(super) fn ratio(&self, results: &Results, row: &Row) -> Option<f64> {
        if row.key.subject == self.base {
            return None;
        }
        let base = results.figure(self.part, &row.key.point, self.base, "req_s")?;
        Some(row.figures.get("req_s")? / base)
    }
}

pub(super) const LOAD_SECTIONS: [LoadSection; 5] = [
    LoadSection {
        part: server::PART,
        title: "Servers over HTTP",
        charts: &[
            "servers-2025-11-25",
            "servers-2026-07-28",
            "servers-streams",
            "servers-cpu",
        ],
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
        base: LIMIT,
        of_base: "the bare proxy's",
    },
    LoadSection {
        part: policy::PART,
        title: "Policy rules",
        charts: &[],
        base: "plexus serve, rules: 0",
        of_base: "that without rules",
    },
    LoadSection {
        part: lists::PART,
        title: "Lists, and many upstreams",
        charts: &[],
        base: LIMIT,
        of_base: "the limit's",
    },
];
