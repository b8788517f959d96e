//! `plexus bridge`: shows one server unchanged.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{ServerState, Status, Supervision, Upstream};
use plexus_mcp_config as config;
use plexus_mcp_server::Options;
use tokio::sync::watch;

use crate::access::HttpAccess;
use crate::cli::BridgeArgs;
use crate::process_env::locations;
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
        for problem in &problems {
            announce::problem(problem);
        }
        let limits = settings.limits;
        limits.apply_to(&mut definition);
        if let Some(affinity) = arguments.affinity {
            definition.affinity = affinity.into();
        }
        definition.prime_roots = arguments.prime_roots;
        let supervision = Supervision::default();
        let slots = supervision.slots.clone();
        let upstream = Upstream::supervised(definition, supervision);
        tokio::select! {
            connected = upstream.connect() => connected.context("the server cannot be connected")?,
            signal = signals.next() => return Ok(signal.exit_code()),
        }
        let service = Arc::new(upstream.clone());
        let (options, downstream) = (Options::default(), &arguments.downstream);
        let ending = move || slots.close();
        let served = serve::serve(
            service,
            options,
            &limits,
            downstream,
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
