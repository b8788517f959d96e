//! The fixture server: offers what the official conformance suites and our peer tests call.

mod asking;
mod changes;
mod events;
mod fixtures;
mod media;
mod prompts;
mod resources;
mod schemas;
mod tools;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::{HttpOptions, HttpServer, SsePaths};
use plexus_mcp_server::{Edge, Options, ServedEras, stdio};
use tracing_subscriber::EnvFilter;

/// Shorter than the silence of `test_reconnection`, so that its stream is closed and the client has
/// to reconnect.
const RELEASE_AFTER: Duration = Duration::from_millis(300);

/// Serves the fixtures of the MCP conformance suites.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    transport: Transport,
    /// Which revisions are served: those with a handshake, those without, or both.
    #[arg(long, default_value_t = ServedEras::Both)]
    era: ServedEras,
    /// Serve this revision, and of those with a handshake also the older ones.
    #[arg(long, value_name = "REVISION", conflicts_with = "era")]
    revision: Option<Revision>,
    /// Have so many more tools, for lists that do not fit on a page.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    filler: usize,
    /// The log filter for stderr: a level, or a filter such as `plexus_mcp_server=debug`.
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log_level: String,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Transport {
    /// Serve Streamable HTTP on this address.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Serve HTTP+SSE of 2024-11-05 at /sse, beside Streamable HTTP, on this address.
    #[arg(long, value_name = "ADDR")]
    sse: Option<SocketAddr>,
    /// Serve standard input and output.
    #[arg(long)]
    stdio: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments {
        transport,
        era,
        revision,
        filler,
        log_level,
    } = Arguments::parse();
    let filter = EnvFilter::try_new(log_level).context("--log-level")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();

    let mut options = Options::default();
    options.served = era;
    match revision {
        Some(revision) if revision.era() == plexus_mcp_protocol::Era::Handshake => {
            options.served = ServedEras::Handshake;
            options.newest_handshake = revision;
        }
        Some(_) => options.served = ServedEras::Stateless,
        None => {}
    }
    let edge = Edge::new(Arc::new(fixtures::service(filler)?), options)?;
    let mut serving = pin!(serve(&edge, transport));
    tokio::select! {
        // The signal handlers are installed before the server prints its address. Otherwise a
        // signal right after that would kill the process.
        biased;
        signal = asked_to_end() => {
            signal.context("cannot wait for signals")?;
            edge.shut_down();
            serving.await
        }
        served = &mut serving => served,
    }
}

async fn serve(edge: &Arc<Edge>, transport: Transport) -> anyhow::Result<()> {
    let mut options = HttpOptions::default();
    options.release_after = Some(RELEASE_AFTER);
    options.sse = transport.sse.map(|_| SsePaths::default());
    match transport.http.or(transport.sse) {
        Some(address) => serve_http(edge, address, options).await,
        None => stdio::serve(edge)
            .await
            .context("standard input and output"),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the test runner reads the port from standard error"
)]
async fn serve_http(
    edge: &Arc<Edge>,
    address: SocketAddr,
    options: HttpOptions,
) -> anyhow::Result<()> {
    // The HTTP+SSE endpoint is printed first, because callers of `--sse` read the first URL.
    let sse_path = options.sse.as_ref().map(|paths| paths.stream.clone());
    let server = HttpServer::bind(Arc::clone(edge), &[address], options).await?;
    for address in server.addresses() {
        for path in sse_path.as_deref().into_iter().chain([server.path()]) {
            eprintln!("listening on http://{address}{path}");
        }
    }
    server.run().await;
    Ok(())
}

/// Waits for SIGINT or SIGTERM.
async fn asked_to_end() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
