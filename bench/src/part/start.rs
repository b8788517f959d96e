//! Cold start: the time from the start of a process to its first list of tools over stdio.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Map, json};
use tokio::time::Instant;

use crate::bench::Bench;
use crate::load::READY_TIMEOUT;
use crate::load::stdio::Client;
use crate::placement::Seat;
use crate::process::{Program, pause};
use crate::results::{Figures, figures, median};
use crate::servers::{self, SERVE};

pub(crate) const PART: &str = "start";
pub(crate) const ALONE: &str = "no upstream";
const CONFIGURED: &str = "100 upstreams, remembered";

/// How often a process is started in a round. If the starts take longer than `SLOW_STARTS_TIMEOUT`,
/// it is started `MIN_STARTS` times.
const STARTS: usize = 11;
const MIN_STARTS: usize = 3;
const SLOW_STARTS_TIMEOUT: Duration = Duration::from_secs(2);
const UPSTREAM_COUNT: usize = 100;
/// The maximum number of tools on a page.
const MAX_PAGE_TOOLS: usize = 50;

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    let mut measured = servers::all(&bench.paths);
    measured.push(servers::serve(&bench.paths));
    for server in measured {
        if !server.is_limit() {
            bench.measure(PART, ALONE, server.name, |bench| {
                median_start(bench, &server.stdio, 1, None)
            });
        }
    }
    bench.measure(PART, CONFIGURED, SERVE, cached);
}

/// A gateway with a cache of all tool lists, so that it does not wait for its servers.
fn cached(bench: &Bench) -> anyhow::Result<Figures> {
    let upstream = servers::upstream(&bench.paths);
    let up = bench.launcher.listen(&upstream.json, Seat::Upstream)?;
    let home = bench.launcher.new_folder();
    fs::create_dir_all(&home)?;
    let file = home.join("servers.json");
    let entry = json!({"type": "http", "url": format!("http://{}{}", up.address, servers::PATH)});
    let servers: Map<_, _> = (0..UPSTREAM_COUNT)
        .map(|number| (format!("up{number}"), entry.clone()))
        .collect();
    fs::write(&file, json!({"mcpServers": servers}).to_string())?;
    let arguments = [
        "serve",
        "--stdio",
        "--mcp-config",
        &file.display().to_string(),
    ];
    let program = Program::new(&bench.paths.plexus, &arguments);
    median_start(bench, &program, UPSTREAM_COUNT, Some(&home))
}

/// The median of several starts. If `home` is given, all of them use this folder, where a first
/// start fills the cache of tool lists.
fn median_start(
    bench: &Bench,
    program: &Program,
    tools: usize,
    home: Option<&Path>,
) -> anyhow::Result<Figures> {
    let cores = bench.launcher.affinity(Seat::Subject);
    if let Some(home) = home {
        let mut process = program.start(cores, home)?;
        let mut client = Client::connect(&mut process)?;
        let began = Instant::now();
        while client.count_tools()? < tools {
            ensure!(
                began.elapsed() < READY_TIMEOUT,
                "not all servers are connected"
            );
            pause(Duration::from_millis(20));
        }
    }
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < STARTS
        && (times.len() < MIN_STARTS || began.elapsed() < SLOW_STARTS_TIMEOUT)
    {
        let folder = bench.launcher.new_folder();
        let mut process = program.start(cores, home.unwrap_or(&folder))?;
        let started = process.started;
        let listed = Client::connect(&mut process)?.first_page()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(
            listed >= tools.min(MAX_PAGE_TOOLS),
            "{listed} tools instead of {tools}"
        );
    }
    Ok(figures([("ms", median(&mut times).unwrap_or_default())]))
}
