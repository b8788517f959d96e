//! The client under test: connects to a server of the conformance suites, and performs a scenario.
//!
//! A suite starts it with the server's URL as its last argument. Environment variables name the
//! scenario and the revision of the server.

mod answers;
mod auth;
mod caller;
mod example;
mod visit;

use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use http::Uri;
use plexus_mcp_client::{Affinity, Definition, HttpTarget, Supervision, Target, Upstream};
use plexus_mcp_core::Raw;
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::{CallToolParams, ClientCapabilities};
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use auth::Credentials;
use caller::Caller;
use visit::Visited;

/// Shorter than the 30 s that the suites allow: they do not always kill a client that takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(25);

/// Plays the client in a scenario of the MCP conformance suites.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The scenario. Without one, everything that the server lists is used once.
    #[arg(long, env = "MCP_CONFORMANCE_SCENARIO", default_value = "")]
    scenario: String,
    /// The revision that the server speaks.
    #[arg(
        long,
        env = "MCP_CONFORMANCE_PROTOCOL_VERSION",
        default_value_t = Revision::NEWEST_HANDSHAKE
    )]
    revision: Revision,
    /// The context of the scenario, as JSON.
    #[arg(long, env = "MCP_CONFORMANCE_CONTEXT", default_value = "{}")]
    context: ScenarioContext,
    /// The log filter for stderr: a level, or a filter such as `plexus_mcp_client=debug`.
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log_level: String,
    /// The URL of the server.
    url: Uri,
}

/// The context that a scenario gives its client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioContext {
    /// The calls to make.
    #[serde(default)]
    tool_calls: Vec<CallToolParams>,
    /// The credentials.
    #[serde(flatten)]
    credentials: Credentials,
}

impl FromStr for ScenarioContext {
    type Err = serde_json::Error;

    fn from_str(json: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(json)
    }
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a suite takes a crash for a success, so the client says that it got to its end, or why not"
)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let refusal = auth::refusal(&arguments.scenario);
    match (Box::pin(run(&arguments)).await, refusal) {
        (Ok(visited), None) => {
            println!("finished: {visited}");
            ExitCode::SUCCESS
        }
        (Ok(visited), Some(_)) => {
            eprintln!("failed: the server should have been refused: {visited}");
            ExitCode::FAILURE
        }
        (Err(error), Some(refusal)) if format!("{error:#}").contains(refusal) => {
            println!("finished: refused, as it must be: {error:#}");
            ExitCode::SUCCESS
        }
        (Err(error), _) => {
            eprintln!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<Visited> {
    let filter = EnvFilter::try_new(&arguments.log_level).context("--log-level")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    match tokio::time::timeout(TIME_LIMIT, play(arguments)).await {
        Ok(visited) => visited,
        Err(_elapsed) => bail!("not done after {} s", TIME_LIMIT.as_secs()),
    }
}

async fn play(arguments: &Arguments) -> anyhow::Result<Visited> {
    let capabilities = capabilities()?;
    let mut target = HttpTarget::new(arguments.url.clone());
    if arguments.scenario.starts_with("auth/") {
        let credentials = &arguments.context.credentials;
        let authorizer = auth::authorizer(&arguments.scenario, credentials, &arguments.url)?;
        target.authorizer = Some(Arc::new(authorizer));
    }
    let mut definition = Definition::new(Target::Http(target));
    definition.era = Some(arguments.revision.era());
    definition.capabilities = capabilities.clone();
    // The only caller needs no session besides the one for the lists.
    definition.affinity = Affinity::Shared;

    let upstream = Upstream::supervised(definition, Supervision::once());
    upstream.connect().await.context("cannot connect")?;
    let report = upstream.report().context("the connection was lost")?;
    // A list that cannot be read counts as empty. Without this check, the scenario would pass with
    // no call at all.
    if !report.list_problems.is_empty() {
        bail!(
            "cannot list what the server has: {:?}",
            report.list_problems
        );
    }
    let caller = Caller::new(upstream.clone(), report.facts.revision, capabilities);
    let visited =
        visit::scenario(&arguments.scenario, &arguments.context.tool_calls, &caller).await;
    upstream.disconnect().await;
    visited
}

fn capabilities() -> anyhow::Result<ClientCapabilities> {
    let declared = serde_json::json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    Ok(ClientCapabilities::from_raw(&Raw::encode(&declared)?)?)
}
