//! Servers over HTTP.

use anyhow::Context as _;
use plexus_mcp_protocol::Era;

use crate::bench::Bench;
use crate::launcher::ListeningProcess;
use crate::limit::http::path_of;
use crate::load::http::Target;
use crate::message::SIZES;
use crate::neighbour;
use crate::placement::{Placement, Seat};
use crate::results::Figures;
use crate::servers::{self, PATH, Server};

pub(crate) const PART: &str = "server";

/// The parameters of a measurement, which are the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) era: Era,
    pub(crate) is_stream: bool,
    pub(crate) bytes: usize,
    pub(crate) concurrency: usize,
    pub(crate) placement: Placement,
    /// Whether another process uses as much of one core as it gets.
    pub(crate) has_neighbour: bool,
}

impl Point {
    /// The point with answers of 100 B on all cores, without a neighbour.
    pub(crate) fn new(era: Era, is_stream: bool, concurrency: usize) -> Self {
        Self {
            era,
            is_stream,
            bytes: SIZES[0],
            concurrency,
            placement: Placement::AllCores,
            has_neighbour: false,
        }
    }

    pub(crate) fn name(self) -> String {
        let kind = if self.is_stream { "SSE" } else { "JSON" };
        let neighbour = if self.has_neighbour {
            ", with a busy neighbour"
        } else {
            ""
        };
        format!(
            "{}, {kind}, {}, c={}{}{neighbour}",
            self.era.newest_revision().as_str(),
            size(self.bytes),
            self.concurrency,
            self.placement.suffix()
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

/// The points of a run in one placement. 256 answers of 1 MiB in flight are left out: they would
/// measure memory, not servers.
pub(crate) fn points(quick: bool, placement: Placement) -> Vec<Point> {
    let mut points = Vec::new();
    for era in [Era::Handshake, Era::Stateless] {
        for is_stream in [false, true] {
            for (bytes, concurrency) in loads(placement) {
                let is_wanted_quickly = match (placement, bytes) {
                    (Placement::AllCores, 100) => !is_stream || concurrency == 16,
                    (Placement::OneCore, 100) => era == Era::Stateless && concurrency == 16,
                    _ => era == Era::Stateless && !is_stream && concurrency == 16,
                };
                if is_wanted_quickly || !quick {
                    points.push(Point {
                        bytes,
                        placement,
                        ..Point::new(era, is_stream, concurrency)
                    });
                }
            }
        }
    }
    if placement == Placement::AllCores {
        points.push(Point {
            has_neighbour: true,
            ..Point::new(Era::Handshake, false, 16)
        });
    }
    points
}

/// The sizes and concurrencies that are measured in each era and form.
fn loads(placement: Placement) -> Vec<(usize, usize)> {
    let [small, medium, large] = SIZES;
    match placement {
        Placement::AllCores => vec![
            (small, 1),
            (small, 16),
            (small, 256),
            (medium, 16),
            (medium, 256),
            (large, 16),
        ],
        Placement::OneCore => vec![(small, 16), (small, 256)],
    }
}

/// Runs one round: starts every server and warms it up, and measures all servers at each point in
/// turn.
pub(crate) fn round(bench: &mut Bench) {
    let servers: Vec<_> = servers::all(&bench.paths)
        .into_iter()
        .map(|server| Up::start(bench, server))
        .collect();
    for up in &servers {
        up.warm_up(bench);
    }
    for point in points(bench.effort.quick, bench.launcher.placement()) {
        for up in &servers {
            if up.server.takes_part(point.era, point.is_stream) {
                bench.measure(PART, &point.name(), up.server.name, |bench| {
                    up.measure(bench, point)
                });
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
        let json = bench.launcher.listen(&server.json, Seat::Subject);
        let stream = (server.stream != server.json)
            .then(|| bench.launcher.listen(&server.stream, Seat::Subject));
        Self {
            server,
            json,
            stream,
        }
    }

    /// In each era and form: the code that runs is not the same.
    fn warm_up(&self, bench: &Bench) {
        for era in [Era::Handshake, Era::Stateless] {
            for is_stream in [false, true] {
                let point = Point::new(era, is_stream, 16);
                if self.server.takes_part(era, is_stream)
                    && let Ok(target) = self.target(point)
                {
                    bench.warm_up(&target, &servers::call(point.bytes, is_stream));
                }
            }
        }
    }

    fn measure(&self, bench: &Bench, point: Point) -> anyhow::Result<Figures> {
        let target = self.target(point)?;
        let job = servers::call(point.bytes, point.is_stream);
        // It ends when this is dropped.
        let neighbour = point.has_neighbour.then(|| neighbour::start(bench));
        let _neighbour = neighbour.transpose()?;
        bench.load(&target, &job, point.concurrency)
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
        let is_limit = self.server.is_limit();
        let path = if is_limit {
            path_of(point.bytes, point.is_stream)
        } else {
            PATH.to_owned()
        };
        Ok(Target {
            address: up.address,
            path,
            era: point.era,
            handshake: Era::Handshake.newest_revision().as_str(),
            streams: Some(point.is_stream),
            has_sessions: !is_limit,
            is_fixed: is_limit,
            process: up.process.id(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cores_come_with_every_size_in_both_eras_and_forms() {
        let points = points(false, Placement::AllCores);
        assert_eq!(points.len(), 2 * 2 * 6 + 1);
        let has = |name: &str| points.iter().any(|point| point.name() == name);
        assert!(has("2026-07-28, SSE, 1 MiB, c=16"));
        assert!(has("2025-11-25, JSON, 100 B, c=16, with a busy neighbour"));
        assert_eq!(points[0].name(), "2025-11-25, JSON, 100 B, c=1");
    }

    #[test]
    fn one_core_is_measured_with_short_answers() {
        let points = points(false, Placement::OneCore);
        assert_eq!(points.len(), 2 * 2 * 2);
        assert_eq!(points[0].name(), "2025-11-25, JSON, 100 B, c=16, one core");
    }

    #[test]
    fn a_quick_run_is_part_of_a_full_one() {
        for placement in Placement::ALL {
            let full = points(false, placement);
            let quick = points(true, placement);
            assert!(quick.len() < full.len() && !quick.is_empty());
            assert!(quick.iter().all(|point| full.contains(point)));
        }
    }
}
