//! Configuration files of other clients, in JSON with comments, TOML and YAML: reading one never panics
//! and never takes long.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plexus_mcp_config::clients::{Client, read};

fuzz_target!(|input: (u8, &str)| {
    let (number, text) = input;
    let clients = Client::ALL;
    let client = clients[usize::from(number) % clients.len()];
    let imported = read(client, Path::new("/home/user/file"), text);
    for server in &imported.servers {
        let _ = format!("{server:?}");
    }
    for problem in &imported.problems {
        let _ = problem.to_string();
    }
});
