//! What everything runs on: threads, and memory.

use std::convert::Infallible;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Context;
use plexus_client::crowd;
use plexus_sys::memory;
use plexus_wire::block;
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
    memory::foresee(NEEDED_TO_START);
    let work = async {
        tokio::select! {
            ended = work => ended,
            never = give_back_memory() => match never {},
        }
    };
    if threads.get() > 1 {
        run_on(&mut Builder::new_multi_thread(), work)
    } else {
        let mut runtime = Builder::new_current_thread();
        run_on(runtime.on_thread_park(let_answers_collect), work)
    }
}

/// What is allocated until a client is answered, with nothing configured.
const NEEDED_TO_START: usize = 400 * 1024;

/// Puts off waiting for a little while, if children have many answers to give.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread has nothing to do but to wait, and this is how it does"
)]
fn let_answers_collect() {
    if let Some(pause) = pause(crowd::take()) {
        std::thread::sleep(pause);
    }
}

/// How long answers are let collect, of children that have so many to give.
fn pause(answers: usize) -> Option<Duration> {
    /// With fewer, there is nothing to collect while we wait.
    const MANY: u32 = 8;
    const EACH: Duration = Duration::from_micros(6);
    const LONGEST: Duration = Duration::from_micros(200);
    let answers = u32::try_from(answers).unwrap_or(u32::MAX);
    (answers >= MANY).then(|| EACH.saturating_mul(answers).min(LONGEST))
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
        block::give_back();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_collect_only_where_there_are_many() {
        assert_eq!(pause(0), None);
        assert_eq!(pause(7), None);
        let some = pause(8).unwrap();
        let more = pause(16).unwrap();
        assert!(some < more);
        assert_eq!(pause(10_000), pause(usize::MAX));
        assert!(pause(usize::MAX).unwrap() < Duration::from_millis(1));
    }
}
