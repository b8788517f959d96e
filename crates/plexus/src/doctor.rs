//! `plexus doctor`: finds problems, and says how to fix them.

mod files;
mod network;
mod programs;
mod running;
mod user_file;

use std::process::ExitCode;

use clap::Args;
use plexus_mcp_config::{self as config, Loaded, Locations};
use serde::Serialize;

use crate::gateway::{refuse_reserved, refused};
use crate::output::{as_json, print};
use crate::printable::{Printable, one_line};
use crate::process_env::{environment, locations};
use crate::serve_chain::loop_in;
use crate::session::{self, ConfigArgs};
use crate::terminal::{Canvas, Tone};
use crate::trust::ProjectApprovals;

pub(crate) use programs::is_in_path;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus doctor
  plexus doctor --offline                   Check files and programs only, start no server
  plexus doctor --fix                       Move the servers of ~/.mcp.json to Plexus's own file
  plexus doctor --json | jq -r '.findings[] | select(.severity == \"error\") | .what'

Checks: configuration files (syntax errors, duplicate names, probable typing errors in keys, unset
variables, file permissions of secrets); the programs of servers (PATH, Node, uv, working
directories); the network (ports, proxies, URLs); and each server (start, start time, invalid output,
entries that cannot be listed).

The exit code is 0 if no error was found, 1 if one was, and 2 for wrong usage. Warnings and notes do
not change the exit code.";

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

    /// Move the servers of ~/.mcp.json to servers.json in Plexus's configuration folder.
    ///
    /// Claude Code loads ~/.mcp.json as well, and so has these servers twice. No other finding is
    /// fixed by this option.
    #[arg(long)]
    fix: bool,

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
pub(crate) struct Diagnosis {
    /// How many servers are configured.
    servers: usize,
    /// What `--fix` has changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<String>,
    findings: Vec<Finding>,
}

/// Runs `plexus doctor`.
pub(crate) fn run(arguments: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let fixed = if arguments.fix {
        let mut locations = locations()?;
        locations.explicit.clone_from(&arguments.config.mcp_config);
        user_file::fix(&locations)?
    } else {
        Vec::new()
    };
    let diagnosis = match diagnose(&arguments.config, arguments.offline)? {
        Ok(diagnosis) => Diagnosis { fixed, ..diagnosis },
        Err(interrupted) => return Ok(interrupted),
    };
    print(if arguments.json {
        as_json(&diagnosis)?.into()
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

/// Looks for problems. The inner error is the exit code after a signal.
pub(crate) fn diagnose(
    arguments: &ConfigArgs,
    offline: bool,
) -> anyhow::Result<Result<Diagnosis, ExitCode>> {
    let mut locations = locations()?;
    locations.explicit.clone_from(&arguments.mcp_config);
    let mut loaded = config::load(&locations, &environment);
    refuse_reserved(&mut loaded);
    let mut findings = at_rest(&loaded, &locations);
    let servers = loaded.servers.len() + refused(&loaded.problems, &loaded.servers).len();
    if offline {
        findings.extend(untrusted(&loaded, &locations)?);
    } else {
        // Servers that are known not to start are not started.
        let broken: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .filter_map(|finding| finding.server.clone())
            .collect();
        let looked = session::run_quietly(arguments, async |session| {
            findings.extend(running::check(session, &broken).await);
            Ok(ExitCode::SUCCESS)
        });
        match looked {
            Ok(ExitCode::SUCCESS) => {}
            // A signal arrived.
            Ok(interrupted) => return Ok(Err(interrupted)),
            Err(error) => findings.push(Finding::error("start", format!("{error:#}"))),
        }
    }
    findings.sort_by_key(|finding| finding.severity);
    Ok(Ok(Diagnosis {
        servers,
        fixed: Vec::new(),
        findings,
    }))
}

/// The servers that wait for approval.
fn untrusted(loaded: &Loaded, locations: &Locations) -> anyhow::Result<Vec<Finding>> {
    let approvals = ProjectApprovals::read(&locations.project_dir)?;
    let servers = loaded.servers.iter().filter(|server| !server.disabled);
    let untrusted = servers.filter(|server| !approvals.admit(server));
    Ok(untrusted.map(running::untrusted).collect())
}

/// Checks that start nothing.
fn at_rest(loaded: &Loaded, locations: &Locations) -> Vec<Finding> {
    let mut findings = files::check(loaded, locations);
    findings.extend(user_file::check(locations));
    for server in &loaded.servers {
        if server.disabled {
            let finding = Finding::note("disabled", session::disabled(server));
            findings.push(finding.of(&server.name));
            continue;
        }
        if let Some(reason) = loop_in(server) {
            findings.push(Finding::error("loop", reason).of(&server.name));
            continue;
        }
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

    fn text(&self, canvas: Canvas) -> Printable {
        let (label, tone) = match self.severity {
            Severity::Error => ("error", Tone::Bad),
            Severity::Warning => ("warning", Tone::Warning),
            Severity::Note => ("note", Tone::Dim),
        };
        let server = self.server.as_deref().map(one_line);
        let server = server.map_or_else(String::new, |server| format!("{server}: "));
        let label = canvas.paint(tone, format!("{label:<LABEL_WIDTH$}"));
        let what = canvas.wrap(&format!("{server}{}", self.what), LABEL_WIDTH);
        let mut text = label + what + "\n";
        if let Some(fix) = &self.fix {
            let fix = canvas.wrap(&format!("fix: {}", one_line(fix)), LABEL_WIDTH);
            text.extend([" ".repeat(LABEL_WIDTH), fix, "\n".to_owned()]);
        }
        text
    }
}

impl Diagnosis {
    fn count(&self, severity: Severity) -> usize {
        let found = self.findings.iter();
        found.filter(|finding| finding.severity == severity).count()
    }

    pub(crate) fn text(&self, canvas: Canvas) -> Printable {
        let fixed = self.fixed.iter();
        let fixed = fixed.map(|line| Printable::from(canvas.wrap(&one_line(line), 0) + "\n"));
        let text = self.findings.iter().map(|finding| finding.text(canvas));
        let text: Printable = fixed.chain(text).collect();
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            many => format!("{many} {noun}s"),
        };
        let servers = counted(self.servers, "server");
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        if errors + warnings == 0 {
            return text + format!("{servers}: all is well\n");
        }
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        text + format!("{servers}: {errors}, {warnings}\n")
    }
}
