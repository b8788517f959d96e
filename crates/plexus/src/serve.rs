//! `plexus serve`.

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_mcp_config::Limits;
use plexus_mcp_core::Service;
use plexus_mcp_server::http::HttpServer;
use plexus_mcp_server::{Edge, Options, stdio};

use crate::access::HttpAccess;
use crate::cli::{Compat, DownstreamArgs, ServeArgs};
use crate::gateway::{self, Gateway};
use crate::signals::{Ending, Signals};
use crate::{announce, control, limits, logs, runtime};

/// How long closing may take: the servers' processes exit, and the catalogue cache is written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Delay before background work starts, so that the first requests are answered faster.
const BACKGROUND_TASKS_DELAY: Duration = Duration::from_millis(5);

/// Serves the built-in tools and the configured servers until the client on standard input has
/// gone, or a signal arrives.
pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<ExitCode> {
    logs::start(&arguments.downstream);
    let downstream = arguments.downstream.with_settings()?;
    runtime::for_clients(&downstream, async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let access = HttpAccess::of(&downstream)?;
        let mut options = Options::default();
        options.profile = arguments.profile.into();
        options.native = arguments.native;
        options.mcp_validator = arguments.compat == Some(Compat::McpValidator);
        let gateway_options = arguments.gateway_options(downstream.callbacks());
        let gateway = gateway::configured(gateway_options).await?;
        options.page_size = gateway.page_size().unwrap_or(options.page_size);
        let gateway = Arc::new(gateway);
        gateway.start();
        let hub = gateway.hub.clone();
        let ending = move || hub.start_nothing_new();
        let service = gateway.service();
        let limits = gateway.limits().clone();
        let served = serve(
            service,
            options,
            &limits,
            &downstream,
            access,
            &mut signals,
            ending,
        );
        let ended = tokio::select! {
            // Responses to clients take precedence over background work.
            biased;
            ended = served => ended,
            never = beside(&gateway) => match never {},
        };
        // Processes that do not exit in time are killed when they are dropped.
        drop(tokio::time::timeout(CLOSE_TIMEOUT, gateway.close()).await);
        ended.map(|ended| ended.exit_code())
    })
}

/// Background work of a gateway: watches its files and its data, serves the control socket, and
/// prints failures.
async fn beside(gateway: &Arc<Gateway>) -> Infallible {
    // Answer the first requests first.
    tokio::time::sleep(BACKGROUND_TASKS_DELAY).await;
    let files = async {
        let Err(error) = gateway.follow_files().await;
        announce::problem(&format!("{:#}", anyhow::Error::from(error)));
    };
    #[cfg(unix)]
    let control = async {
        match control::listen() {
            Ok(listener) => listener.serve(gateway).await,
            Err(error) => announce::problem(&format!("{error:#}")),
        }
    };
    #[cfg(not(unix))]
    let control = std::future::ready(());
    let (never, ..) = tokio::join!(
        gateway.follow_data(),
        gateway.announce_problems_of_data(),
        gateway.connect_the_others(),
        files,
        control,
        gateway.announce_failures()
    );
    never
}

/// Why serving ended.
pub(crate) enum Ended {
    /// The client on standard input has gone.
    ClientLeft,
    /// A signal arrived, and requests in flight were finished.
    Signalled,
    /// A second signal arrived.
    Forced(Ending),
}

impl Ended {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ClientLeft | Self::Signalled => ExitCode::SUCCESS,
            Self::Forced(signal) => signal.exit_code(),
        }
    }
}

/// Serves until the client on standard input has gone, or a signal arrives; then calls `ending`,
/// and finishes requests in flight.
///
/// Requests in flight have [`Limits::shutdown_drain_seconds`] to finish; a second signal ends them
/// at once.
pub(crate) async fn serve(
    service: Arc<dyn Service>,
    mut options: Options,
    limits: &Limits,
    arguments: &DownstreamArgs,
    access: HttpAccess,
    signals: &mut Signals,
    ending: impl Fn() + Send + 'static,
) -> anyhow::Result<Ended> {
    limits::apply(limits, &mut options);
    let edge = Edge::new(service, arguments.options(options))
        .context("the system has no random numbers")?;
    let http = bind(&edge, arguments, limits, access).await?;
    if arguments.stdio && io::stdin().is_terminal() {
        announce::waiting_for_messages();
    }

    let edge_ending = edge.ending();
    let mut serving = pin!(async {
        let transports = transports(&edge, arguments.stdio, http);
        tokio::join!(transports, async {
            edge_ending.await;
            ending();
        })
        .0
    });
    tokio::select! {
        ended = &mut serving => return ended.map(|()| Ended::ClientLeft),
        signal = signals.next() => {
            tracing::info!(?signal, "shutting down; a second signal does not wait for requests in flight");
            edge.shut_down();
        }
    }
    tokio::select! {
        ended = serving => ended.map(|()| Ended::Signalled),
        signal = signals.next() => Ok(Ended::Forced(signal)),
    }
}

async fn bind(
    edge: &Arc<Edge>,
    arguments: &DownstreamArgs,
    limits: &Limits,
    access: HttpAccess,
) -> anyhow::Result<Option<HttpServer>> {
    let Some(address) = arguments.address() else {
        return Ok(None);
    };
    let mut options = arguments.http_options();
    limits::apply_to_http(limits, &mut options);
    let server = HttpServer::bind(Arc::clone(edge), &[address], options.clone()).await?;
    let asks = access.asks();
    let server = access.guard(server, &options).await?;
    announce::listening(server.addresses(), &options, asks);
    Ok(Some(server))
}

/// Serves all transports concurrently. If standard input is one of them, the others end with it.
async fn transports(edge: &Arc<Edge>, stdio: bool, http: Option<HttpServer>) -> anyhow::Result<()> {
    let stdio = async {
        if !stdio {
            return Ok(());
        }
        let ended = stdio::serve(edge).await;
        edge.shut_down();
        match ended {
            // A client that stops reading has gone as well.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("standard input or output failed")
            }
            _ => Ok(()),
        }
    };
    let http = async {
        if let Some(server) = http {
            server.run().await;
        }
    };
    tokio::join!(stdio, http).0
}
