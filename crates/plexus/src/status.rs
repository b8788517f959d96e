//! `plexus status`: how the servers are doing.

mod text;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::control::{self, Report};
use crate::gateway::ServerReport;
use crate::output::{as_json, print};
use crate::session::{self, ConfigArgs, Session};
use crate::terminal::Canvas;
use crate::{VERSION, announce};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus status
  plexus status --watch                     Until Ctrl-C; in a pipe, a line for each change
  plexus status --json | jq -r '.gateways[].servers[] | select(.state == \"failed\") | .name'

If gateways are running (plexus serve), their servers are shown as they are. If none is, all servers
are started, looked at, and left again.

The exit code is 0 if every server that is turned on is well, 1 if one has failed, wants credentials
or waits to be trusted, 2 for wrong usage, and 130 after Ctrl-C.";

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Go on looking, and show what changes.
    #[arg(long, short)]
    watch: bool,

    /// Print JSON instead of text: one object, or with --watch one for each change.
    #[arg(long)]
    json: bool,
}

/// What was seen.
#[derive(Debug, Serialize)]
struct Seen {
    gateways: Vec<Seeing>,
}

/// A gateway and its servers.
#[derive(Debug, Serialize)]
struct Seeing {
    /// Its process; `None` if it was only opened to look.
    pid: Option<u32>,
    version: String,
    /// The project that it is for.
    project: PathBuf,
    servers: Vec<ServerReport>,
    /// What is wrong with its configuration.
    problems: Vec<String>,
}

/// Looks, once or again and again.
pub(crate) fn run(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let is_own = !arguments.config.mcp_config.is_empty() || control::running().is_empty();
    match (arguments.watch, is_own) {
        (false, false) => show(&Seen::running(), arguments.json),
        (true, false) => watch::running(arguments.json),
        (false, true) => session::run_quietly(&arguments.config, async |session| {
            session.connect_silently(|_| true).await;
            show(&Seen::own(session).await, arguments.json)
        }),
        (true, true) => session::run_quietly(&arguments.config, async |session| {
            session.hub.connect_in_background();
            watch::own(session, arguments.json).await
        }),
    }
}

fn show(seen: &Seen, json: bool) -> anyhow::Result<ExitCode> {
    print(&if json {
        as_json(seen)?
    } else {
        text::rendered(seen, Canvas::output(), false)
    })?;
    Ok(seen.exit_code())
}

impl Seen {
    /// The gateways that run. Who does not answer is said.
    fn running() -> Self {
        let gateways = control::running().into_iter();
        let gateways = gateways.filter_map(|gateway| match gateway.status() {
            Ok(report) => Some(report.into()),
            Err(error) => {
                announce::problem(&format!("{error:#}"));
                None
            }
        });
        Self {
            gateways: gateways.collect(),
        }
    }

    /// The servers that we have opened ourselves.
    async fn own(session: &Session) -> Self {
        let gateway = &session.gateway;
        let seeing = Seeing {
            pid: None,
            version: VERSION.to_owned(),
            project: gateway.project().to_owned(),
            servers: gateway.report().await,
            problems: gateway.problems(),
        };
        Self {
            gateways: vec![seeing],
        }
    }

    fn exit_code(&self) -> ExitCode {
        let mut servers = self.gateways.iter().flat_map(|gateway| &gateway.servers);
        if servers.any(is_unwell) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

impl From<Report> for Seeing {
    fn from(report: Report) -> Self {
        Self {
            pid: Some(report.pid),
            version: report.version,
            project: report.project,
            servers: report.servers,
            problems: report.problems,
        }
    }
}

/// Whether a server that is turned on does not work. One that was not needed yet is well.
fn is_unwell(server: &ServerReport) -> bool {
    match server.state.as_str() {
        "failed" | "needs-auth" => true,
        "pending" => server.reason.is_some(),
        _ => false,
    }
}
