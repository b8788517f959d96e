//! `plexus probe`: examines one server.

mod args;
mod findings;
mod text;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_mcp_client::{Era, Report, ServerFacts, Supervision, Target, Upstream};
use plexus_mcp_core::{Call, EventSender, Object, Peer, Principal, Section, Service};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use args::{EXAMPLES, ProbeArgs};
use findings::{Findings, Latency, NotConnected};

use crate::output::print;
use crate::runtime;
use crate::signals::Signals;

/// How many round trips are measured.
const ROUND_TRIPS: usize = 5;

/// Connects to the server, prints the findings, and closes it. The exit code says whether it could
/// be connected.
pub(crate) fn run(arguments: &ProbeArgs) -> anyhow::Result<ExitCode> {
    runtime::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        tokio::select! {
            ended = probe(arguments) => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        }
    })
}

async fn probe(arguments: &ProbeArgs) -> anyhow::Result<ExitCode> {
    let definition = arguments.definition()?;
    let server = address(&definition.target);
    let timeout = definition.timeouts.connect;
    let capabilities = definition.capabilities.clone();
    let upstream = Upstream::supervised(definition, Supervision::once());
    let started = Instant::now();
    if let Err(error) = upstream.connect().await {
        if arguments.json {
            let status = upstream.status().borrow().clone();
            let said = NotConnected::new(server, &status).to_json()?;
            print(&(said + "\n"))?;
        }
        return Err(error).context("the server is not connected");
    }
    let connect = started.elapsed();
    let findings = match upstream.report() {
        Some(Report { facts, .. }) => {
            let peer = Peer::new(facts.revision, capabilities, None, Principal::anonymous());
            let latency = measure(&upstream, &Arc::new(peer), &facts, connect, timeout).await;
            Findings::of(&upstream, server, latency)
        }
        None => None,
    };
    upstream.disconnect().await;
    let findings = findings.context("the connection was lost during the probe")?;
    let said = if arguments.json {
        findings.to_json()?
    } else {
        text::rendered(&findings)
    };
    print(&(said + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The server for display, without secrets in its URL.
fn address(target: &Target) -> String {
    match target {
        Target::Stdio(program) => program.to_string(),
        Target::Http(http) | Target::Sse(http) => {
            let scheme = http.url.scheme_str().unwrap_or_default();
            let host = http.url.host().unwrap_or_default();
            let port = http.url.port().map(|port| format!(":{port}"));
            let port = port.unwrap_or_default();
            format!("{scheme}://{host}{port}{}", http.url.path())
        }
        _ => String::new(),
    }
}

/// Measures how long the server takes to answer.
async fn measure(
    upstream: &Upstream,
    peer: &Arc<Peer>,
    facts: &ServerFacts,
    connect: Duration,
    timeout: Duration,
) -> Latency {
    let time = async |method: &'static str| {
        let (events, _) = EventSender::channel(Arc::clone(peer), false, None);
        let call = Call::new(method, Object::new(), events, CancellationToken::new());
        let started = Instant::now();
        let answered = tokio::time::timeout(timeout, upstream.call(call)).await;
        matches!(answered, Ok(Ok(_))).then(|| started.elapsed())
    };
    let list = match facts.capabilities.tools {
        Some(_) => time("tools/list").await,
        None => None,
    };
    // The smallest request of each era.
    let smallest = match facts.revision.era() {
        Era::Stateless => "server/discover",
        Era::Handshake => "ping",
    };
    let mut round_trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        match time(smallest).await {
            Some(time) => round_trips.push(time),
            None => break,
        }
    }
    round_trips.sort_unstable();
    let median = round_trips.get(round_trips.len() / 2).copied();
    Latency::new(connect, list, smallest, median)
}

/// The name of the list, singular or plural.
fn noun(section: Section, count: usize) -> &'static str {
    match (section, count) {
        (Section::Tools, 1) => "tool",
        (Section::Tools, _) => "tools",
        (Section::Resources, 1) => "resource",
        (Section::Resources, _) => "resources",
        (Section::Templates, 1) => "resource template",
        (Section::Templates, _) => "resource templates",
        (Section::Prompts, 1) => "prompt",
        (Section::Prompts, _) => "prompts",
    }
}
