//! Long lists, and many servers behind one gateway.

use std::fs;

use plexus_mcp_protocol::Era;
use serde_json::{Map, json};

use super::gateway::target;
use crate::bench::Bench;
use crate::gateways::HUB;
use crate::launcher::ListeningProcess;
use crate::limit;
use crate::load::http::{self, Target};
use crate::message::{Job, SIZES};
use crate::process::Program;
use crate::servers::{self, LIMIT, PATH};

pub(crate) const PART: &str = "lists";

const UPSTREAM_COUNT: usize = 20;
const TOOLS_PER_UPSTREAM: usize = 50;
const TOTAL_TOOLS: usize = UPSTREAM_COUNT * TOOLS_PER_UPSTREAM;
const UPSTREAM_COUNTS: [usize; 3] = [1, 10, 100];

pub(crate) fn list_point(concurrency: usize) -> String {
    format!("pages of tools/list, 1,000 tools of 20 upstreams, c={concurrency}")
}

pub(crate) fn count_point(upstreams: usize) -> String {
    format!("100 B echo over {upstreams} upstreams, c=16")
}

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    if let Err(error) = long_list(bench) {
        bench.measure(PART, &list_point(1), HUB, |_| Err(error));
    }
    for upstreams in UPSTREAM_COUNTS {
        bench.measure(PART, &count_point(upstreams), HUB, |bench| {
            let upstream = servers::upstream(&bench.paths);
            let up = bench
                .launcher
                .listen(&upstream.json, bench.launcher.cores.upstream)?;
            let hub = hub(bench, &up, upstreams)?;
            let job = Job::Echo {
                tools: (0..upstreams)
                    .map(|number| format!("up{number}__{}", upstream.tool))
                    .collect(),
                argument: "message".to_owned(),
                bytes: SIZES[0],
                with_progress: false,
            };
            let target = target(&hub, PATH, Era::Handshake);
            http::await_tools(&target, upstreams)?;
            bench.load(&target, &job, 16)
        });
    }
}

fn long_list(bench: &mut Bench) -> anyhow::Result<()> {
    let cores = bench.launcher.cores;
    let tools = TOOLS_PER_UPSTREAM.to_string();
    let arguments = ["many-tools", "127.0.0.1:{port}", &tools];
    let program = Program::new(&bench.paths.bench, &arguments);
    let upstream = bench.launcher.listen(&program, cores.upstream)?;
    let hub = hub(bench, &upstream, UPSTREAM_COUNT)?;
    let hub_target = target(&hub, PATH, Era::Handshake);
    let (pages, first) = http::await_tools(&hub_target, TOTAL_TOOLS)?;
    let job = Job::List { pages };

    let folder = bench.launcher.new_folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("answer.json");
    fs::write(&file, first)?;
    let file = file.display().to_string();
    let arguments = ["limit-http", "127.0.0.1:{port}", "--file", &file];
    let program = Program::new(&bench.paths.bench, &arguments);
    let limit = bench.launcher.listen(&program, cores.subject)?;
    let limit_target = Target {
        is_limit: true,
        ..target(&limit, limit::http::FILE, Era::Handshake)
    };
    for concurrency in [1, 16] {
        let point = list_point(concurrency);
        for (name, target) in [(LIMIT, &limit_target), (HUB, &hub_target)] {
            bench.measure(PART, &point, name, |bench| {
                bench.load(target, &job, concurrency)
            });
        }
    }
    Ok(())
}

/// Starts a hub with this many upstreams, which are all the same server.
fn hub(
    bench: &Bench,
    upstream: &ListeningProcess,
    upstreams: usize,
) -> anyhow::Result<ListeningProcess> {
    let url = format!("http://{}{PATH}", upstream.address);
    let entry = json!({"type": "http", "url": url, "era": "legacy"});
    let servers: Map<_, _> = (0..upstreams)
        .map(|number| (format!("up{number}"), entry.clone()))
        .collect();
    let folder = bench.launcher.new_folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("servers.json");
    fs::write(&file, json!({"mcpServers": servers}).to_string())?;
    let file = file.display().to_string();
    let arguments = ["serve", "--http", "127.0.0.1:{port}", "--mcp-config", &file];
    let program = Program::new(&bench.paths.plexus, &arguments);
    bench
        .launcher
        .listen(&program, bench.launcher.cores.subject)
}
