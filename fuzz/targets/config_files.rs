//! `.mcp.json` and `plexus.toml` of a project: reading them never panics.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plexus_mcp_config::{Locations, SETTINGS_FILE, load, load_settings};

/// The folder of a project, and of a user without files.
static PROJECT: LazyLock<PathBuf> = LazyLock::new(|| tempfile::tempdir().unwrap().keep());

fuzz_target!(|input: (&str, &str)| {
    let (servers, settings) = input;
    std::fs::write(PROJECT.join(".mcp.json"), servers).unwrap();
    std::fs::write(PROJECT.join(SETTINGS_FILE), settings).unwrap();
    let environment = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
    let locations = Locations::of(PROJECT.as_path(), &environment);
    let loaded = load(&locations, &environment);
    let _ = format!("{:?}", loaded.problems);
    let (_, problems) = load_settings(&locations);
    for problem in problems {
        let _ = problem.to_string();
    }
});
