//! The socket by which a running gateway is seen and steered from other processes.
//!
//! Every gateway listens on `run/<pid>.sock` in the data directory, for its own user only. Requests
//! and answers are JSON-RPC, one message a line.

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod listener;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(unix)]
pub(crate) use client::{Gateway, running};
#[cfg(unix)]
pub(crate) use listener::listen;

use crate::gateway::ServerReport;

/// What a gateway says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Its process.
    pub(crate) pid: u32,
    /// Its version.
    pub(crate) version: String,
    /// The project that it was started in.
    pub(crate) project: PathBuf,
    /// How its servers are doing.
    pub(crate) servers: Vec<ServerReport>,
    /// What is wrong with its configuration, a line each.
    pub(crate) problems: Vec<String>,
}

/// What a gateway changed when it read its configuration again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reloaded {
    /// Servers that are new.
    pub(crate) added: Vec<String>,
    /// Servers that are gone.
    pub(crate) removed: Vec<String>,
    /// Servers whose definition changed.
    pub(crate) updated: Vec<String>,
    /// What cannot be used, and why.
    pub(crate) errors: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ToggleParams {
    name: String,
    enabled: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct ServerParams {
    name: String,
}

/// The methods.
mod method {
    pub(super) const STATUS: &str = "status";
    pub(super) const TOGGLE: &str = "toggle";
    pub(super) const RECONNECT: &str = "reconnect";
    pub(super) const RELOAD: &str = "reload";
}

/// Has every running gateway read its configuration again. Who does not answer is left alone.
pub(crate) fn reload_all() {
    #[cfg(unix)]
    for gateway in running() {
        if let Err(error) = gateway.reload() {
            crate::announce::problem(&format!(
                "the gateway with process number {} did not take note: {error:#}",
                gateway.pid()
            ));
        }
    }
}

/// Has every running gateway connect this server that waits for a user to sign in to it. Who does
/// not answer is left alone.
pub(crate) fn connect_signed_in(name: &str) {
    #[cfg(unix)]
    for gateway in running() {
        let waits = gateway.status().is_ok_and(|report| {
            let mut servers = report.servers.iter();
            servers.any(|server| server.name == name && server.state == "needs-auth")
        });
        if waits && let Err(error) = gateway.reconnect(name) {
            crate::announce::problem(&format!(
                "the gateway with process number {} did not connect it: {error:#}",
                gateway.pid()
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = name;
}

/// The folder of the sockets.
#[cfg(unix)]
fn directory() -> anyhow::Result<PathBuf> {
    Ok(crate::data::directory()?.join("run"))
}
