//! Metadata of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::bench::Effort;
use crate::placement::Cores;
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
    /// How long the run took.
    #[serde(default)]
    pub(crate) minutes: f64,
    /// The server behind the gateways.
    pub(crate) upstream: String,
    /// How each subject was built.
    #[serde(default)]
    pub(crate) builds: Vec<Build>,
    /// Rivals that are not measured, and why.
    pub(crate) missing: BTreeMap<String, String>,
}

/// How a subject was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) subject: String,
    pub(crate) version: String,
    pub(crate) command: String,
    /// The settings of the compiler, if it is compiled.
    pub(crate) profile: String,
}

impl Build {
    /// Reads lines with a subject, its version, its build command and its profile, separated by
    /// tabs.
    pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Self>> {
        let read = |line: &str| -> anyhow::Result<Self> {
            let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let [subject, version, command, profile] = <[String; 4]>::try_from(fields)
                .map_err(|fields| anyhow::anyhow!("{} fields instead of 4", fields.len()))?;
            Ok(Self {
                subject,
                version,
                command,
                profile,
            })
        };
        let lines = text.lines();
        lines
            .map(|line| read(line).with_context(|| format!("not a build: {line}")))
            .collect()
    }
}

impl RunMetadata {
    pub(crate) fn new(
        said: &[(String, String)],
        builds: Vec<Build>,
        effort: &Effort,
        paths: &ProgramPaths,
        cores: Cores,
        took: Duration,
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
            minutes: took.as_secs_f64() / 60.0,
            upstream: servers::upstream(paths).name.to_owned(),
            builds,
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

/// The rivals that the installer could not install, with the reasons.
pub(crate) fn missing(folder: &Path) -> BTreeMap<String, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_four_fields() {
        let lines = "rmcp\t3.8.0\tcargo build --release\topt-level 3\nnode\t1\tnpm ci\t\n";
        let builds = Build::read(lines).unwrap();
        assert_eq!(builds.len(), 2);
        assert_eq!(builds[0].profile, "opt-level 3");
        assert_eq!(builds[1].profile, "");
        let failed = Build::read("rmcp\t3.8.0\n").unwrap_err();
        assert_eq!(failed.to_string(), "not a build: rmcp\t3.8.0");
    }
}
