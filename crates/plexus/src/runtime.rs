//! What everything runs on: threads, and memory.

use std::convert::Infallible;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Context;
use plexus_sys::memory;
use tokio::runtime::Builder;

use crate::cli::DownstreamArgs;

/// Runs `work` to its end, for the clients that come this way. What comes over HTTP may come from
/// many at once and has a thread for each core that we may use.
pub(crate) fn for_clients(
    arguments: &DownstreamArgs,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let threads = match arguments.address() {
        Some(_) => available_parallelism().unwrap_or(NonZero::<usize>::MIN),
        None => NonZero::<usize>::MIN,
    };
    memory::keep_what_is_free(threads);
    let work = async {
        tokio::select! {
            ended = work => ended,
            never = give_back_memory() => match never {},
        }
    };
    if threads.get() > 1 {
        run_on(&mut Builder::new_multi_thread(), work)
    } else {
        on_runtime(work)
    }
}

/// Runs `work` to its end, on one thread: whoever talks to one client, or none, only loses time by
/// handing messages from thread to thread.
pub(crate) fn on_runtime(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    run_on(&mut Builder::new_current_thread(), work)
}

/// Gives memory back that nobody needs any more.
async fn give_back_memory() -> Infallible {
    /// What is needed for the start only.
    const AFTER_THE_START: Duration = Duration::from_secs(1);
    const EVERY: Duration = Duration::from_mins(1);
    tokio::time::sleep(AFTER_THE_START).await;
    #[expect(
        clippy::infinite_loop,
        reason = "it is dropped with the work beside it"
    )]
    loop {
        memory::give_back_what_is_free();
        tokio::time::sleep(EVERY).await;
    }
}

fn run_on(
    runtime: &mut Builder,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime.enable_all().build().context("cannot start")?;
    let ended = runtime.block_on(work);
    // A terminal is read on a thread that cannot be interrupted: it is left behind.
    runtime.shutdown_background();
    ended
}
