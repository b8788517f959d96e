//! `plexus bridge`: one server, shown as it is.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_client::{ClientCapabilities, Definition, HttpTarget, Program, State, Target, Upstream};
use plexus_server::Options;
use plexus_service::Raw;

use crate::cli::BridgeArgs;
use crate::serve;
use crate::signals::Signals;

/// How long a lost server is left alone before it is connected again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// What a legacy server is told that its clients can do. Whether the client at hand can is seen
/// when the server asks.
const EVERYTHING: &str = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

/// Connects to the server, then serves it until the client on standard input has gone, or a signal
/// comes.
pub(crate) fn run(arguments: &BridgeArgs) -> anyhow::Result<ExitCode> {
    serve::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let upstream = Upstream::new(definition(arguments)?);
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

fn definition(arguments: &BridgeArgs) -> anyhow::Result<Definition> {
    let (first, rest) = arguments
        .server
        .split_first()
        .context("no server is named")?;
    let target = if first.starts_with("http://") || first.starts_with("https://") {
        let mut target = HttpTarget::new(first.parse().context("this is no address")?);
        target.headers.extend(arguments.header.iter().cloned());
        Target::Http(target)
    } else {
        Target::Stdio(Program::new(first.clone()).args(rest.iter().cloned()))
    };
    let mut definition = Definition::new(target);
    definition.era = arguments.server_era.map(Into::into);
    let everything = Raw::parse(EVERYTHING.into(), &definition.limits)?;
    definition.capabilities = ClientCapabilities::from_raw(&everything)?;
    Ok(definition)
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
