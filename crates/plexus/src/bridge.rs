//! `plexus bridge`: one server, shown as it is.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use plexus_client::{Matched, Upstream};
use plexus_server::Options;

use crate::access::Entrance;
use crate::cli::BridgeArgs;
use crate::signals::Signals;
use crate::{logs, named, runtime, serve};

/// Connects to the server, then serves it until the client on standard input has gone, or a signal
/// comes.
pub(crate) fn run(arguments: &BridgeArgs) -> anyhow::Result<ExitCode> {
    logs::start(arguments.downstream.log_level);
    runtime::for_clients(&arguments.downstream, async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let entrance = Entrance::of(&arguments.downstream)?;
        let era = arguments.server_era.map(Into::into);
        let landing = arguments.downstream.landing();
        let (words, headers) = (&arguments.server, &arguments.header);
        let mut definition = named::definition(words, headers, era, landing.as_ref())?;
        if let Some(affinity) = arguments.affinity {
            definition.affinity = affinity.into();
        }
        definition.prime_roots = arguments.prime_roots;
        let upstream = Upstream::new(definition);
        tokio::select! {
            connected = upstream.connect() => connected.context("the server cannot be connected")?,
            signal = signals.next() => return Ok(signal.exit_code()),
        }
        let matched = Matched::to(upstream).await;
        let service = Arc::new(matched.clone());
        let (options, downstream) = (Options::default(), &arguments.downstream);
        let served = serve::serve(service, options, downstream, entrance, &mut signals);
        let ended = tokio::select! {
            ended = served => ended.map(|ended| ended.exit_code()),
            () = matched.keep_connected() => Err(anyhow::anyhow!("the server wants credentials")),
        };
        matched.disconnect().await;
        ended
    })
}
