//! Long lists, and many servers behind one gateway.

use std::fs;

use serde_json::{Map, json};

use super::gateway::target;
use crate::bench::Bench;
use crate::gateways::HUB;
use crate::limit;
use crate::load::http::{self, Target};
use crate::message::{Era, Job, SIZES};
use crate::process::Program;
use crate::servers::{self, LIMIT, PATH};
use crate::stage::Listening;

pub(crate) const PART: &str = "lists";

const MEMBERS: usize = 20;
const TOOLS_OF_EACH: usize = 50;
const TOOLS: usize = MEMBERS * TOOLS_OF_EACH;
const COUNTS: [usize; 3] = [1, 10, 100];

pub(crate) fn list_point(concurrency: usize) -> String {
    format!("pages of tools/list, 1,000 tools of 20 upstreams, c={concurrency}")
}

pub(crate) fn count_point(upstreams: usize) -> String {
    format!("100 B echo over {upstreams} upstreams, c=16")
}

/// One round.
pub(crate) fn round(bench: &mut Bench) {
    if let Err(error) = long_list(bench) {
        bench.measure(PART, &list_point(1), HUB, |_| Err(error));
    }
    for upstreams in COUNTS {
        bench.measure(PART, &count_point(upstreams), HUB, |bench| {
            let upstream = servers::upstream(&bench.places);
            let up = bench
                .stage
                .listen(&upstream.json, bench.stage.cores.upstream)?;
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
    let cores = bench.stage.cores;
    let tools = TOOLS_OF_EACH.to_string();
    let arguments = ["many-tools", "127.0.0.1:{port}", &tools];
    let program = Program::new(&bench.places.bench, &arguments);
    let upstream = bench.stage.listen(&program, cores.upstream)?;
    let hub = hub(bench, &upstream, MEMBERS)?;
    let hub_target = target(&hub, PATH, Era::Handshake);
    let (pages, first) = http::await_tools(&hub_target, TOOLS)?;
    let job = Job::List { pages };

    let folder = bench.stage.new_folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("answer.json");
    fs::write(&file, first)?;
    let file = file.display().to_string();
    let arguments = ["limit-http", "127.0.0.1:{port}", "--file", &file];
    let program = Program::new(&bench.places.bench, &arguments);
    let limit = bench.stage.listen(&program, cores.subject)?;
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

/// A gateway with as many servers, which are all the same one.
fn hub(bench: &Bench, upstream: &Listening, members: usize) -> anyhow::Result<Listening> {
    let url = format!("http://{}{PATH}", upstream.address);
    let entry = json!({"type": "http", "url": url, "era": "legacy"});
    let servers: Map<_, _> = (0..members)
        .map(|number| (format!("up{number}"), entry.clone()))
        .collect();
    let folder = bench.stage.new_folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("servers.json");
    fs::write(&file, json!({"mcpServers": servers}).to_string())?;
    let file = file.display().to_string();
    let arguments = ["serve", "--http", "127.0.0.1:{port}", "--mcp-config", &file];
    let program = Program::new(&bench.places.plexus, &arguments);
    bench.stage.listen(&program, bench.stage.cores.subject)
}
