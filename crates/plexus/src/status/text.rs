//! Server status as text.

use super::{GatewayStatus, StatusOutput, is_unwell};
use crate::gateway::ServerReport;
use crate::output::{harmless, printable};
use crate::terminal::{Canvas, Cell, Tone};

/// How many of the last lines of a server's standard error are shown.
const MAX_STDERR_LINES: usize = 5;

/// A table for each gateway. Long lines are cut, or wrapped by the terminal.
pub(super) fn rendered(output: &StatusOutput, canvas: Canvas, is_cut: bool) -> String {
    let gateways = output.gateways.iter();
    let tables: Vec<_> = gateways
        .map(|gateway| table(gateway, canvas, is_cut))
        .collect();
    if tables.is_empty() {
        "no gateway is running\n".to_owned()
    } else {
        tables.join("\n")
    }
}

/// The status of a server, in one line.
pub(super) fn line(server: &ServerReport) -> String {
    let tools = format!("{} tools", server.tools);
    let revision = server.revision.clone().unwrap_or_default();
    let reason = reason(server).unwrap_or_default();
    let about = match server.state.as_str() {
        "connected" => format!("{revision}  {tools}"),
        _ => reason.lines().next().unwrap_or_default().to_owned(),
    };
    let line = format!("{}: {}  {about}", server.name, server.state);
    printable(&line).trim_end().to_owned()
}

fn table(gateway: &GatewayStatus, canvas: Canvas, is_cut: bool) -> String {
    let cut = |line: String| {
        if is_cut { canvas.fit(&line, 0) } else { line }
    };
    let project = printable(&gateway.project.to_string_lossy());
    let title = match gateway.pid {
        Some(pid) => format!("gateway {pid}, plexus {}, in {project}", gateway.version),
        None => format!("no gateway is running; the servers for {project}, when they are started"),
    };
    let title = canvas.paint(Tone::Dim, &canvas.fit(&title, 0));
    let heading = [
        "STATE", "SERVER", "REVISION", "VIA", "PID", "TOOLS", "START", "LATENCY",
    ];
    let mut rows = vec![heading.map(|word| Cell::new(Tone::Dim, word)).to_vec()];
    rows.extend(gateway.servers.iter().map(row));
    let table = canvas.table(&rows);
    let mut lines = table.lines();
    let mut text = format!("{title}\n{}\n", lines.next().unwrap_or_default());
    for (line, server) in lines.zip(&gateway.servers) {
        text.extend([line, "\n"]);
        for line in details(server) {
            let line = cut(format!("  {line}"));
            text.extend([&canvas.paint(Tone::Dim, &line), "\n"]);
        }
    }
    for problem in &gateway.problems {
        let problem = cut(format!("warning: {}", printable(problem)));
        text.extend([&canvas.paint(Tone::Warning, &problem), "\n"]);
    }
    text
}

fn row(server: &ServerReport) -> Vec<Cell> {
    let tone = match server.state.as_str() {
        "connected" => Tone::Good,
        _ if is_unwell(server) && server.state != "pending" => Tone::Bad,
        _ if is_unwell(server) => Tone::Warning,
        _ => Tone::Dim,
    };
    let none = || "-".to_owned();
    let text = |text: &Option<String>| text.clone().unwrap_or_else(none);
    let time = |time: Option<u64>| time.map_or_else(none, |time| format!("{time} ms"));
    vec![
        Cell::new(tone, server.state.clone()),
        Cell::new(Tone::Bold, printable(&server.name)),
        Cell::plain(text(&server.revision)),
        Cell::plain(text(&server.transport)),
        Cell::plain(server.pid.map_or_else(none, |pid| pid.to_string())),
        Cell::plain(server.tools.to_string()),
        Cell::plain(time(server.connected_in_ms)),
        Cell::plain(time(server.latency_ms)),
    ]
}

/// The error of a server, and the last lines of its standard error.
fn details(server: &ServerReport) -> Vec<String> {
    let Some(reason) = reason(server).filter(|_| is_unwell(server)) else {
        return Vec::new();
    };
    let reason = harmless(&reason);
    let mut lines: Vec<_> = reason.lines().map(str::to_owned).collect();
    // The reason of an exited process already has its last lines.
    if lines.len() == 1 {
        let first = server.stderr.len().saturating_sub(MAX_STDERR_LINES);
        let last = server.stderr.get(first..).unwrap_or_default();
        lines.extend(last.iter().map(|line| format!("  {}", printable(line))));
    }
    lines
}

fn reason(server: &ServerReport) -> Option<String> {
    let last = server.last_error.as_ref().map(|error| &error.message);
    server.reason.as_ref().or(last).cloned()
}
