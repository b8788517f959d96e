//! `plexus status`: the status of the servers.

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

use watch::Watch;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus status
  plexus status --watch                     Until Ctrl-C; in a pipe, a line for each change
  plexus status --json | jq -r '.gateways[].servers[] | select(.state == \"failed\") | .name'

If gateways are running (plexus serve), their servers are shown as they are. If none is, or with
--mcp-config, all servers are started, examined, and closed. With --watch, the first gateway that
starts is shown instead.

The exit code is 0 if every enabled server works, 1 if one has failed, needs credentials or
approval, or is not defined correctly, 2 for wrong usage, and 130 after Ctrl-C.";

/// Arguments of `plexus status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Keep watching, and show changes.
    #[arg(long, short)]
    watch: bool,

    /// Print JSON instead of text: one object, or with --watch one for each change.
    #[arg(long)]
    json: bool,
}

/// The status of all gateways.
#[derive(Debug, Serialize)]
struct StatusOutput {
    gateways: Vec<GatewayStatus>,
}

/// A gateway and its servers.
#[derive(Debug, Serialize)]
struct GatewayStatus {
    /// Its process id; `None` if the servers were opened by this command.
    pid: Option<u32>,
    version: String,
    /// The project that it is for.
    project: PathBuf,
    /// The files of `--mcp-config`, if this command was started with any.
    #[serde(skip)]
    files: Vec<PathBuf>,
    servers: Vec<ServerReport>,
    /// The problems of its configuration.
    problems: Vec<String>,
    /// Whether one of them is about servers, which are missing therefore.
    #[serde(skip)]
    has_invalid_servers: bool,
}

/// Runs `plexus status`.
pub(crate) fn run(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let is_own = !arguments.config.mcp_config.is_empty() || control::running().is_empty();
    match (arguments.watch, is_own) {
        (false, false) => show(&StatusOutput::running(), arguments.json),
        (true, false) => Watch::new(arguments.json).running(),
        (false, true) => session::run_quietly(&arguments.config, async |session| {
            session.connect_silently(|_| true).await;
            let mut output = StatusOutput::own(session, &arguments.config).await;
            output.forget_next_attempts();
            show(&output, arguments.json)
        }),
        (true, true) => watch_own(arguments),
    }
}

/// Watches our own servers until a gateway is started, and then the gateways. Servers of a file that
/// was named here are watched to the end.
fn watch_own(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let mut watch = Watch::new(arguments.json);
    let mut gateway_started = false;
    let ended = session::run_quietly(&arguments.config, async |session| {
        session.hub.connect_in_background();
        gateway_started = watch.own(session, &arguments.config).await?;
        Ok(ExitCode::SUCCESS)
    })?;
    // A signal may have come while our servers were closed.
    if gateway_started && ended == ExitCode::SUCCESS {
        watch.running()
    } else {
        Ok(ended)
    }
}

fn show(output: &StatusOutput, json: bool) -> anyhow::Result<ExitCode> {
    print(if json {
        as_json(output)?.into()
    } else {
        text::rendered(output, Canvas::output(), false)
    })?;
    Ok(output.exit_code())
}

impl StatusOutput {
    /// The running gateways. A gateway that does not answer is reported.
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

    /// The servers that this command has opened.
    async fn own(session: &Session, config: &ConfigArgs) -> Self {
        let gateway = &session.gateway;
        let gateway_status = GatewayStatus {
            pid: None,
            version: VERSION.to_owned(),
            project: gateway.project().to_owned(),
            files: config.mcp_config.clone(),
            servers: gateway.report().await,
            problems: gateway.problems(),
            has_invalid_servers: gateway.has_invalid_servers(),
        };
        Self {
            gateways: vec![gateway_status],
        }
    }

    /// Leaves out when servers are tried again: this command closes them.
    fn forget_next_attempts(&mut self) {
        let gateways = self.gateways.iter_mut();
        for server in gateways.flat_map(|gateway| &mut gateway.servers) {
            server.next_attempt_in_ms = None;
        }
    }

    fn exit_code(&self) -> ExitCode {
        let is_unwell = |gateway: &GatewayStatus| {
            gateway.has_invalid_servers || gateway.servers.iter().any(is_unwell)
        };
        if self.gateways.iter().any(is_unwell) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

impl From<Report> for GatewayStatus {
    fn from(report: Report) -> Self {
        Self {
            pid: Some(report.pid),
            version: report.version,
            project: report.project,
            files: Vec::new(),
            servers: report.servers,
            problems: report.problems,
            has_invalid_servers: report.has_invalid_servers,
        }
    }
}

/// Whether an enabled server does not work. A server that was not needed yet counts as working.
fn is_unwell(server: &ServerReport) -> bool {
    match server.state.as_str() {
        "failed" | "needs-auth" => true,
        // A connected server has a reason if its lists have problems.
        "connected" | "pending" => server.reason.is_some(),
        _ => false,
    }
}
