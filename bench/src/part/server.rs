//! Servers over HTTP.

use anyhow::Context as _;

use crate::bench::Bench;
use crate::limit::http::echo_path;
use crate::load::http::Target;
use crate::message::{Era, SIZES};
use crate::servers::{self, PATH, Server};
use crate::stage::Listening;

pub(crate) const PART: &str = "server";

/// What all servers are put through.
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
            self.era.revision(),
            size(self.bytes),
            self.concurrency
        )
    }
}

/// A size as people say it.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0xF_0000 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes.div_ceil(0x10_0000)),
    }
}

/// The points of a run. 256 texts of 1 MiB in flight would measure memory, not servers.
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

/// One round: every server is started, and at each point they take turns.
pub(crate) fn round(bench: &mut Bench) {
    let servers: Vec<_> = servers::all(&bench.places)
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

/// A server that is up, or the reason why it is not.
struct Up {
    server: Server,
    json: anyhow::Result<Listening>,
    /// Where streams come from another process.
    stream: Option<anyhow::Result<Listening>>,
}

impl Up {
    fn start(bench: &Bench, server: Server) -> Self {
        let core = bench.stage.cores.subject;
        let json = bench.stage.listen(&server.json, core);
        let stream =
            (server.stream != server.json).then(|| bench.stage.listen(&server.stream, core));
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
            handshake: Era::Handshake.revision(),
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
