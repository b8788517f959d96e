//! Starts `plexus serve` in front of servers on HTTP.

use std::fs;

use serde_json::{Map, Value, json};

use crate::bench::Bench;
use crate::launcher::ListeningProcess;
use crate::placement::Seat;
use crate::process::Program;
use crate::servers::PATH;

/// Definitions of `count` servers named `up0`, `up1` …, all of them at this process.
pub(crate) fn definitions(upstream: &ListeningProcess, count: usize) -> Map<String, Value> {
    let url = format!("http://{}{PATH}", upstream.address);
    let entry = json!({"type": "http", "url": url, "era": "legacy"});
    (0..count)
        .map(|number| (format!("up{number}"), entry.clone()))
        .collect()
}

/// Starts `plexus serve` with these servers, and these settings of the user in `plexus.toml`.
pub(crate) fn start(
    bench: &Bench,
    servers: Map<String, Value>,
    settings: &str,
) -> anyhow::Result<ListeningProcess> {
    let folder = bench.launcher.new_folder();
    fs::create_dir_all(folder.join("plexus"))?;
    fs::write(folder.join("plexus/plexus.toml"), settings)?;
    let file = folder.join("servers.json");
    let config = Value::Object(Map::from_iter([(
        "mcpServers".to_owned(),
        Value::Object(servers),
    )]));
    fs::write(&file, config.to_string())?;
    let file = file.display().to_string();
    let arguments = ["serve", "--http", "127.0.0.1:{port}", "--mcp-config", &file];
    let mut program = Program::new(&bench.paths.plexus, &arguments);
    let config_home = folder.display().to_string();
    program.environment = vec![("XDG_CONFIG_HOME".to_owned(), config_home)];
    bench.launcher.listen(&program, Seat::Subject)
}
