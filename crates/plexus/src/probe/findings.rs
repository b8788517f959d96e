//! Findings about a server.

use std::time::Duration;

use plexus_mcp_client::{ListProblem, ProtocolViolations, Quirk, Report, Status, Upstream};
use plexus_mcp_core::{Raw, Section, Service};
use serde::Serialize;

use super::noun;
use crate::printable::one_line;

/// Findings about a connected server.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) server: String,
    connected: bool,
    pub(super) transport: &'static str,
    pub(super) era: &'static str,
    pub(super) revision: &'static str,
    /// The revisions that it declares.
    pub(super) versions: Vec<String>,
    pub(super) identity: Identity,
    pub(super) capabilities: Raw,
    pub(super) instructions: Option<String>,
    pub(super) counts: Counts,
    pub(super) latency_ms: Latency,
    pub(super) quirks: Vec<ProbeFinding>,
    pub(super) quarantined: Vec<QuarantinedEntry>,
    pub(super) violations: Vec<ProbeFinding>,
}

#[derive(Debug, Serialize)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Counts {
    pub(super) tools: usize,
    pub(super) resources: usize,
    pub(super) resource_templates: usize,
    pub(super) prompts: usize,
}

/// Latencies, in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    /// Until it was connected and listed.
    pub(super) connect: f64,
    /// The first page of its tools.
    pub(super) list: Option<f64>,
    /// The request whose round trip was measured.
    pub(super) round_trip_method: &'static str,
    /// The median of several round trips.
    pub(super) round_trip: Option<f64>,
}

/// One finding.
#[derive(Debug, Serialize)]
pub(super) struct ProbeFinding {
    /// The kind, for scripts.
    kind: &'static str,
    /// The text, for users.
    pub(super) message: String,
}

/// A quarantined entry of a list.
#[derive(Debug, Serialize)]
pub(super) struct QuarantinedEntry {
    pub(super) list: &'static str,
    pub(super) name: String,
    pub(super) reason: String,
}

/// A server that could not be connected.
#[derive(Debug, Serialize)]
pub(super) struct NotConnected {
    server: String,
    connected: bool,
    state: &'static str,
    reason: Option<String>,
}

impl Findings {
    /// The findings about `upstream`, if it is still connected.
    pub(super) fn of(upstream: &Upstream, server: String, latency_ms: Latency) -> Option<Self> {
        let Report {
            facts,
            quirks,
            quarantined,
            list_problems,
            violations: counted,
            ..
        } = upstream.report()?;
        let offered = upstream.catalogue().borrow().clone();
        let count = |section| offered.list(section).entries().len();
        let is_address = crate::named::is_address(&server);
        let transport = match (is_address, quirks.contains(&Quirk::SseOnly)) {
            (false, _) => "stdio",
            (true, false) => "http",
            (true, true) => "sse",
        };
        let quarantined_entries = quarantined.into_iter().map(|entry| QuarantinedEntry {
            list: noun(entry.section, 2),
            name: entry.name,
            reason: entry.reason,
        });
        let mut violations: Vec<_> = list_problems.iter().map(list_problem_finding).collect();
        violations.extend(protocol_findings(&counted));
        Some(Self {
            server,
            connected: true,
            transport,
            era: facts.revision.era().as_str(),
            revision: facts.revision.as_str(),
            versions: facts.versions,
            identity: Identity {
                name: facts.identity.name,
                version: facts.identity.version,
            },
            capabilities: facts.capabilities.to_raw(facts.revision.features()),
            instructions: facts.instructions,
            counts: Counts {
                tools: count(Section::Tools),
                resources: count(Section::Resources),
                resource_templates: count(Section::Templates),
                prompts: count(Section::Prompts),
            },
            latency_ms,
            quirks: quirks.iter().map(quirk).collect(),
            quarantined: quarantined_entries.collect(),
            violations,
        })
    }

    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl NotConnected {
    pub(super) fn new(server: String, status: &Status) -> Self {
        Self {
            server,
            connected: false,
            state: status.state.as_str(),
            reason: status.reason.clone(),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl Latency {
    pub(super) fn new(
        connect: Duration,
        list: Option<Duration>,
        round_trip_method: &'static str,
        round_trip: Option<Duration>,
    ) -> Self {
        // Rounded to a hundredth: the clock is not more precise.
        let milliseconds = |time: Duration| (time.as_secs_f64() * 100_000.0).round() / 100.0;
        Self {
            connect: milliseconds(connect),
            list: list.map(milliseconds),
            round_trip_method,
            round_trip: round_trip.map(milliseconds),
        }
    }
}

fn quirk(quirk: &Quirk) -> ProbeFinding {
    let (kind, message) = match quirk {
        Quirk::SilentToDiscover => (
            "silent-to-discover",
            "it did not answer server/discover, which costs seconds at every start".to_owned(),
        ),
        Quirk::EndsOnDiscover => (
            "ends-on-discover",
            "it ended when it was sent server/discover, and was started again".to_owned(),
        ),
        Quirk::RefusesDiscover { code } => (
            "refuses-discover",
            format!("it answered server/discover with error {code}, as servers of its era do"),
        ),
        Quirk::SseOnly => (
            "sse-only",
            "it supports only HTTP+SSE of 2024-11-05".to_owned(),
        ),
        other => ("other", format!("{other:?}")),
    };
    ProbeFinding { kind, message }
}

fn list_problem_finding(problem: &ListProblem) -> ProbeFinding {
    let (kind, message) = match problem {
        ListProblem::Failed { section, reason } => (
            "unlisted",
            format!("its {} cannot be listed: {reason}", noun(*section, 2)),
        ),
        ListProblem::TooLong(section) => (
            "endless-list",
            format!("its list of {} has no end", noun(*section, 2)),
        ),
        ListProblem::CursorLoop(section) => (
            "circular-list",
            format!("its list of {} has a cursor loop", noun(*section, 2)),
        ),
        other => ("other", format!("{other:?}")),
    };
    ProbeFinding { kind, message }
}

fn protocol_findings(violations: &ProtocolViolations) -> impl Iterator<Item = ProbeFinding> {
    let last = violations.last_undecodable.as_deref().map(one_line);
    let last = last.map_or_else(String::new, |last| format!(", the last being {last:?}"));
    let counted = [
        (
            violations.not_json,
            "not-json",
            "lines on its output that are not JSON",
            last.as_str(),
        ),
        (
            violations.not_a_message,
            "not-a-message",
            "JSON that is not a message",
            last.as_str(),
        ),
        (
            violations.too_long,
            "too-long",
            "messages above the size limit",
            "",
        ),
        (
            violations.unknown_answers,
            "unknown-answer",
            "responses to unknown requests",
            "",
        ),
        (
            violations.requests,
            "request",
            "requests, which a stateless server must not send",
            "",
        ),
        (
            violations.dropped,
            "flood",
            "notifications dropped because they came too fast",
            "",
        ),
    ];
    let seen = counted.map(|(count, kind, what, last)| {
        let message = format!("{what}: {count}{last}");
        (count > 0).then_some(ProbeFinding { kind, message })
    });
    seen.into_iter().flatten()
}
