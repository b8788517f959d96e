//! `plexus serve`.

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_mcp_config::{self as config, Limits};
use plexus_mcp_core::Service;
use plexus_mcp_server::http::HttpServer;
use plexus_mcp_server::pipe::StdInput;
use plexus_mcp_server::stdio::{self, ReadAhead};
use plexus_mcp_server::{Edge, Options};

use crate::access::HttpAccess;
use crate::cli::{Compat, DownstreamArgs, ServeArgs};
use crate::gateway::{self, Gateway};
use crate::process_env::locations;
use crate::serve_chain::OwnEndpoint;
#[cfg(unix)]
use crate::signals::ReloadSignals;
use crate::signals::{Ending, Signals};
use crate::{announce, control, limits, logs, runtime};

/// How long closing may take: the servers' processes exit, and the catalogue cache is written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the built-in tools and the configured servers until the client on standard input has
/// gone, or a signal arrives.
pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<ExitCode> {
    logs::start(&arguments.downstream);
    // The settings of how to serve are not used if a file with settings is broken.
    gateway::usable_settings(&config::load_settings(&locations()?).1)?;
    let downstream = arguments.downstream.with_settings()?;
    runtime::for_clients(&downstream, async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let access = HttpAccess::of(&downstream)?;
        let mut options = Options::default();
        options.profile = arguments.profile.into();
        options.native = arguments.native;
        options.mcp_validator = arguments.compat == Some(Compat::McpValidator);
        let mut gateway_options = arguments.gateway_options(downstream.callbacks());
        let http_options = downstream.http_options();
        let address = downstream.address();
        gateway_options.endpoint = address.map(|own| OwnEndpoint::new(own, &http_options));
        let gateway = gateway::configured(gateway_options).await?;
        gateway.check_chain()?;
        options.page_size = gateway.page_size().unwrap_or(options.page_size);
        let gateway = Arc::new(gateway);
        gateway.start();
        let hub = gateway.hub.clone();
        let ending = move || hub.start_nothing_new();
        let service = gateway.service();
        let limits = gateway.limits().clone();
        let edge = edge_of(service, options, &limits, &downstream)?;
        let in_use = edge.in_use();
        let connecting = async {
            // Programs that start compete with the first list of a client on standard input: with
            // 100 cached servers, it would be answered after 104 ms instead of 10 ms.
            if downstream.stdio {
                in_use.await;
            }
            gateway.connect();
        };
        let input = input_of(&downstream)?;
        let served = serve(
            edge,
            &limits,
            &downstream,
            input,
            access,
            &mut signals,
            ending,
        );
        let ended = tokio::select! {
            ended = served => ended,
            never = run_background_tasks(&gateway, connecting) => match never {},
        };
        // Processes that do not exit in time are killed when they are dropped.
        drop(tokio::time::timeout(CLOSE_TIMEOUT, gateway.close()).await);
        ended.map(|ended| ended.exit_code())
    })
}

/// Background work of a gateway: does `connecting`, watches its files and its data, serves the
/// control socket, and prints failures.
async fn run_background_tasks(
    gateway: &Arc<Gateway>,
    connecting: impl Future<Output = ()>,
) -> Infallible {
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
    #[cfg(unix)]
    let reloads = async {
        match ReloadSignals::take() {
            Ok(Some(mut reloads)) => {
                while reloads.next().await {
                    tracing::info!("SIGHUP: the configuration is read again");
                    gateway.reload().await;
                }
            }
            Ok(None) => {}
            Err(error) => announce::problem(&format!("cannot wait for SIGHUP: {error}")),
        }
    };
    #[cfg(not(unix))]
    let (control, reloads) = (std::future::ready(()), std::future::ready(()));
    let (never, ..) = tokio::join!(
        gateway.follow_data(),
        gateway.announce_problems_of_data(),
        connecting,
        files,
        control,
        reloads,
        gateway.announce_failures()
    );
    never
}

/// Why serving ended.
pub(crate) enum ServeEnd {
    /// The client on standard input has gone.
    ClientLeft,
    /// A signal arrived, and requests in flight were finished.
    Signalled,
    /// A second signal arrived.
    Forced(Ending),
}

impl ServeEnd {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ClientLeft | Self::Signalled => ExitCode::SUCCESS,
            Self::Forced(signal) => signal.exit_code(),
        }
    }
}

/// The server edge of `service`, as the settings and arguments configure it.
pub(crate) fn edge_of(
    service: Arc<dyn Service>,
    mut options: Options,
    limits: &Limits,
    arguments: &DownstreamArgs,
) -> anyhow::Result<Arc<Edge>> {
    limits::apply(limits, &mut options);
    Edge::new(service, arguments.options(options)).context("the system has no random numbers")
}

/// Standard input of the client, if it is served.
pub(crate) type ClientInput = Option<ReadAhead<StdInput>>;

/// Opens standard input, if `arguments` say that it is served.
pub(crate) fn input_of(arguments: &DownstreamArgs) -> anyhow::Result<ClientInput> {
    let input = arguments.stdio.then(ReadAhead::stdin).transpose();
    input.context("standard input failed")
}

/// Serves `edge` until the client on standard input has gone, or a signal arrives; then calls
/// `ending`, and finishes requests in flight.
///
/// Requests in flight have [`Limits::shutdown_drain_seconds`] to finish; a second signal ends them
/// at once.
pub(crate) async fn serve(
    edge: Arc<Edge>,
    limits: &Limits,
    arguments: &DownstreamArgs,
    input: ClientInput,
    access: HttpAccess,
    signals: &mut Signals,
    ending: impl Fn() + Send + 'static,
) -> anyhow::Result<ServeEnd> {
    // Fetching a secret can take long, so a signal ends that, too.
    let http = tokio::select! {
        bound = bind(&edge, arguments, limits, access) => bound?,
        _ = signals.next() => return Ok(ServeEnd::Signalled),
    };
    if input.is_some() && io::stdin().is_terminal() {
        announce::waiting_for_messages();
    }

    let edge_ending = edge.ending();
    let mut serving = pin!(async {
        let transports = transports(&edge, input, http);
        tokio::join!(transports, async {
            edge_ending.await;
            ending();
        })
        .0
    });
    tokio::select! {
        ended = &mut serving => return ended.map(|()| ServeEnd::ClientLeft),
        signal = signals.next() => {
            tracing::info!(?signal, "shutting down; a second signal does not wait for requests in flight");
            edge.shut_down();
        }
    }
    tokio::select! {
        ended = serving => ended.map(|()| ServeEnd::Signalled),
        signal = signals.next() => Ok(ServeEnd::Forced(signal)),
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
async fn transports(
    edge: &Arc<Edge>,
    input: ClientInput,
    http: Option<HttpServer>,
) -> anyhow::Result<()> {
    let stdio = async {
        let Some(input) = input else {
            return Ok(());
        };
        match stdio::serve_input(edge, input).await {
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
