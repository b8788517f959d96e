//! Gateways over HTTP, in front of a server on HTTP or stdio.

use std::net::SocketAddr;

use anyhow::Context as _;
use plexus_mcp_protocol::Era;

use crate::bench::Bench;
use crate::gateways::{self, Gateway, Upstream, UpstreamTransport};
use crate::launcher::ListeningProcess;
use crate::load::http::{self, Target};
use crate::load::{READY_TIMEOUT, stdio};
use crate::message::{Call, Job, SIZES, TOOL};
use crate::placement::{Placement, Seat};
use crate::process::Program;
use crate::results::{Figures, of_load};
use crate::servers::{self, LIMIT, PATH, Server};

pub(crate) const PART: &str = "gateway";
/// The upstream alone, without a gateway.
pub(crate) const DIRECT: &str = "upstream alone";

/// How often a gateway is started at most, until it forwards a call.
const MAX_START_ATTEMPTS: u32 = 8;
/// How many lines fit into the pipe of a server.
const MAX_LINES_IN_FLIGHT: usize = 64;

/// The eras of client and server, and the concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) transport: UpstreamTransport,
    pub(crate) client: Era,
    pub(crate) server: Era,
    pub(crate) concurrency: usize,
    pub(crate) placement: Placement,
}

impl Point {
    pub(crate) fn name(self) -> String {
        format!(
            "{}, {} → {}, c={}{}",
            self.transport.name(),
            self.client.newest_revision().as_str(),
            self.server.newest_revision().as_str(),
            self.concurrency,
            self.placement.suffix()
        )
    }

    /// Whether client and server use the same era, so that the gateway does not translate.
    fn is_pass_through(self) -> bool {
        self.client == self.server
    }

    /// Whether there is a bare proxy for this point. The one in front of a server on stdio performs
    /// one handshake for all clients.
    fn has_limit(self) -> bool {
        self.is_pass_through()
            && (self.transport == UpstreamTransport::Http || self.client == Era::Handshake)
    }

    fn is_for(self, gateway: &Gateway, server: Era) -> bool {
        gateway.clients.contains(&self.client) && server == self.server
    }
}

/// The points of a run in one placement.
pub(crate) fn points(
    quick: bool,
    transport: UpstreamTransport,
    placement: Placement,
) -> Vec<Point> {
    let pairs = [
        (Era::Handshake, Era::Handshake),
        (Era::Stateless, Era::Stateless),
        (Era::Stateless, Era::Handshake),
        (Era::Handshake, Era::Stateless),
    ];
    let mut points = Vec::new();
    for (client, server) in pairs {
        for concurrency in [1, 16, 256] {
            let point = Point {
                transport,
                client,
                server,
                concurrency,
                placement,
            };
            let is_wanted = match placement {
                Placement::AllCores => point.is_pass_through() || concurrency == 16,
                Placement::OneCore => point.is_pass_through() && concurrency == 16,
            };
            let is_wanted_quickly = match (placement, concurrency) {
                (Placement::OneCore, _) => false,
                (_, 1) => point.is_pass_through() && client == Era::Handshake,
                (_, 16) => transport == UpstreamTransport::Http || client == Era::Handshake,
                _ => false,
            };
            if is_wanted && (is_wanted_quickly || !quick) {
                points.push(point);
            }
        }
    }
    points
}

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    for transport in [UpstreamTransport::Http, UpstreamTransport::Stdio] {
        if let Err(error) = round_of(bench, transport) {
            bench.measure(PART, transport.name(), DIRECT, |_| Err(error));
        }
    }
}

fn round_of(bench: &mut Bench, transport: UpstreamTransport) -> anyhow::Result<()> {
    let server = servers::upstream(&bench.paths);
    let points = points(bench.effort.quick, transport, bench.launcher.placement());
    if points.is_empty() {
        return Ok(());
    }
    let alone = bench.launcher.listen(&server.json, Seat::Subject)?;
    let upstream = bench.launcher.listen(&server.json, Seat::Upstream)?;
    let proxy = proxy(bench, &server, upstream.address, transport)?;
    let mut gateways = Vec::new();
    for gateway in gateways::all(&bench.paths, transport) {
        for era in [Era::Handshake, Era::Stateless] {
            let takes_part = |point: &&Point| {
                let has_failed = bench.has_failed(PART, &point.name(), gateway.name);
                point.is_for(&gateway, era) && !has_failed
            };
            // Starting a gateway that does not work takes long.
            if gateway.servers.contains(&era) && points.iter().any(|point| takes_part(&point)) {
                let up = start(bench, &gateway, &server, upstream.address, era);
                gateways.push((gateway.clone(), era, up));
            }
        }
    }
    for (gateway, _, up) in &gateways {
        if let Ok(up) = up {
            let job = prefixed(gateway.prefix, SIZES[0]);
            for client in gateway.clients {
                bench.warm_up(&through(gateway, up, *client), &job);
            }
        }
    }
    let job = servers::call(SIZES[0], false);
    for point in points {
        let name = point.name();
        if point.is_pass_through() {
            bench.measure(PART, &name, DIRECT, |bench| match transport {
                UpstreamTransport::Http => {
                    let target = target(&alone, PATH, point.client);
                    bench.load(&target, &job, point.concurrency)
                }
                UpstreamTransport::Stdio => over_pipes(bench, &server, point),
            });
        }
        if point.has_limit() {
            bench.measure(PART, &name, LIMIT, |bench| {
                let target = Target {
                    has_sessions: transport == UpstreamTransport::Http,
                    ..target(&proxy, PATH, point.client)
                };
                bench.load(&target, &job, point.concurrency)
            });
        }
        for (gateway, era, up) in &gateways {
            if point.is_for(gateway, *era) {
                bench.measure(PART, &name, gateway.name, |bench| {
                    let up = up.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
                    let job = prefixed(gateway.prefix, SIZES[0]);
                    let target = through(gateway, up, point.client);
                    bench.load(&target, &job, point.concurrency)
                });
            }
        }
    }
    Ok(())
}

/// Starts the bare proxy: one that forwards bytes to a server on HTTP, or lines to a server on stdio.
fn proxy(
    bench: &Bench,
    server: &Server,
    upstream: SocketAddr,
    transport: UpstreamTransport,
) -> anyhow::Result<ListeningProcess> {
    let program = match transport {
        UpstreamTransport::Http => Program::new(
            &bench.paths.bench,
            &["limit-proxy", "127.0.0.1:{port}", &upstream.to_string()],
        ),
        UpstreamTransport::Stdio => {
            let command = server.stdio.on(bench.launcher.affinity(Seat::Upstream))?;
            let path = command.path.display().to_string();
            let arguments: Vec<_> = command.arguments.iter().map(String::as_str).collect();
            Program::new(
                &bench.paths.bench,
                &["limit-lines", "127.0.0.1:{port}", &path],
            )
            .and(&arguments)
        }
    };
    bench.launcher.listen(&program, Seat::Subject)
}

/// Starts a gateway in front of the upstream, and waits until it forwards a call. Some gateways do
/// not start reliably, so there are several attempts: starting is not part of the measurement.
pub(super) fn start(
    bench: &Bench,
    gateway: &Gateway,
    server: &Server,
    upstream: SocketAddr,
    era: Era,
) -> anyhow::Result<ListeningProcess> {
    let attempt = || start_once(bench, gateway, server, upstream, era);
    let mut up = attempt();
    for _ in 1..MAX_START_ATTEMPTS {
        if up.is_ok() {
            break;
        }
        up = attempt();
    }
    up
}

fn start_once(
    bench: &Bench,
    gateway: &Gateway,
    server: &Server,
    upstream: SocketAddr,
    era: Era,
) -> anyhow::Result<ListeningProcess> {
    let launcher = &bench.launcher;
    let upstream = Upstream {
        url: format!("http://{upstream}{PATH}"),
        command: server.stdio.on(launcher.affinity(Seat::Upstream))?,
    };
    let up = launcher.listen_as(Seat::Subject, |address| {
        Ok(gateway.command(&upstream, era, address, &launcher.new_folder())?)
    })?;
    let client = gateway
        .clients
        .first()
        .context("a gateway without clients")?;
    let target = through(gateway, &up, *client);
    let job = prefixed(gateway.prefix, SIZES[0]);
    http::await_answer(&target, &job, READY_TIMEOUT / MAX_START_ATTEMPTS)
        .with_context(|| format!("it forwards no call: {}", up.process.stderr_tail()))?;
    Ok(up)
}

/// Calls of the upstream's tool through a gateway that adds this prefix to its name.
pub(super) fn prefixed(prefix: &str, bytes: usize) -> Job {
    Job::Call(Call::new(format!("{prefix}{TOOL}"), bytes))
}

pub(super) fn target(up: &ListeningProcess, path: &str, era: Era) -> Target {
    Target {
        address: up.address,
        path: path.to_owned(),
        era,
        handshake: Era::Handshake.newest_revision().as_str(),
        streams: None,
        has_sessions: true,
        is_fixed: false,
        process: up.process.id(),
    }
}

/// The target for clients of this era at a gateway.
pub(super) fn through(gateway: &Gateway, up: &ListeningProcess, era: Era) -> Target {
    Target {
        handshake: gateway.handshake,
        ..target(up, gateway.path, era)
    }
}

fn over_pipes(bench: &Bench, server: &Server, point: Point) -> anyhow::Result<Figures> {
    let mut process = bench.launcher.start(&server.stdio, Seat::Subject)?;
    let job = servers::call(SIZES[0], false);
    let in_flight = point.concurrency.min(MAX_LINES_IN_FLIGHT);
    let measured = stdio::run(&mut process, &job, bench.effort.load(in_flight), false)?;
    Ok(of_load(&measured, SIZES[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_measured_at_some_of_the_points() {
        for transport in [UpstreamTransport::Http, UpstreamTransport::Stdio] {
            let everywhere = points(false, transport, Placement::AllCores);
            let pinned = points(false, transport, Placement::OneCore);
            assert_eq!((everywhere.len(), pinned.len()), (8, 2));
            for point in pinned {
                assert!(point.name().ends_with(", c=16, one core"), "{point:?}");
                let unpinned = Point {
                    placement: Placement::AllCores,
                    ..point
                };
                assert!(everywhere.contains(&unpinned));
            }
        }
    }
}
