//! Long lists, and many servers behind one gateway.

use std::fs;

use plexus_mcp_protocol::Era;

use super::gateway::target;
use crate::bench::Bench;
use crate::limit;
use crate::load::http::{self, Target};
use crate::message::{Call, Job, SIZES, TOOL};
use crate::placement::Seat;
use crate::process::Program;
use crate::serve;
use crate::servers::{self, LIMIT, PATH, SERVE};

pub(crate) const PART: &str = "lists";

const UPSTREAM_COUNT: usize = 20;
const TOOLS_PER_UPSTREAM: usize = 50;
const TOTAL_TOOLS: usize = UPSTREAM_COUNT * TOOLS_PER_UPSTREAM;
const UPSTREAM_COUNTS: [usize; 3] = [1, 10, 100];

fn list_point(concurrency: usize) -> String {
    format!("pages of tools/list, 1,000 tools of 20 upstreams, c={concurrency}")
}

fn count_point(upstreams: usize) -> String {
    format!("calls with 100 B over {upstreams} upstreams, c=16")
}

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    if let Err(error) = long_list(bench) {
        bench.measure(PART, &list_point(1), SERVE, |_| Err(error));
    }
    for upstreams in UPSTREAM_COUNTS {
        bench.measure(PART, &count_point(upstreams), SERVE, |bench| {
            let upstream = servers::upstream(&bench.paths);
            let up = bench.launcher.listen(&upstream.json, Seat::Upstream)?;
            let gateway = serve::start(bench, serve::definitions(&up, upstreams), "")?;
            let job = Job::Call(Call {
                tools: (0..upstreams)
                    .map(|number| format!("up{number}__{TOOL}"))
                    .collect(),
                ..Call::new(TOOL, SIZES[0])
            });
            let target = target(&gateway, PATH, Era::Handshake);
            http::await_tools(&target, upstreams)?;
            bench.load(&target, &job, 16)
        });
    }
}

fn long_list(bench: &mut Bench) -> anyhow::Result<()> {
    let tools = TOOLS_PER_UPSTREAM.to_string();
    let arguments = ["many-tools", "127.0.0.1:{port}", &tools];
    let program = Program::new(&bench.paths.bench, &arguments);
    let upstream = bench.launcher.listen(&program, Seat::Upstream)?;
    let gateway = serve::start(bench, serve::definitions(&upstream, UPSTREAM_COUNT), "")?;
    let gateway_target = target(&gateway, PATH, Era::Handshake);
    let (pages, first) = http::await_tools(&gateway_target, TOTAL_TOOLS)?;
    let job = Job::List { pages };

    let folder = bench.launcher.new_folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("answer.json");
    fs::write(&file, first)?;
    let file = file.display().to_string();
    let arguments = ["limit-http", "127.0.0.1:{port}", "--file", &file];
    let program = Program::new(&bench.paths.bench, &arguments);
    let limit = bench.launcher.listen(&program, Seat::Subject)?;
    let limit_target = Target {
        has_sessions: false,
        is_fixed: true,
        ..target(&limit, limit::http::FILE, Era::Handshake)
    };
    for concurrency in [1, 16] {
        let point = list_point(concurrency);
        for (name, target) in [(LIMIT, &limit_target), (SERVE, &gateway_target)] {
            bench.measure(PART, &point, name, |bench| {
                bench.load(target, &job, concurrency)
            });
        }
    }
    Ok(())
}
