//! Checks of the programs that servers are started with.

use std::path::{Path, PathBuf};

use plexus_mcp_config::{Kind, ServerEntry, Text, Value};

use super::Finding;
use crate::process_env::environment;

/// Folders below the home folder where version managers install programs. A shell's profile adds
/// them to PATH, but programs started from a desktop do not see that PATH.
const MANAGED: [&str; 10] = [
    ".nvm/versions/node/*/bin",
    ".fnm/node-versions/*/installation/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".pyenv/shims",
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
];

pub(super) fn check(server: &ServerEntry) -> Vec<Finding> {
    let Kind::Stdio {
        command, env, cwd, ..
    } = &server.kind
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        let what = format!("the folder {} does not exist", cwd.display());
        let fix = format!(
            "create it, or change \"cwd\" in {}",
            server.source.file.display()
        );
        findings.push(Finding::error("cwd", what).fix(fix));
    }
    if command.expanded().contains('/') {
        let cwd = cwd.as_deref().unwrap_or(Path::new(""));
        let file = cwd.join(command.expanded());
        // The value of a variable may be a secret.
        let shown = if command.written() == command.expanded() {
            file.display().to_string()
        } else {
            command.written().to_owned()
        };
        findings.extend(check_file(&file, &shown));
    } else {
        let own = env.iter().find(|(name, _)| name == "PATH");
        let own = own.and_then(|(_, value)| match value {
            Value::Known(path) => Some(path.expose().to_owned()),
            Value::Fetched { .. } => None,
        });
        findings.extend(check_name(command, own));
    }
    findings
        .into_iter()
        .map(|finding| finding.of(&server.name))
        .collect()
}

/// Checks a program that is given by its path.
fn check_file(file: &Path, shown: &str) -> Option<Finding> {
    if !file.exists() {
        let what = format!("there is no program {shown}");
        return Some(Finding::error("command", what).fix("correct \"command\", or install it"));
    }
    if file.is_dir() {
        let what = format!("{shown} is a directory");
        return Some(Finding::error("command", what).fix("name a program in \"command\""));
    }
    if !is_executable(file) {
        let what = format!("{shown} cannot be run");
        return Some(Finding::error("command", what).fix(format!("chmod +x {shown}")));
    }
    None
}

/// Checks a program that is looked up in PATH. `own` is the PATH that the server's definition sets;
/// the server itself is looked up in it as well.
fn check_name(command: &Text, own: Option<String>) -> Option<Finding> {
    let (written, command) = (command.written(), command.expanded());
    let path = own.or_else(|| environment("PATH")).unwrap_or_default();
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&path) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let found = folders
        .iter()
        .find(|folder| is_executable(&folder.join(command)));
    let home = environment("HOME").map(PathBuf::from);
    let is_shown = written == command;
    let Some(found) = found else {
        let searched: Vec<_> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let what = format!(
            "there is no program {written:?} in PATH; searched: {}",
            searched.join(", ")
        );
        let elsewhere = home.iter().flat_map(|home| managed(home));
        let elsewhere = elsewhere
            .map(|folder| folder.join(command))
            .find(|file| is_shown && is_executable(file));
        let fix = match elsewhere {
            Some(file) => format!(
                "it is at {}: give that as \"command\", since programs that are not started from \
                 your shell do not see its PATH",
                file.display()
            ),
            None => install(command),
        };
        return Some(Finding::error("command", what).fix(fix));
    };
    let is_managed = home
        .iter()
        .flat_map(|home| managed(home))
        .any(|folder| folder == *found);
    (is_managed && is_shown).then(|| {
        let file = found.join(command);
        let what = format!(
            "{} is found by your shell's PATH only: desktop programs will not see it",
            file.display()
        );
        let fix = format!(
            "give {} as \"command\" if a desktop program starts Plexus",
            file.display()
        );
        Finding::note("path", what).fix(fix)
    })
}

/// Whether there is a program of this name in the PATH of this process.
pub(crate) fn is_in_path(command: &str) -> bool {
    let path = environment("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_executable(&folder.join(command)))
}

/// The existing folders of version managers.
fn managed(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in MANAGED {
        match pattern.split_once("/*/") {
            None => found.push(home.join(pattern)),
            Some((before, after)) => {
                let versions = std::fs::read_dir(home.join(before)).into_iter().flatten();
                let versions = versions.flatten().map(|version| version.path().join(after));
                found.extend(versions);
            }
        }
    }
    found
}

fn install(command: &str) -> String {
    let from = match command {
        "npx" | "npm" | "node" => "Node.js, from https://nodejs.org",
        "uvx" | "uv" => "uv, from https://docs.astral.sh/uv",
        "bunx" | "bun" => "Bun, from https://bun.sh",
        "deno" => "Deno, from https://deno.com",
        "docker" => "Docker, from https://docs.docker.com",
        "python" | "python3" | "pip" | "pipx" => "Python, from https://www.python.org",
        _ => "it, or give the path of the program as \"command\"",
    };
    format!("install {from}")
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let is_runnable = |metadata: std::fs::Metadata| {
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    };
    std::fs::metadata(file).is_ok_and(is_runnable)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    let with = |ending: &str| file.with_extension(ending).is_file();
    file.is_file() || ["exe", "cmd", "bat"].into_iter().any(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_version_managers_are_found() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join(".nvm/versions/node/v22.1.0/bin");
        std::fs::create_dir_all(&bin).unwrap();
        assert!(managed(home.path()).contains(&bin));
    }
}
