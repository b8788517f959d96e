//! The control socket, by which other processes query and control a running gateway.
//!
//! Every gateway listens on `run/<pid>.sock` in the data directory, for its own user only. Requests
//! and responses are JSON-RPC, one message a line.

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod listener;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(unix)]
pub(crate) use client::{RunningGateway, running};
#[cfg(unix)]
pub(crate) use listener::listen;

use crate::gateway::ServerReport;

/// The status of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Its process id.
    pub(crate) pid: u32,
    /// Its version.
    pub(crate) version: String,
    /// The project directory that it was started in.
    pub(crate) project: PathBuf,
    /// The status of its servers.
    pub(crate) servers: Vec<ServerReport>,
    /// The problems of its configuration, one line each.
    pub(crate) problems: Vec<String>,
    /// Whether one of them is about servers, which are missing therefore.
    #[serde(default)]
    pub(crate) has_invalid_servers: bool,
}

/// The changes of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reloaded {
    /// Added servers.
    pub(crate) added: Vec<String>,
    /// Removed servers.
    pub(crate) removed: Vec<String>,
    /// Servers whose definition changed.
    pub(crate) updated: Vec<String>,
    /// Servers that cannot be used, and why.
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

/// Makes every running gateway reload its configuration. Gateways that do not answer are skipped.
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

/// Makes every running gateway connect this server, which was waiting for a sign-in. Gateways that
/// do not answer are skipped.
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
