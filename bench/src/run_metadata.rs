//! Metadata of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bench::Effort;
use crate::process::Cores;
use crate::results::without_folders;
use crate::servers::{self, ProgramPaths};

/// The facts that are needed to compare a run with another one. None of them identifies the
/// machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RunMetadata {
    /// Facts given on the command line: date, commit, compiler.
    pub(crate) said: BTreeMap<String, String>,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) rounds: usize,
    pub(crate) window_ms: u128,
    /// The server behind the gateways.
    pub(crate) upstream: String,
    /// The versions of the rivals, by their names.
    #[serde(default)]
    pub(crate) rivals: BTreeMap<String, String>,
    /// Rivals that are not measured, and why.
    pub(crate) missing: BTreeMap<String, String>,
}

impl RunMetadata {
    pub(crate) fn new(
        said: &[(String, String)],
        effort: &Effort,
        paths: &ProgramPaths,
        cores: Cores,
    ) -> Self {
        Self {
            said: said.iter().cloned().collect(),
            processor: line_of("/proc/cpuinfo", "model name"),
            cores: cores.count,
            memory_mib: line_of("/proc/meminfo", "MemTotal")
                .trim_end_matches(" kB")
                .parse()
                .map_or(0, |kib: u64| kib / 1024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| String::new(), |text| text.trim().to_owned()),
            rounds: effort.rounds,
            window_ms: effort.window.as_millis(),
            upstream: servers::upstream(paths).name.to_owned(),
            rivals: paths.rivals.as_deref().map(versions).unwrap_or_default(),
            missing: paths.rivals.as_deref().map(missing).unwrap_or_default(),
        }
    }
}

/// The value of the first line of `file` that begins with `name`.
fn line_of(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}

/// The versions that the installer recorded.
fn versions(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("versions")).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect()
}

/// The rivals that the installer could not install.
fn missing(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            let is_reason = path.extension()? == "missing";
            let name = path.file_stem()?.to_str()?.to_owned();
            let reason = without_folders(fs::read_to_string(&path).ok()?.trim());
            is_reason.then_some((name, reason))
        })
        .collect()
}
