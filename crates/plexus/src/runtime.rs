//! The tokio runtime that a command runs on.

use std::process::ExitCode;

use anyhow::Context;
use tokio::runtime::Builder;

use crate::cli::DownstreamArgs;

/// Runs a command that serves MCP clients, until it ends.
///
/// An HTTP listener may have many clients at once and gets the multi-thread runtime, with a worker
/// thread for each core. A client on stdio is a single connection and gets the current-thread
/// runtime: with more threads, each message would be handed from the reading thread to a writing
/// one.
pub(crate) fn for_clients(
    arguments: &DownstreamArgs,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    if arguments.address().is_some() {
        run_on(&mut Builder::new_multi_thread(), work)
    } else {
        on_runtime(work)
    }
}

/// Runs a command on the current-thread runtime, until it ends.
pub(crate) fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run_on(&mut Builder::new_current_thread(), work)
}

fn run_on<T>(
    runtime: &mut Builder,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let runtime = runtime
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let ended = runtime.block_on(work);
    // A thread that reads a terminal cannot be interrupted. Do not wait for it.
    runtime.shutdown_background();
    ended
}
