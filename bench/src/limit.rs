//! What the machine can do at all: the least that a server, a proxy or a program on pipes does.

pub(crate) mod echo;
pub(crate) mod http;
pub(crate) mod proxy;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Everything that is measured has one core, and one thread is the fastest on it.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")
}
