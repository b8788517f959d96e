//! `plexus doctor`: finds problems, and says how to fix them.

mod files;
mod network;
mod programs;
mod running;

use std::process::ExitCode;

use clap::Args;
use plexus_mcp_config::{self as config, Loaded, Locations};
use serde::Serialize;

use crate::output::{as_json, harmless, print, printable};
use crate::process_env::{environment, locations};
use crate::session::{self, ConfigArgs};
use crate::terminal::{Canvas, Tone};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus doctor
  plexus doctor --offline                   Start no server, only look at files and programs
  plexus doctor --json | jq -r '.findings[] | select(.severity == \"error\") | .what'

What is looked at: the configuration files (what cannot be read, names that stand twice, keys that
look like slips, variables that are not set, who else can read secrets), the programs that servers
are started with (PATH, Node, uv, folders), the network (ports, proxies, addresses), and each server
itself (does it start, how fast, what does it print that is no message, what of it cannot be shown).

The exit code is 0 if no error was found, 1 if one was, and 2 for wrong usage. Warnings and notes are
no errors.";

/// Width of the severity column.
const LABEL_WIDTH: usize = 9;

/// Arguments of `plexus doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Start no server and connect to none.
    #[arg(long)]
    offline: bool,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The severity, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Something does not work.
    Error,
    /// Something may not work, or is not safe.
    Warning,
    /// Something is worth knowing.
    Note,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Finding {
    severity: Severity,
    /// The kind of check, for scripts.
    check: &'static str,
    /// The server that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The problem.
    what: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Serialize)]
struct Diagnosis {
    /// How many servers are configured.
    servers: usize,
    findings: Vec<Finding>,
}

/// Runs `plexus doctor`.
pub(crate) fn run(arguments: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut locations = locations()?;
    locations.explicit.clone_from(&arguments.config.mcp_config);
    let loaded = config::load(&locations, &environment);
    let mut findings = at_rest(&loaded, &locations);
    let servers = loaded.servers.len();
    if !arguments.offline {
        // Servers that are known not to start are not started.
        let broken: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .filter_map(|finding| finding.server.clone())
            .collect();
        let looked = session::run_quietly(&arguments.config, async |session| {
            findings.extend(running::check(session, &broken).await);
            Ok(ExitCode::SUCCESS)
        });
        match looked {
            Ok(ExitCode::SUCCESS) => {}
            // A signal arrived.
            Ok(interrupted) => return Ok(interrupted),
            Err(error) => findings.push(Finding::error("start", format!("{error:#}"))),
        }
    }
    findings.sort_by_key(|finding| finding.severity);
    let diagnosis = Diagnosis { servers, findings };
    print(&if arguments.json {
        as_json(&diagnosis)?
    } else {
        diagnosis.text(Canvas::output())
    })?;
    let has_errors = diagnosis.count(Severity::Error) > 0;
    Ok(if has_errors {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Checks that start nothing.
fn at_rest(loaded: &Loaded, locations: &Locations) -> Vec<Finding> {
    let mut findings = files::check(loaded, locations);
    for server in loaded.servers.iter().filter(|server| !server.disabled) {
        findings.extend(programs::check(server));
        findings.extend(network::check_server(server));
    }
    findings.extend(network::check(&loaded.settings));
    findings
}

impl Finding {
    fn new(severity: Severity, check: &'static str, what: impl Into<String>) -> Self {
        Self {
            severity,
            check,
            server: None,
            what: what.into(),
            fix: None,
        }
    }

    fn error(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Severity::Error, check, what)
    }

    fn warning(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Severity::Warning, check, what)
    }

    fn note(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Severity::Note, check, what)
    }

    fn of(mut self, server: &str) -> Self {
        self.server = Some(server.to_owned());
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn text(&self, canvas: Canvas) -> String {
        let (label, tone) = match self.severity {
            Severity::Error => ("error", Tone::Bad),
            Severity::Warning => ("warning", Tone::Warning),
            Severity::Note => ("note", Tone::Dim),
        };
        let server = self.server.as_deref().map(printable);
        let server = server.map_or_else(String::new, |server| format!("{server}: "));
        let label = canvas.paint(tone, &format!("{label:<LABEL_WIDTH$}"));
        let what = canvas.wrap(&format!("{server}{}", harmless(&self.what)), LABEL_WIDTH);
        let mut text = format!("{label}{what}\n");
        if let Some(fix) = &self.fix {
            let fix = canvas.wrap(&format!("fix: {}", printable(fix)), LABEL_WIDTH);
            text.extend([&" ".repeat(LABEL_WIDTH), fix.as_str(), "\n"]);
        }
        text
    }
}

impl Diagnosis {
    fn count(&self, severity: Severity) -> usize {
        let found = self.findings.iter();
        found.filter(|finding| finding.severity == severity).count()
    }

    fn text(&self, canvas: Canvas) -> String {
        let text = self.findings.iter().map(|finding| finding.text(canvas));
        let text: String = text.collect();
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            many => format!("{many} {noun}s"),
        };
        let servers = counted(self.servers, "server");
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        if errors + warnings == 0 {
            return format!("{text}{servers}: all is well\n");
        }
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        format!("{text}{servers}: {errors}, {warnings}\n")
    }
}
