//! How long it takes from the start of a process until it has listed its tools over stdio.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Map, json};
use tokio::time::Instant;

use crate::bench::Bench;
use crate::load::PATIENCE;
use crate::load::stdio::Client;
use crate::process::{Program, pause};
use crate::results::{Figures, figures, median};
use crate::servers::{self, OURS};

pub(crate) const PART: &str = "start";
pub(crate) const ALONE: &str = "no upstream";
pub(crate) const CONFIGURED: &str = "100 upstreams, remembered";

/// How often a process is started in a round, and how often at least if that takes long.
const STARTS: usize = 11;
const LEAST_STARTS: usize = 3;
const LONG: Duration = Duration::from_secs(2);
const UPSTREAMS: usize = 100;
/// As many tools as a page has at most.
const PAGE: usize = 50;

/// One round.
pub(crate) fn round(bench: &mut Bench) {
    for server in servers::all(&bench.places) {
        if !server.is_limit() {
            bench.measure(PART, ALONE, server.name, |bench| {
                starts(bench, &server.stdio, 1, None)
            });
        }
    }
    bench.measure(PART, CONFIGURED, OURS, remembered);
}

/// A gateway that has seen all its servers before, so that it need not wait for any.
fn remembered(bench: &Bench) -> anyhow::Result<Figures> {
    let upstream = servers::upstream(&bench.places);
    let core = bench.stage.cores.upstream;
    let up = bench.stage.listen(&upstream.json, core)?;
    let home = bench.stage.new_folder();
    fs::create_dir_all(&home)?;
    let file = home.join("servers.json");
    let entry = json!({"type": "http", "url": format!("http://{}{}", up.address, servers::PATH)});
    let servers: Map<_, _> = (0..UPSTREAMS)
        .map(|number| (format!("up{number}"), entry.clone()))
        .collect();
    fs::write(&file, json!({"mcpServers": servers}).to_string())?;
    let arguments = [
        "serve",
        "--stdio",
        "--mcp-config",
        &file.display().to_string(),
    ];
    let program = Program::new(&bench.places.plexus, &arguments);
    starts(bench, &program, UPSTREAMS, Some(&home))
}

/// The median of some starts; in one folder, if it is given, where the lists are learned first.
fn starts(
    bench: &Bench,
    program: &Program,
    tools: usize,
    home: Option<&Path>,
) -> anyhow::Result<Figures> {
    let core = bench.stage.cores.subject;
    if let Some(home) = home {
        let mut process = program.start(core, home)?;
        let mut client = Client::greet(&mut process)?;
        let began = Instant::now();
        while client.count_tools()? < tools {
            ensure!(began.elapsed() < PATIENCE, "not all servers are connected");
            pause(Duration::from_millis(20));
        }
    }
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < STARTS && (times.len() < LEAST_STARTS || began.elapsed() < LONG) {
        let folder = bench.stage.new_folder();
        let mut process = program.start(core, home.unwrap_or(&folder))?;
        let started = process.started;
        let listed = Client::greet(&mut process)?.first_page()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(
            listed >= tools.min(PAGE),
            "{listed} tools instead of {tools}"
        );
    }
    Ok(figures([("ms", median(&mut times).unwrap_or_default())]))
}
