//! The limits: the minimal HTTP server, proxies and stdio program, as a baseline of what the machine
//! can do.

pub(crate) mod echo;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod proxy;

use std::thread::available_parallelism;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// The default runtime of tokio, with a worker thread for each core; on one core the runtime with a
/// single thread.
fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = if available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    builder.enable_all().build().context("cannot start")
}

/// Starts a task for a connection.
#[expect(
    clippy::disallowed_methods,
    reason = "a limit runs until it is killed, and waits for no task"
)]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}
