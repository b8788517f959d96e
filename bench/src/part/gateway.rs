//! Gateways over HTTP, in front of a server on HTTP or stdio.

use std::net::SocketAddr;

use anyhow::Context as _;
use plexus_mcp_protocol::Era;

use crate::bench::Bench;
use crate::gateways::{self, Gateway, Upstream, UpstreamTransport};
use crate::launcher::ListeningProcess;
use crate::load::http::{self, Target};
use crate::load::{READY_TIMEOUT, stdio};
use crate::message::{Job, SIZES};
use crate::process::Program;
use crate::results::{Figures, of_load};
use crate::servers::{self, LIMIT, PATH, Server};

pub(crate) const PART: &str = "gateway";
/// The upstream alone, without a gateway.
pub(crate) const DIRECT: &str = "upstream alone";

/// How often a gateway is started at most, until it forwards a call.
const MAX_START_ATTEMPTS: u32 = 8;

/// The eras of client and server, and the concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) transport: UpstreamTransport,
    pub(crate) client: Era,
    pub(crate) server: Era,
    pub(crate) concurrency: usize,
}

impl Point {
    pub(crate) fn name(self) -> String {
        format!(
            "{}, {} → {}, c={}",
            self.transport.name(),
            self.client.newest_revision().as_str(),
            self.server.newest_revision().as_str(),
            self.concurrency
        )
    }

    /// Whether client and server use the same era, so that the gateway does not translate.
    fn is_pass_through(self) -> bool {
        self.client == self.server
    }
}

/// The points of a run.
pub(crate) fn points(quick: bool, transport: UpstreamTransport) -> Vec<Point> {
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
            };
            let wanted_quickly = match concurrency {
                1 => point.is_pass_through() && client == Era::Handshake,
                16 => transport == UpstreamTransport::Http || client == Era::Handshake,
                _ => false,
            };
            if wanted_quickly || !quick {
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
    let cores = bench.launcher.cores;
    let alone = bench.launcher.listen(&server.json, cores.subject)?;
    let upstream = bench.launcher.listen(&server.json, cores.upstream)?;
    let proxy = bench.launcher.listen(
        &Program::new(
            &bench.paths.bench,
            &[
                "limit-proxy",
                "127.0.0.1:{port}",
                &upstream.address.to_string(),
            ],
        ),
        cores.subject,
    )?;
    let mut gateways = Vec::new();
    for gateway in gateways::all(&bench.paths, transport) {
        for era in [Era::Handshake, Era::Stateless] {
            if gateway.servers.contains(&era) {
                let up = start(bench, &gateway, &server, upstream.address, era);
                gateways.push((gateway.clone(), era, up));
            }
        }
    }
    for point in points(bench.effort.quick, transport) {
        let name = point.name();
        if point.is_pass_through() {
            bench.measure(PART, &name, DIRECT, |bench| match transport {
                UpstreamTransport::Http => {
                    over_http(bench, &alone, point, &server.echo(SIZES[0], false))
                }
                UpstreamTransport::Stdio => over_pipes(bench, &server, point),
            });
        }
        if point.is_pass_through() && transport == UpstreamTransport::Http {
            bench.measure(PART, &name, LIMIT, |bench| {
                over_http(bench, &proxy, point, &server.echo(SIZES[0], false))
            });
        }
        for (gateway, era, up) in &gateways {
            let takes_part = gateway.clients.contains(&point.client) && *era == point.server;
            if takes_part {
                bench.measure(PART, &name, gateway.name, |bench| {
                    let up = up.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
                    let job = prefixed(&server, gateway.prefix);
                    let target = through(gateway, up, point.client);
                    bench.load(&target, &job, point.concurrency)
                });
            }
        }
    }
    Ok(())
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
        command: server.stdio.on_core(launcher.cores.upstream)?,
    };
    let up = launcher.listen_as(launcher.cores.subject, |address| {
        Ok(gateway.command(&upstream, era, address, &launcher.new_folder())?)
    })?;
    let client = gateway
        .clients
        .first()
        .context("a gateway without clients")?;
    let target = through(gateway, &up, *client);
    let job = prefixed(server, gateway.prefix);
    http::await_answer(&target, &job, READY_TIMEOUT / MAX_START_ATTEMPTS)
        .with_context(|| format!("it forwards no call: {}", up.process.stderr_tail()))?;
    Ok(up)
}

pub(super) fn prefixed(server: &Server, prefix: &str) -> Job {
    let mut job = server.echo(SIZES[0], false);
    if let Job::Echo { tools, .. } = &mut job {
        for tool in tools {
            tool.insert_str(0, prefix);
        }
    }
    job
}

pub(super) fn target(up: &ListeningProcess, path: &str, era: Era) -> Target {
    Target {
        address: up.address,
        path: path.to_owned(),
        era,
        handshake: Era::Handshake.newest_revision().as_str(),
        streams: None,
        is_limit: false,
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

fn over_http(
    bench: &Bench,
    up: &ListeningProcess,
    point: Point,
    job: &Job,
) -> anyhow::Result<Figures> {
    bench.load(&target(up, PATH, point.client), job, point.concurrency)
}

fn over_pipes(bench: &Bench, server: &Server, point: Point) -> anyhow::Result<Figures> {
    let mut process = bench
        .launcher
        .start(&server.stdio, bench.launcher.cores.subject)?;
    let job = server.echo(SIZES[0], false);
    let in_flight = point.concurrency.min(64);
    let measured = stdio::run(&mut process, &job, bench.effort.load(in_flight), false)?;
    Ok(of_load(&measured, SIZES[0]))
}
