//! `plexus bridge`: one server, shown as it is.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_client::{State, Upstream};
use plexus_server::Options;

use crate::cli::BridgeArgs;
use crate::signals::Signals;
use crate::{named, serve};

/// How long a lost server is left alone before it is connected again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Connects to the server, then serves it until the client on standard input has gone, or a signal
/// comes.
pub(crate) fn run(arguments: &BridgeArgs) -> anyhow::Result<ExitCode> {
    serve::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let era = arguments.server_era.map(Into::into);
        let definition = named::definition(&arguments.server, &arguments.header, era)?;
        let upstream = Upstream::new(definition);
        tokio::select! {
            connected = upstream.connect() => connected.context("the server cannot be connected")?,
            signal = signals.next() => return Ok(signal.exit_code()),
        }
        let service = Arc::new(upstream.clone());
        let served = serve::serve(service, Options::default(), &arguments.downstream, signals);
        let ended = tokio::select! {
            ended = served => ended,
            never = keep_connected(&upstream) => never,
        };
        upstream.disconnect().await;
        ended
    })
}

/// Connects again whenever the connection is lost. No call is ever made again.
async fn keep_connected(upstream: &Upstream) -> anyhow::Result<ExitCode> {
    let mut status = upstream.status();
    let mut pause = PAUSE;
    loop {
        let lost = status
            .wait_for(|status| status.state == State::Failed)
            .await?;
        tracing::warn!(reason = lost.reason, "the server was lost");
        drop(lost);
        tokio::time::sleep(pause).await;
        pause = match upstream.connect().await {
            Ok(()) => PAUSE,
            Err(_) => (pause * 2).min(MAX_PAUSE),
        };
    }
}
