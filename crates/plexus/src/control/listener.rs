//! The gateway's side of the control socket.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::TaskTracker;

use super::{Reloaded, Report, ServerParams, ToggleParams, directory, method};
use crate::VERSION;
use crate::gateway::Gateway;

/// The longest request that is read.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;

/// A gateway's socket. Dropping it removes the socket.
pub(crate) struct Listener {
    socket: PathBuf,
    listener: UnixListener,
}

/// Listens on the socket of this process.
///
/// # Errors
/// The socket cannot be created.
pub(crate) fn listen() -> anyhow::Result<Listener> {
    let folder = directory()?;
    let socket = folder.join(format!("{}.sock", std::process::id()));
    // Listing the running gateways removes stale sockets.
    drop(super::running());
    let listener =
        bind(&folder, &socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
    Ok(Listener { socket, listener })
}

fn bind(folder: &std::path::Path, socket: &std::path::Path) -> io::Result<UnixListener> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    // A crashed process with the same id may have left its socket.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

impl Listener {
    /// Answers requests for `gateway`, for as long as it is polled.
    pub(crate) async fn serve(self, gateway: &Arc<Gateway>) {
        let connections = TaskTracker::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let gateway = Arc::clone(gateway);
                    connections.spawn(async move {
                        if let Err(error) = converse(stream, &gateway).await {
                            tracing::debug!(%error, "a conversation on the control socket ended");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket is given up");
                    return;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.socket));
    }
}

async fn converse(mut stream: UnixStream, gateway: &Gateway) -> io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut reading = BufReader::new(reading);
    loop {
        let mut line = String::new();
        if (&mut reading)
            .take(MAX_REQUEST_BYTES)
            .read_line(&mut line)
            .await?
            == 0
        {
            return Ok(());
        }
        let answer = answer(&line, gateway).await;
        writing.write_all(format!("{answer}\n").as_bytes()).await?;
    }
}

#[derive(serde::Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Value,
}

/// The error of a request: a JSON-RPC code, and a message.
type Refusal = (i32, String);

async fn answer(line: &str, gateway: &Gateway) -> Value {
    let request: Request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return refused(&Value::Null, &(-32700, error.to_string())),
    };
    match carry_out(&request, gateway).await {
        Ok(result) => json!({"jsonrpc": "2.0", "id": request.id, "result": result}),
        Err(refusal) => refused(&request.id, &refusal),
    }
}

fn refused(id: &Value, (code, message): &Refusal) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

async fn carry_out(request: &Request, gateway: &Gateway) -> Result<Value, Refusal> {
    let failed = |fault: plexus_mcp_core::Fault| (-32000, fault.to_string());
    match request.method.as_str() {
        method::STATUS => result(&Report {
            pid: std::process::id(),
            version: VERSION.to_owned(),
            project: gateway.project().to_owned(),
            servers: gateway.report().await,
            problems: gateway.problems(),
            has_invalid_servers: gateway.has_invalid_servers(),
        }),
        method::TOGGLE => {
            let ToggleParams { name, enabled } = params(request)?;
            gateway.hub.toggle(&name, enabled).map_err(failed)?;
            Ok(json!({}))
        }
        method::RECONNECT => {
            let ServerParams { name } = params(request)?;
            gateway.hub.reconnect(&name).await.map_err(failed)?;
            Ok(json!({}))
        }
        method::RELOAD => {
            let changes = gateway.reload().await;
            result(&Reloaded {
                added: changes.added,
                removed: changes.removed,
                updated: changes.updated,
                errors: changes.errors,
            })
        }
        other => Err((-32601, format!("there is no method {other:?}"))),
    }
}

fn params<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let text = request.params.to_string();
    serde_json::from_str(&text).map_err(|error| (-32602, error.to_string()))
}

fn result(value: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|error| (-32603, error.to_string()))
}
