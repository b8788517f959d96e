//! Servers over HTTP.

use anyhow::Context as _;
use plexus_mcp_protocol::Era;

use crate::bench::Bench;
use crate::launcher::ListeningProcess;
use crate::limit::http::echo_path;
use crate::load::http::Target;
use crate::message::SIZES;
use crate::servers::{self, PATH, Server};

pub(crate) const PART: &str = "server";

/// The parameters of a measurement, which are the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) era: Era,
    pub(crate) is_stream: bool,
    pub(crate) bytes: usize,
    pub(crate) concurrency: usize,
}

impl Point {
    pub(crate) fn name(self) -> String {
        let kind = if self.is_stream { "SSE" } else { "JSON" };
        format!(
            "{}, {kind}, {}, c={}",
            self.era.newest_revision().as_str(),
            size(self.bytes),
            self.concurrency
        )
    }
}

/// A size in a unit for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0xF_0000 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes.div_ceil(0x10_0000)),
    }
}

/// The points of a run. 256 texts of 1 MiB in flight are left out: they would measure memory, not
/// servers.
pub(crate) fn points(quick: bool) -> Vec<Point> {
    let mut points = Vec::new();
    for era in [Era::Handshake, Era::Stateless] {
        for is_stream in [false, true] {
            for bytes in SIZES {
                for concurrency in [1, 16, 256] {
                    let wanted_quickly = match bytes {
                        100 => !is_stream || concurrency == 16,
                        _ => era == Era::Stateless && !is_stream && concurrency == 16,
                    };
                    let is_sane = bytes * concurrency <= 16 << 20;
                    if is_sane && (wanted_quickly || !quick) {
                        points.push(Point {
                            era,
                            is_stream,
                            bytes,
                            concurrency,
                        });
                    }
                }
            }
        }
    }
    points
}

/// Runs one round: starts every server, and measures all servers at each point in turn.
pub(crate) fn round(bench: &mut Bench) {
    let servers: Vec<_> = servers::all(&bench.paths)
        .into_iter()
        .map(|server| Up::start(bench, server))
        .collect();
    for point in points(bench.effort.quick) {
        for up in &servers {
            if up.server.takes_part(point.era, point.is_stream) {
                let measure = |bench: &Bench| {
                    let target = up.target(point)?;
                    let job = up.server.echo(point.bytes, point.is_stream);
                    bench.load(&target, &job, point.concurrency)
                };
                bench.measure(PART, &point.name(), up.server.name, measure);
            }
        }
    }
}

/// A running server, or the reason why it does not run.
struct Up {
    server: Server,
    json: anyhow::Result<ListeningProcess>,
    /// A second process for event streams, if the server needs another configuration for them.
    stream: Option<anyhow::Result<ListeningProcess>>,
}

impl Up {
    fn start(bench: &Bench, server: Server) -> Self {
        let core = bench.launcher.cores.subject;
        let json = bench.launcher.listen(&server.json, core);
        let stream =
            (server.stream != server.json).then(|| bench.launcher.listen(&server.stream, core));
        Self {
            server,
            json,
            stream,
        }
    }

    fn target(&self, point: Point) -> anyhow::Result<Target> {
        let process = match &self.stream {
            Some(stream) if point.is_stream => stream,
            _ => &self.json,
        };
        let up = process.as_ref();
        let up = up
            .map_err(|error| anyhow::anyhow!("{error:#}"))
            .context("it does not start")?;
        let path = if self.server.is_limit() {
            echo_path(point.bytes, point.is_stream)
        } else {
            PATH.to_owned()
        };
        Ok(Target {
            address: up.address,
            path,
            era: point.era,
            handshake: Era::Handshake.newest_revision().as_str(),
            streams: Some(point.is_stream),
            is_limit: self.server.is_limit(),
            process: up.process.id(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_run_has_every_size_and_concurrency_in_both_eras_and_forms() {
        let points = points(false);
        assert_eq!(points.len(), 2 * 2 * (3 + 3 + 2));
        assert!(
            points
                .iter()
                .any(|point| point.name() == "2026-07-28, SSE, 1 MiB, c=16")
        );
        assert_eq!(points[0].name(), "2025-11-25, JSON, 100 B, c=1");
    }

    #[test]
    fn a_quick_run_is_part_of_a_full_one() {
        let full = points(false);
        let quick = points(true);
        assert!(quick.len() < full.len() / 2);
        assert!(quick.iter().all(|point| full.contains(point)));
    }
}
