//! A bare proxy in front of a server on stdio: it writes the body of every HTTP request as a line to
//! the server, and answers with the line that has the same id. Nothing else of a message is parsed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plexus_mcp_protocol::Era;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::{runtime, spawn};
use crate::message;

/// Starts the server, performs its handshake, and forwards requests to it.
pub(crate) fn serve(address: SocketAddr, command: &[String]) -> anyhow::Result<()> {
    let mut child = start(command)?;
    let input = child.stdin.take().context("no pipe")?;
    let output = child.stdout.take().context("no pipe")?;
    runtime()?.block_on(async {
        let mut input = pipe::Sender::from_owned_fd(OwnedFd::from(input))?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output))?;
        let mut output = BufReader::new(output);
        handshake(&mut input, &mut output).await?;
        let server = Arc::new(Server {
            input: tokio::sync::Mutex::new(input),
            waiting: Mutex::default(),
        });
        let reader = Arc::clone(&server);
        spawn(async move { reader.read(output).await });
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Arc::clone(&server);
            spawn(async move {
                let service = service_fn(|request| server.answer(request));
                let connection = http1::Builder::new();
                let served = connection.serve_connection(TokioIo::new(stream), service);
                // A client that closes the connection is not an error.
                drop(served.await);
            });
        }
    })
}

/// The server stays in the process group of this proxy, with which it is killed.
#[expect(
    clippy::disallowed_methods,
    reason = "the benchmark ends the process group, and so this child"
)]
fn start(command: &[String]) -> anyhow::Result<Child> {
    let (program, arguments) = command.split_first().context("no server")?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))
}

async fn handshake(
    input: &mut pipe::Sender,
    output: &mut BufReader<pipe::Receiver>,
) -> anyhow::Result<()> {
    let revision = Era::Handshake.newest_revision().as_str();
    let initialize = message::Request::initialize(revision).line();
    input.write_all(&initialize.bytes).await?;
    output.read_until(b'\n', &mut Vec::new()).await?;
    let initialized = message::Request::initialized().line();
    input.write_all(&initialized.bytes).await?;
    Ok(())
}

/// The server on stdio.
struct Server {
    input: tokio::sync::Mutex<pipe::Sender>,
    /// The requests in flight, by their ids.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
}

impl Server {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let line = self.forward(request).await;
        let status = line
            .as_ref()
            .map_or(StatusCode::BAD_GATEWAY, |_| StatusCode::OK);
        let mut response = Response::new(Full::new(line.unwrap_or_default()));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    async fn forward(&self, request: Request<Incoming>) -> Option<Bytes> {
        let body = request.into_body().collect().await.ok()?.to_bytes();
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(message::answered(&body)?, sender);
        let mut line = Vec::with_capacity(body.len() + 1);
        line.extend_from_slice(&body);
        line.push(b'\n');
        self.input.lock().await.write_all(&line).await.ok()?;
        answer.await.ok()
    }

    /// Hands every line to the request that it answers.
    async fn read(&self, mut output: BufReader<pipe::Receiver>) {
        let mut line = Vec::new();
        while output
            .read_until(b'\n', &mut line)
            .await
            .is_ok_and(|read| read > 0)
        {
            let number = message::answered(&line);
            let waiting = number.and_then(|number| self.waiting().remove(&number));
            if let Some(waiting) = waiting {
                line.pop();
                // The client may have closed its connection.
                drop(waiting.send(std::mem::take(&mut line).into()));
            }
            line.clear();
        }
        // The server has ended: all requests fail.
        self.waiting().clear();
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Bytes>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
