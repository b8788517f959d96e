//! Connects to one MCP server through the client edge, reads its catalogue, calls one of its tools,
//! and prints its findings as one line of JSON.
//!
//! `visit-server PLAN`, where the plan is JSON: see [`Plan`].

mod findings;
mod plan;
mod questions;

use std::future;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use plexus_mcp_client::{Supervision, Upstream};
use plexus_mcp_core::{Call, EventSender, Fault, Object, Outcome, Peer, Principal, Service};
use plexus_mcp_protocol::messages::CallToolParams;
use plexus_mcp_protocol::{Revision, method};
use serde_json::json;
use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use findings::Findings;
use plan::Plan;

/// The exit code after SIGINT, by the convention of shells.
const INTERRUPTED: u8 = 128 + 2;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let plan = std::env::args()
        .nth(1)
        .context("usage: visit-server PLAN")?;
    let plan: Plan = serde_json::from_str(&plan).context("the plan cannot be read")?;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();

    let upstream = Upstream::supervised(plan.definition()?, Supervision::once());
    let exit_code = tokio::select! {
        visited = visit(&upstream, &plan) => visited?,
        interrupted = ctrl_c() => {
            interrupted?;
            ExitCode::from(INTERRUPTED)
        }
    };
    upstream.disconnect().await;
    Ok(exit_code)
}

async fn visit(upstream: &Upstream, plan: &Plan) -> anyhow::Result<ExitCode> {
    if let Err(error) = upstream.connect().await {
        report(&json!({ "error": error.to_string() }))?;
        return Ok(ExitCode::FAILURE);
    }
    let outcome = match &plan.call {
        Some(params) => Some(call(upstream, plan, params).await),
        None => None,
    };
    report(&Findings::of(upstream, outcome))?;
    if plan.stay {
        future::pending::<()>().await;
    }
    Ok(ExitCode::SUCCESS)
}

async fn call(upstream: &Upstream, plan: &Plan, params: &CallToolParams) -> Outcome {
    let peer = Peer::new(
        Revision::V2026_07_28,
        plan.capabilities.clone(),
        None,
        Principal::anonymous(),
    );
    let (events, asked) = EventSender::channel(Arc::new(peer), false, None);
    let params = Object::parse(&params.to_raw());
    let params = params.map_err(|error| Fault::InvalidParams(error.to_string()))?;
    let call = Call::new(method::TOOLS_CALL, params, events, CancellationToken::new());
    let (outcome, ()) = tokio::join!(upstream.call(call), questions::answer_all(asked));
    outcome
}

fn report(findings: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(findings)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    Ok(())
}
