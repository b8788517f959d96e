//! The findings as text.

use plexus_mcp_core::Section;

use super::findings::{Findings, Latency};
use super::noun;
use crate::printable::one_line;

/// Width of the label column.
const LABEL_WIDTH: usize = 14;
/// How many lines of the instructions are shown.
const MAX_INSTRUCTION_LINES: usize = 3;

/// The findings as aligned lines, and a list for each kind of problem.
pub(super) fn rendered(findings: &Findings) -> String {
    let name = match findings.identity.name.as_str() {
        "" => "a server without a name".to_owned(),
        name => one_line(&format!("{name} {}", findings.identity.version)),
    };
    let over = match findings.transport {
        "stdio" => "standard input and output",
        "sse" => "HTTP+SSE",
        _ => "Streamable HTTP",
    };
    let mut lines = vec![
        name,
        row("server", &one_line(&findings.server)),
        row(
            "speaks",
            &format!("{} ({}) over {over}", findings.revision, findings.era),
        ),
        row("versions", &one_line(&findings.versions.join(", "))),
        row("capabilities", &capabilities(findings)),
        row("lists", &counts(findings)),
        row("latency", &latency(&findings.latency_ms)),
    ];
    lines.extend(instructions(findings.instructions.as_deref()));
    let apart = findings.quarantined.iter().map(|entry| {
        let (name, reason) = (one_line(&entry.name), one_line(&entry.reason));
        format!("{name:?} of its {}: {reason}", entry.list)
    });
    let quirks = findings.quirks.iter().map(|quirk| one_line(&quirk.message));
    let violations = findings.violations.iter();
    let violations = violations.map(|violation| one_line(&violation.message));
    section(&mut lines, "Quirks", quirks.collect());
    section(&mut lines, "Not shown to clients", apart.collect());
    section(
        &mut lines,
        "Against the specification",
        violations.collect(),
    );
    lines.join("\n")
}

fn row(label: &str, text: &str) -> String {
    format!("  {label:<LABEL_WIDTH$}{text}")
}

fn section(lines: &mut Vec<String>, title: &str, items: Vec<String>) {
    if !items.is_empty() {
        lines.push(format!("\n{title}"));
        lines.extend(items.into_iter().map(|item| format!("  - {item}")));
    }
}

/// The declared capabilities, each with its options.
fn capabilities(findings: &Findings) -> String {
    let declared: serde_json::Map<String, serde_json::Value> =
        findings.capabilities.decode().unwrap_or_default();
    let described = declared.iter().map(|(name, details)| {
        let details = details.as_object().into_iter().flatten();
        let details = details.filter(|(_, value)| **value != serde_json::Value::Bool(false));
        let details: Vec<_> = details.map(|(name, _)| name.as_str()).collect();
        if details.is_empty() {
            name.clone()
        } else {
            format!("{name} ({})", details.join(", "))
        }
    });
    let described: Vec<_> = described.collect();
    if described.is_empty() {
        "nothing that it declares".to_owned()
    } else {
        one_line(&described.join(", "))
    }
}

fn counts(findings: &Findings) -> String {
    let counts = &findings.counts;
    let counts = [
        (Section::Tools, counts.tools),
        (Section::Resources, counts.resources),
        (Section::Templates, counts.resource_templates),
        (Section::Prompts, counts.prompts),
    ];
    let counts = counts.map(|(section, count)| format!("{count} {}", noun(section, count)));
    counts.join(", ")
}

fn latency(latency: &Latency) -> String {
    let mut parts = vec![format!("connected and listed in {} ms", latency.connect)];
    if let Some(list) = latency.list {
        parts.push(format!("tools/list {list} ms"));
    }
    if let Some(round_trip) = latency.round_trip {
        parts.push(format!("{} {round_trip} ms", latency.round_trip_method));
    }
    parts.join(", ")
}

fn instructions(text: Option<&str>) -> Vec<String> {
    let all: Vec<_> = text.unwrap_or_default().trim().lines().collect();
    let shown = all.iter().take(MAX_INSTRUCTION_LINES).enumerate();
    let mut lines: Vec<_> = shown
        .map(|(number, line)| {
            let label = if number == 0 { "instructions" } else { "" };
            row(label, one_line(line).trim_end())
        })
        .collect();
    if let more @ 1.. = all.len().saturating_sub(MAX_INSTRUCTION_LINES) {
        lines.push(row("", &format!("({more} more)")));
    }
    lines
}
