//! The client's side of the control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Reloaded, Report, ServerParams, ToggleParams, directory, method};

/// How long a gateway may take to answer. Reconnecting a server may take long.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a gateway may take to accept a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024 * 1024;

/// A gateway that runs in another process.
#[derive(Debug)]
pub(crate) struct RunningGateway {
    pid: u32,
    socket: PathBuf,
}

/// The running gateways of this user, in the order of their process ids. Stale sockets are removed.
pub(crate) fn running() -> Vec<RunningGateway> {
    let folder = directory().ok();
    let Some(files) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let mut gateways: Vec<RunningGateway> = files
        .filter_map(|file| {
            let socket = file.ok()?.path();
            let pid = socket.file_stem()?.to_str()?.parse().ok()?;
            let is_socket = socket
                .extension()
                .is_some_and(|extension| extension == "sock");
            is_socket.then_some(RunningGateway { pid, socket })
        })
        .filter(RunningGateway::is_there)
        .collect();
    gateways.sort_by_key(|gateway| gateway.pid);
    gateways
}

impl RunningGateway {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The status of the gateway and its servers.
    pub(crate) fn status(&self) -> anyhow::Result<Report> {
        self.ask(method::STATUS, json!({}), HANDSHAKE_TIMEOUT)
    }

    /// Enables or disables a server.
    pub(crate) fn toggle(&self, name: &str, enabled: bool) -> anyhow::Result<()> {
        let name = name.to_owned();
        let done: Value = self.ask(
            method::TOGGLE,
            ToggleParams { name, enabled },
            HANDSHAKE_TIMEOUT,
        )?;
        drop(done);
        Ok(())
    }

    /// Reconnects a server, and waits for it.
    pub(crate) fn reconnect(&self, name: &str) -> anyhow::Result<()> {
        let name = name.to_owned();
        let done: Value = self.ask(method::RECONNECT, ServerParams { name }, RESPONSE_TIMEOUT)?;
        drop(done);
        Ok(())
    }

    /// Makes it reload its configuration.
    pub(crate) fn reload(&self) -> anyhow::Result<Reloaded> {
        self.ask(method::RELOAD, json!({}), RESPONSE_TIMEOUT)
    }

    /// Whether a process listens. A stale socket is removed.
    fn is_there(&self) -> bool {
        match UnixStream::connect(&self.socket) {
            Ok(_) => true,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                drop(std::fs::remove_file(&self.socket));
                false
            }
            Err(_) => false,
        }
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        timeout: Duration,
    ) -> anyhow::Result<T> {
        let answer = self
            .exchange(
                &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
                timeout,
            )
            .with_context(|| {
                format!(
                    "the gateway with process number {} does not answer",
                    self.pid
                )
            })?;
        let mut answer: ControlResponse<T> = serde_json::from_str(&answer)
            .context("the gateway's answer cannot be understood; is it of another version?")?;
        match answer.result.take() {
            Some(result) => Ok(result),
            None => Err(match answer.error {
                Some(error) => anyhow!("{}", error.message),
                None => anyhow!("the gateway's answer is empty"),
            }),
        }
    }

    fn exchange(&self, request: &Value, timeout: Duration) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream.take(MAX_RESPONSE_BYTES)).read_line(&mut answer)?;
        Ok(answer)
    }
}

#[derive(serde::Deserialize)]
struct ControlResponse<T> {
    result: Option<T>,
    error: Option<ControlError>,
}

#[derive(serde::Deserialize)]
struct ControlError {
    message: String,
}
