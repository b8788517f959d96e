//! The limits: the minimal HTTP server, proxy and stdio program, as a baseline of what the machine
//! can do.

pub(crate) mod echo;
pub(crate) mod http;
pub(crate) mod proxy;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// A single-threaded runtime: every measured process has one core.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")
}
