//! `plexus bridge`: shows one server unchanged.

use std::convert::Infallible;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{ServerState, Status, Supervision, Upstream};
use plexus_mcp_config as config;
use plexus_mcp_config::Limits;
use plexus_mcp_server::Options;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::access::HttpAccess;
use crate::cli::BridgeArgs;
use crate::gateway::usable_settings;
use crate::process_env::locations;
use crate::serve::{ClientInput, ServeEnd};
use crate::signals::Signals;
use crate::{announce, logs, named, runtime, serve};

/// How long the server's process may take to exit when Plexus shuts down.
const CLOSING_GRACE: Grace = Grace::new(Duration::from_millis(400), Duration::from_millis(400));

/// Connects to the server, then serves it until the client on standard input has gone, or a signal
/// arrives.
pub(crate) fn run(arguments: &BridgeArgs) -> anyhow::Result<ExitCode> {
    logs::start(&arguments.downstream);
    runtime::for_clients(&arguments.downstream, async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let access = HttpAccess::of(&arguments.downstream)?;
        let era = arguments.server_era;
        let callbacks = arguments.downstream.callbacks();
        let (words, headers) = (&arguments.server, &arguments.header);
        let mut definition = named::definition(words, headers, era, callbacks.as_ref())?;
        let (settings, problems) = config::load_settings(&locations()?);
        usable_settings(&problems)?;
        for problem in &problems {
            announce::problem(problem);
        }
        let mut limits = settings.limits;
        limits.apply_to(&mut definition);
        if let Some(affinity) = arguments.affinity {
            definition.affinity = affinity.into();
        }
        definition.prime_roots = arguments.prime_roots;
        let supervision = Supervision::default();
        let slots = supervision.slots.clone();
        let upstream = Upstream::supervised(definition, supervision);
        let mut input = serve::input_of(&arguments.downstream)?;
        let ended = connect(&upstream, &mut input, &mut signals, &mut limits).await?;
        if let Some(ended) = ended {
            return Ok(ended.exit_code());
        }
        let service = Arc::new(upstream.clone());
        let (options, downstream) = (Options::default(), &arguments.downstream);
        let ending = move || slots.close();
        let edge = serve::edge_of(service, options, &limits, downstream)?;
        let served = serve::serve(
            edge,
            &limits,
            downstream,
            input,
            access,
            &mut signals,
            ending,
        );
        let ended = tokio::select! {
            ended = served => ended,
            never = announce_failures(upstream.status()) => match never {},
        };
        upstream.disconnect_within(CLOSING_GRACE).await;
        ended.map(|ended| ended.exit_code())
    })
}

/// Makes the first connection. Gives it up if the client on standard input leaves or a signal arrives,
/// and returns which of them it was.
///
/// After the client has left, the server has [`Limits::shutdown_drain_seconds`] to be connected, and
/// the requests that the client has sent have the rest of that time.
async fn connect(
    upstream: &Upstream,
    input: &mut ClientInput,
    signals: &mut Signals,
    limits: &mut Limits,
) -> anyhow::Result<Option<ServeEnd>> {
    let drain = limits.shutdown_drain_seconds;
    let mut left_at = None;
    let leaving = async {
        let Some(input) = input else {
            return std::future::pending().await;
        };
        input.ended().await?;
        left_at = Some(Instant::now());
        sleep(drain).await;
        io::Result::Ok(())
    };
    let ended = tokio::select! {
        connected = upstream.connect() => {
            connected.context("the server cannot be connected")?;
            let waited = left_at.map_or(Duration::ZERO, |left| left.elapsed());
            limits.shutdown_drain_seconds = drain.saturating_sub(waited);
            return Ok(None);
        }
        left = leaving => {
            left.context("standard input failed")?;
            tracing::warn!("the client closed standard input before the server was connected");
            ServeEnd::ClientLeft
        }
        signal = signals.next() => {
            tracing::info!(?signal, "shutting down; a second signal does not wait for the server");
            ServeEnd::Signalled
        }
    };
    tokio::select! {
        () = upstream.disconnect_within(CLOSING_GRACE) => Ok(Some(ended)),
        signal = signals.next() => Ok(Some(ServeEnd::Forced(signal))),
    }
}

/// Prints a warning when the server is lost, for as long as it is polled.
async fn announce_failures(mut status: watch::Receiver<Status>) -> Infallible {
    #[expect(clippy::infinite_loop, reason = "the caller decides when it ends")]
    loop {
        let now = status.borrow_and_update().clone();
        if let (ServerState::Failed | ServerState::NeedsAuth, Some(reason)) =
            (now.state, now.reason)
        {
            announce::problem(&format!("the server: {}: {reason}", now.state));
        }
        if status.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
