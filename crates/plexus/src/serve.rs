//! `plexus serve`.

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use plexus_server::http::HttpServer;
use plexus_server::{Edge, Options, stdio};
use plexus_service::Service;

use crate::access::Entrance;
use crate::cli::{Compat, DownstreamArgs, ServeArgs};
use crate::gateway::{self, Gateway};
use crate::signals::{Ending, Signals};
use crate::{announce, control, logs, runtime};

/// How long the program does nothing but answer after it was started.
const FIRST_ANSWERS: Duration = Duration::from_millis(5);

/// Serves the built-in tools and the configured servers until the client on standard input has
/// gone, or a signal comes.
pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<ExitCode> {
    logs::start(arguments.downstream.log_level);
    let downstream = arguments.downstream.filled()?;
    runtime::for_clients(&downstream, async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let entrance = Entrance::of(&downstream)?;
        let mut options = Options::default();
        options.profile = arguments.profile.into();
        options.native = arguments.native;
        options.mcp_validator = arguments.compat == Some(Compat::McpValidator);
        let opening = arguments.opening(downstream.landing());
        let gateway = gateway::configured(opening).await?;
        let gateway = Arc::new(gateway);
        gateway.start().await;
        let served = async {
            let service = gateway.service();
            let ended = serve(service, options, &downstream, entrance, &mut signals).await?;
            if let Ended::ClientLeft = ended {
                tokio::select! {
                    () = gateway.linger() => {}
                    _ = signals.next() => {}
                }
            }
            Ok(ended.exit_code())
        };
        let ended = tokio::select! {
            // Whoever waits for an answer comes first.
            biased;
            ended = served => ended,
            never = beside(&gateway) => match never {},
        };
        gateway.close().await;
        ended
    })
}

/// What a gateway does beside serving: it follows its files and its data, listens to other
/// processes of its user, and says what fails.
async fn beside(gateway: &Arc<Gateway>) -> Infallible {
    // Whoever started the program waits for its first answers.
    tokio::time::sleep(FIRST_ANSWERS).await;
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
    /// A signal came, and work in flight was finished.
    Asked,
    /// A second signal came.
    Forced(Ending),
}

impl Ended {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ClientLeft | Self::Asked => ExitCode::SUCCESS,
            Self::Forced(signal) => signal.exit_code(),
        }
    }
}

/// Serves until the client on standard input has gone, or a signal comes.
///
/// The first signal lets work in flight finish, the second does not.
pub(crate) async fn serve(
    service: Arc<dyn Service>,
    options: Options,
    arguments: &DownstreamArgs,
    entrance: Entrance,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    let edge = Edge::new(service, arguments.options(options))
        .context("the system gives no random numbers")?;
    let http = bind(&edge, arguments, entrance).await?;
    if arguments.stdio && io::stdin().is_terminal() {
        announce::waiting_for_messages();
    }

    let mut serving = pin!(transports(&edge, arguments.stdio, http));
    tokio::select! {
        ended = &mut serving => return ended.map(|()| Ended::ClientLeft),
        signal = signals.next() => {
            tracing::info!(?signal, "ending when work in flight is done; a second signal ends it at once");
            edge.shut_down();
        }
    }
    tokio::select! {
        ended = serving => ended.map(|()| Ended::Asked),
        signal = signals.next() => Ok(Ended::Forced(signal)),
    }
}

async fn bind(
    edge: &Arc<Edge>,
    arguments: &DownstreamArgs,
    entrance: Entrance,
) -> anyhow::Result<Option<HttpServer>> {
    let Some(address) = arguments.address() else {
        return Ok(None);
    };
    let options = arguments.http_options();
    let server = HttpServer::bind(Arc::clone(edge), &[address], options.clone()).await?;
    let asks = entrance.asks();
    let server = entrance.guard(server, &options).await?;
    announce::listening(server.addresses(), &options, asks);
    Ok(Some(server))
}

/// Serves on all transports at once. If standard input is one of them, they end with it.
async fn transports(edge: &Arc<Edge>, stdio: bool, http: Option<HttpServer>) -> anyhow::Result<()> {
    let stdio = async {
        if !stdio {
            return Ok(());
        }
        let ended = stdio::serve(edge).await;
        edge.shut_down();
        match ended {
            // A client that stops reading has gone, too.
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
