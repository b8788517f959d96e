//! Server status as text.

use super::{GatewayStatus, StatusOutput, is_unwell};
use crate::gateway::ServerReport;
use crate::printable::{Printable, one_line};
use crate::terminal::{Canvas, Cell, Tone};

/// How many of the last lines of a server's standard error are shown.
const MAX_STDERR_LINES: usize = 5;

/// A table for each gateway. Long lines are cut, or wrapped by the terminal.
pub(super) fn rendered(output: &StatusOutput, canvas: Canvas, is_cut: bool) -> Printable {
    let gateways = output.gateways.iter();
    let tables = gateways.enumerate().map(|(number, gateway)| {
        let apart = Printable::from(if number == 0 { "" } else { "\n" });
        apart + table(gateway, canvas, is_cut)
    });
    let tables: Printable = tables.collect();
    if tables.is_empty() {
        "no gateway is running\n".into()
    } else {
        tables
    }
}

/// The status of a server, in one line.
pub(super) fn line(server: &ServerReport) -> String {
    let reason = reason(server).unwrap_or_default();
    let reason = reason.lines().next().unwrap_or_default();
    let about = match server.state.as_str() {
        "connected" => {
            let revision = server.revision.as_deref().unwrap_or_default();
            format!("{revision}  {} tools  {reason}", server.tools)
        }
        _ => reason.to_owned(),
    };
    let line = format!("{}: {}  {about}", server.name, server.state);
    one_line(&line).trim_end().to_owned()
}

fn table(gateway: &GatewayStatus, canvas: Canvas, is_cut: bool) -> Printable {
    let cut = |line: String| {
        if is_cut {
            canvas.fit(&line, 0)
        } else {
            one_line(&line)
        }
    };
    let project = gateway.project.display();
    let title = match gateway.pid {
        Some(pid) => format!("gateway {pid}, plexus {}, in {project}", gateway.version),
        None if gateway.files.is_empty() => {
            format!("no gateway is running; the servers for {project}, when they are started")
        }
        None => {
            let files = gateway.files.iter().map(|file| file.display().to_string());
            let files: Vec<_> = files.collect();
            let files = files.join(", ");
            format!("the servers of {files} and for {project}, when they are started")
        }
    };
    let title = canvas.paint(Tone::Dim, canvas.fit(&title, 0));
    let heading = [
        "STATE", "SERVER", "REVISION", "VIA", "PID", "TOOLS", "START", "LATENCY",
    ];
    let mut rows = vec![heading.map(|word| Cell::new(Tone::Dim, word)).to_vec()];
    rows.extend(gateway.servers.iter().map(row));
    let table = canvas.table(&rows);
    let mut lines = table.lines();
    let mut text = title + "\n" + lines.next().unwrap_or_default() + "\n";
    for (line, server) in lines.zip(&gateway.servers) {
        text = text + line + "\n";
        for line in details(server) {
            let line = cut(format!("  {line}"));
            text = text + canvas.paint(Tone::Dim, line) + "\n";
        }
    }
    for problem in &gateway.problems {
        let problem = cut(format!("warning: {problem}"));
        text = text + canvas.paint(Tone::Warning, problem) + "\n";
    }
    text
}

fn row(server: &ServerReport) -> Vec<Cell> {
    let tone = match (server.state.as_str(), is_unwell(server)) {
        ("connected", false) => Tone::Good,
        ("connected" | "pending", true) => Tone::Warning,
        (_, true) => Tone::Bad,
        (_, false) => Tone::Dim,
    };
    let none = || "-".to_owned();
    let text = |text: &Option<String>| text.clone().unwrap_or_else(none);
    let time = |time: Option<u64>| time.map_or_else(none, |time| format!("{time} ms"));
    vec![
        Cell::new(tone, server.state.clone()),
        Cell::new(Tone::Bold, &server.name),
        Cell::plain(text(&server.revision)),
        Cell::plain(text(&server.transport)),
        Cell::plain(server.pid.map_or_else(none, |pid| pid.to_string())),
        Cell::plain(server.tools.to_string()),
        Cell::plain(time(server.connected_in_ms)),
        Cell::plain(time(server.latency_ms)),
    ]
}

/// The error of a server, and the last lines of its standard error; or who disabled it.
fn details(server: &ServerReport) -> Vec<String> {
    if !server.enabled {
        return server.reason.iter().cloned().collect();
    }
    let Some(reason) = reason(server).filter(|_| is_unwell(server)) else {
        return Vec::new();
    };
    let mut lines: Vec<_> = reason.lines().map(str::to_owned).collect();
    // The reason of an exited process already has its last lines.
    if lines.len() == 1 {
        let first = server.stderr.len().saturating_sub(MAX_STDERR_LINES);
        let last = server.stderr.get(first..).unwrap_or_default();
        lines.extend(last.iter().map(|line| format!("  {line}")));
    }
    if let Some(milliseconds) = server.next_attempt_in_ms {
        let seconds = milliseconds.div_ceil(1000);
        lines.push(format!("the next attempt is in {seconds} s"));
    }
    lines
}

/// The reason for its state; the last error of a server without one, unless it has recovered.
fn reason(server: &ServerReport) -> Option<&str> {
    let last = server.last_error.as_ref().map(|error| &*error.message);
    let last = last.filter(|_| server.state != "connected");
    server.reason.as_deref().or(last)
}
