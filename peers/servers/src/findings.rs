//! The findings of a visit.

use plexus_mcp_client::{ProtocolViolations, Upstream};
use plexus_mcp_core::{Outcome, Section, Service};
use plexus_mcp_protocol::messages::CallToolResult;
use serde::Serialize;

/// The state of a connected server. Kinds of list problems are shown as the client edge names them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Findings {
    state: String,
    reason: Option<String>,
    name: String,
    revision: Option<&'static str>,
    tools: usize,
    resources: usize,
    templates: usize,
    prompts: usize,
    quirks: Vec<String>,
    quarantined: Vec<String>,
    list_problems: Vec<String>,
    violations: Option<String>,
    called: Option<Called>,
}

/// How a call ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Called {
    /// The tool's text.
    Text(String),
    /// The text of a result with `isError`.
    ToolError(String),
    /// Why there is no result.
    Fault(String),
}

impl Findings {
    pub(crate) fn of(upstream: &Upstream, outcome: Option<Outcome>) -> Self {
        let status = upstream.status().borrow().clone();
        let catalogue = upstream.catalogue().borrow().clone();
        let count = |section| catalogue.list(section).entries().len();
        let report = upstream.report();
        let facts = report.as_ref().map(|report| &report.facts);
        Self {
            state: status.state.to_string(),
            reason: status.reason,
            name: catalogue.identity.name.clone(),
            revision: facts.map(|facts| facts.revision.as_str()),
            tools: count(Section::Tools),
            resources: count(Section::Resources),
            templates: count(Section::Templates),
            prompts: count(Section::Prompts),
            quirks: named(report.iter().flat_map(|report| &report.quirks)),
            quarantined: named(report.iter().flat_map(|report| &report.quarantined)),
            list_problems: named(report.iter().flat_map(|report| &report.list_problems)),
            violations: report
                .map(|report| report.violations)
                .filter(|violations| *violations != ProtocolViolations::default())
                .map(|violations| format!("{violations:?}")),
            called: outcome.map(Called::from),
        }
    }
}

impl From<Outcome> for Called {
    fn from(outcome: Outcome) -> Self {
        let result = match outcome {
            Ok(result) => result,
            Err(fault) => return Self::Fault(fault.to_string()),
        };
        match result.decode::<CallToolResult>() {
            Ok(result) if result.is_error => Self::ToolError(text(&result)),
            Ok(result) => Self::Text(text(&result)),
            Err(error) => Self::Fault(format!("the result cannot be read: {error}")),
        }
    }
}

fn text(result: &CallToolResult) -> String {
    let texts: Vec<_> = result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .collect();
    texts.join("\n")
}

fn named<'a>(items: impl Iterator<Item = &'a (impl std::fmt::Debug + 'a)>) -> Vec<String> {
    items.map(|item| format!("{item:?}")).collect()
}
