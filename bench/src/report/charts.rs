//! The charts of a report.

use plexus_mcp_protocol::Era;

use super::svg::{Chart, Group};
use crate::gateways::UpstreamTransport;
use crate::part::{gateway, server, stdio};
use crate::placement::Placement;
use crate::results::Results;
use crate::servers::LIMIT;

/// All charts that have bars, with their file names.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, Chart)> {
    let servers = |era, is_stream, figure| {
        [1, 16, 256].map(|concurrency| {
            let point = server::Point::new(era, is_stream, concurrency);
            (server::PART, point.name(), figure)
        })
    };
    let gateways = |concurrency, figure| {
        [UpstreamTransport::Http, UpstreamTransport::Stdio].map(|transport| {
            let point = gateway::Point {
                transport,
                client: Era::Handshake,
                server: Era::Handshake,
                concurrency,
                placement: Placement::AllCores,
            };
            (gateway::PART, point.name(), figure)
        })
    };
    let pipes = stdio::IN_FLIGHT.map(|in_flight| {
        let point = stdio::point(in_flight, Placement::AllCores);
        (stdio::PART, point, "req_s")
    });
    let charts = [
        (
            "servers-2025-11-25",
            "Servers, 2025-11-25: requests a second, of the limit's (longer is better)",
            true,
            "",
            servers(Era::Handshake, false, "req_s").to_vec(),
        ),
        (
            "servers-2026-07-28",
            "Servers, 2026-07-28: requests a second, of the limit's (longer is better)",
            true,
            "",
            servers(Era::Stateless, false, "req_s").to_vec(),
        ),
        (
            "servers-streams",
            "Servers, 2026-07-28, event streams: requests a second, of the limit's (longer is better)",
            true,
            "",
            servers(Era::Stateless, true, "req_s").to_vec(),
        ),
        (
            "servers-cpu",
            "Servers, 2026-07-28: CPU time for each request (shorter is better)",
            false,
            " µs",
            servers(Era::Stateless, false, "cpu_us").to_vec(),
        ),
        (
            "stdio",
            "Servers over stdio: requests a second, of a bare line echo's (longer is better)",
            true,
            "",
            pipes.to_vec(),
        ),
        (
            "gateways-rate",
            "Gateways: requests a second (longer is better)",
            false,
            "",
            gateways(16, "req_s").to_vec(),
        ),
        (
            "gateways-latency",
            "Gateways: median latency of a client that waits (shorter is better)",
            false,
            " µs",
            gateways(1, "p50_us").to_vec(),
        ),
    ];
    let drawn = charts.map(|(name, title, is_relative, unit, points)| {
        let groups = points.into_iter().map(|(part, point, figure)| {
            let bars = bars(results, part, &point, figure, is_relative);
            Group { name: point, bars }
        });
        let chart = Chart {
            title: title.to_owned(),
            unit,
            groups: groups.filter(|group| !group.bars.is_empty()).collect(),
        };
        (name, chart)
    });
    let mut drawn = Vec::from(drawn);
    drawn.retain(|(_, chart)| !chart.groups.is_empty());
    drawn
}

/// A bar for each subject that has the figure.
fn bars(
    results: &Results,
    part: &str,
    point: &str,
    figure: &str,
    is_relative: bool,
) -> Vec<(String, f64)> {
    let limit = results.figure(part, point, LIMIT, figure);
    let rows = results
        .rows
        .iter()
        .filter(|row| row.key.part == part && row.key.point == point);
    rows.filter_map(|row| {
        let value = row.figures.get(figure)?;
        let value = if is_relative { value / limit? } else { *value };
        Some((row.key.subject.clone(), value))
    })
    .collect()
}
