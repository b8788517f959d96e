//! Gateways over HTTP, in front of a server on HTTP or on pipes.

use std::net::SocketAddr;

use anyhow::Context as _;

use crate::bench::Bench;
use crate::gateways::{self, Behind, Gateway, Upstream};
use crate::load::http::{self, Target};
use crate::load::{PATIENCE, stdio};
use crate::message::{Era, Job, SIZES};
use crate::process::Program;
use crate::results::{Figures, of_load};
use crate::servers::{self, LIMIT, PATH, Server};
use crate::stage::Listening;

pub(crate) const PART: &str = "gateway";
/// The upstream alone, without a gateway.
pub(crate) const DIRECT: &str = "upstream alone";

/// How often a gateway is started at most until it passes calls on.
const STARTS: u32 = 8;

/// Who speaks what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) behind: Behind,
    pub(crate) client: Era,
    pub(crate) server: Era,
    pub(crate) concurrency: usize,
}

impl Point {
    pub(crate) fn name(self) -> String {
        format!(
            "{}, {} → {}, c={}",
            self.behind.name(),
            self.client.revision(),
            self.server.revision(),
            self.concurrency
        )
    }

    /// Whether the gateway must translate.
    fn is_pass_through(self) -> bool {
        self.client == self.server
    }
}

/// The points of a run.
pub(crate) fn points(quick: bool, behind: Behind) -> Vec<Point> {
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
                behind,
                client,
                server,
                concurrency,
            };
            let wanted_quickly = match concurrency {
                1 => point.is_pass_through() && client == Era::Handshake,
                16 => behind == Behind::Http || client == Era::Handshake,
                _ => false,
            };
            if wanted_quickly || !quick {
                points.push(point);
            }
        }
    }
    points
}

/// One round.
pub(crate) fn round(bench: &mut Bench) {
    for behind in [Behind::Http, Behind::Stdio] {
        if let Err(error) = round_of(bench, behind) {
            bench.measure(PART, behind.name(), DIRECT, |_| Err(error));
        }
    }
}

fn round_of(bench: &mut Bench, behind: Behind) -> anyhow::Result<()> {
    let server = servers::upstream(&bench.places);
    let cores = bench.stage.cores;
    let alone = bench.stage.listen(&server.json, cores.subject)?;
    let upstream = bench.stage.listen(&server.json, cores.upstream)?;
    let proxy = bench.stage.listen(
        &Program::new(
            &bench.places.bench,
            &[
                "limit-proxy",
                "127.0.0.1:{port}",
                &upstream.address.to_string(),
            ],
        ),
        cores.subject,
    )?;
    let mut gateways = Vec::new();
    for gateway in gateways::all(&bench.places, behind) {
        for era in [Era::Handshake, Era::Stateless] {
            if gateway.servers.contains(&era) {
                let up = start(bench, &gateway, &server, upstream.address, era);
                gateways.push((gateway.clone(), era, up));
            }
        }
    }
    for point in points(bench.effort.quick, behind) {
        let name = point.name();
        if point.is_pass_through() {
            bench.measure(PART, &name, DIRECT, |bench| match behind {
                Behind::Http => over_http(bench, &alone, point, &server.echo(SIZES[0], false)),
                Behind::Stdio => over_pipes(bench, &server, point),
            });
        }
        if point.is_pass_through() && behind == Behind::Http {
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

/// Starts a gateway in front of the upstream, and waits until it passes a call on. Some do not
/// always get up, and are given several attempts: what is measured is not how they start.
pub(super) fn start(
    bench: &Bench,
    gateway: &Gateway,
    server: &Server,
    upstream: SocketAddr,
    era: Era,
) -> anyhow::Result<Listening> {
    let attempt = || start_once(bench, gateway, server, upstream, era);
    let mut up = attempt();
    for _ in 1..STARTS {
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
) -> anyhow::Result<Listening> {
    let stage = &bench.stage;
    let upstream = Upstream {
        url: format!("http://{upstream}{PATH}"),
        command: server.stdio.on_core(stage.cores.upstream)?,
    };
    let up = stage.listen_as(stage.cores.subject, |address| {
        Ok(gateway.command(&upstream, era, address, &stage.new_folder())?)
    })?;
    let client = gateway.clients.first().context("nobody's gateway")?;
    let target = through(gateway, &up, *client);
    let job = prefixed(server, gateway.prefix);
    http::await_answer(&target, &job, PATIENCE / STARTS)
        .with_context(|| format!("it passes no call on: {}", up.process.said()))?;
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

pub(super) fn target(up: &Listening, path: &str, era: Era) -> Target {
    Target {
        address: up.address,
        path: path.to_owned(),
        era,
        handshake: Era::Handshake.revision(),
        streams: None,
        is_limit: false,
        process: up.process.id(),
    }
}

/// Where clients of this era reach a gateway.
pub(super) fn through(gateway: &Gateway, up: &Listening, era: Era) -> Target {
    Target {
        handshake: gateway.handshake,
        ..target(up, gateway.path, era)
    }
}

fn over_http(bench: &Bench, up: &Listening, point: Point, job: &Job) -> anyhow::Result<Figures> {
    bench.load(&target(up, PATH, point.client), job, point.concurrency)
}

fn over_pipes(bench: &Bench, server: &Server, point: Point) -> anyhow::Result<Figures> {
    let mut process = bench
        .stage
        .start(&server.stdio, bench.stage.cores.subject)?;
    let job = server.echo(SIZES[0], false);
    let in_flight = point.concurrency.min(64);
    let seen = stdio::run(&mut process, &job, bench.effort.load(in_flight), false)?;
    Ok(of_load(&seen, SIZES[0]))
}
