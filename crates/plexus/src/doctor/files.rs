//! Checks of configuration files, of secrets in them, and of the data folder.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use plexus_mcp_config::edit::Document;
use plexus_mcp_config::{Loaded, Locations, SERVER_KEYS, Scope, ServerEntry};
use plexus_mcp_core::{Raw, is_secret_name};
use plexus_mcp_hub::names::{MAX_NAME_CHARS, Names};
use serde_json::Value;

use super::{Finding, Severity};
use crate::data;
use crate::suggest::alike;
use crate::trust::{self, Approvals};

/// Keys of other clients, and our names for them.
const FOREIGN_KEYS: [(&str, &str); 7] = [
    ("environment", "env"),
    ("timeout", "timeout_ms"),
    ("autoRestart", "auto_restart"),
    ("startup_timeout_sec", "startup_timeout"),
    ("envFile", "env_file"),
    ("includeTools", "allow"),
    ("excludeTools", "deny"),
];

/// Cursor's key for the client id and secret.
const CURSOR_AUTH: &str = "auth";

pub(super) fn check(loaded: &Loaded, locations: &Locations) -> Vec<Finding> {
    let mut findings: Vec<_> = loaded.problems.iter().map(problem).collect();
    let mut first: HashMap<String, PathBuf> = HashMap::new();
    for source in locations.sources() {
        let Ok(document) = Document::open(&source.file) else {
            // The file is reported with the other problems.
            continue;
        };
        let mut secrets = Vec::new();
        for (name, definition) in document.servers() {
            secrets.extend(written_secrets(name, definition));
            if let Some(file) = first.get(name) {
                let what = format!(
                    "{} has it too, but {} has precedence",
                    source.file.display(),
                    file.display()
                );
                let finding = Finding::note("shadowed", what).of(name);
                findings.push(finding.fix("remove the one that is not wanted: plexus mcp remove"));
            } else {
                first.insert(name.to_owned(), source.file.clone());
            }
        }
        if !secrets.is_empty() {
            findings.extend(exposed(&source.file, source.scope, &secrets));
        }
    }
    for server in &loaded.servers {
        findings.extend(slips(server));
        findings.extend(long_name(server));
    }
    findings.extend(unapproved(loaded, locations));
    findings.extend(data_folder());
    findings
}

/// Warns of settings files of the project whose rules wait for approval.
fn unapproved(loaded: &Loaded, locations: &Locations) -> Vec<Finding> {
    // Approvals that cannot be read are reported when the servers are opened.
    let approvals = data::directory().and_then(|data| Approvals::read(&data));
    let Ok(approvals) = approvals else {
        return Vec::new();
    };
    let policy = &loaded.settings.policy;
    let files = trust::rules::unapproved(&approvals, &locations.project_dir, policy).into_iter();
    let findings = files.map(|problem| Finding {
        severity: Severity::Warning,
        ..self::problem(&problem)
    });
    findings.collect()
}

fn problem(problem: &plexus_mcp_config::ConfigProblem) -> Finding {
    let check = if problem.is_about_environment() {
        "variable"
    } else {
        "config"
    };
    let file = problem.file.display();
    let place = match problem.position {
        Some(position) => format!("{file}:{}:{}", position.line, position.column),
        None => file.to_string(),
    };
    let key = problem.key.as_deref().map(|key| format!(": {key}"));
    let what = format!("{place}{}: {}", key.unwrap_or_default(), problem.what);
    let mut finding = Finding::error(check, what);
    finding.server = problem.server.as_deref().map(str::to_owned);
    let key = problem.key.as_deref();
    let correct = match (key, problem.position) {
        (Some(key), Some(position)) => format!("correct {key} at {file}:{}", position.line),
        (None, Some(position)) => format!("correct {file}:{}", position.line),
        (Some(key), None) => format!("correct {key} in {file}"),
        (None, None) => format!("edit {file}"),
    };
    let fix = match &problem.advice {
        Some(advice) if problem.position.is_some() => format!("{correct}; {advice}"),
        Some(advice) => advice.to_string(),
        None if problem.is_about_environment() => {
            "set it where Plexus is started (desktop programs do not read your shell's profile), \
             or write ${NAME:-default}"
                .to_owned()
        }
        None => correct,
    };
    finding.fix(fix)
}

/// Unknown keys that look like misspelled ones.
fn slips(server: &ServerEntry) -> Vec<Finding> {
    let unknown = server.other.iter().map(|(key, _)| key);
    let slips = unknown.filter_map(|key| {
        if key == CURSOR_AUTH {
            return Some(cursor_auth(server));
        }
        let foreign = FOREIGN_KEYS.iter().find(|(foreign, _)| *foreign == key);
        let meant = if let Some((_, ours)) = foreign {
            ours
        } else {
            let known = SERVER_KEYS.iter().map(|known| known.name);
            alike(key, known.chain(["oauth"])).into_iter().next()?
        };
        let what = format!("the key {key:?} means nothing here");
        let fix = format!("write {meant:?} in {}", server.source.file.display());
        Some(Finding::warning("key", what).of(&server.name).fix(fix))
    });
    slips.collect()
}

/// The finding about Cursor's key for signing in, whose members have other names than ours.
fn cursor_auth(server: &ServerEntry) -> Finding {
    let file = server.source.file.display();
    let what = format!("the key {CURSOR_AUTH:?} is Cursor's, and means nothing here");
    let fix = format!(
        "write \"oauth\": {{\"clientId\": …, \"clientSecret\": …}} with its CLIENT_ID and \
         CLIENT_SECRET in {file}, or only remove it: most servers need no client id"
    );
    Finding::warning("key", what).of(&server.name).fix(fix)
}

/// Warns of server names that leave little room for tool names.
fn long_name(server: &ServerEntry) -> Option<Finding> {
    /// The shortest tool name that must fit behind the server's name.
    const MIN_TOOL_NAME_CHARS: usize = 20;
    let prefix = Names::default().add(server.name.as_str(), "", ());
    if prefix.len() + MIN_TOOL_NAME_CHARS <= MAX_NAME_CHARS {
        return None;
    }
    let what = format!("the name is so long that names of its tools are cut to {MAX_NAME_CHARS}");
    let finding = Finding::warning("name", what).of(&server.name);
    Some(finding.fix("give it a shorter name"))
}

/// Values that look like secrets and are written in plain text.
fn written_secrets(name: &str, definition: &Raw) -> Vec<String> {
    let definition: Value = definition.decode().unwrap_or_default();
    let groups = ["env", "headers"].into_iter();
    let values = groups.flat_map(|group| {
        let values = definition.get(group).and_then(Value::as_object);
        values
            .into_iter()
            .flatten()
            .map(move |value| (group, value))
    });
    values
        .filter(|(_, (key, value))| {
            let is_written = |text: &str| !text.is_empty() && !text.contains("${");
            is_secret_name(key) && value.as_str().is_some_and(is_written)
        })
        .map(|(group, (key, _))| format!("{name}: {group}.{key}"))
        .collect()
}

/// Secrets in files that other users can read, or that are shared.
fn exposed(file: &Path, scope: Scope, secrets: &[String]) -> Option<Finding> {
    let secrets = secrets.join(", ");
    let shown = file.display();
    if scope == Scope::Project {
        let what = format!("{shown} is shared with others, and holds secrets ({secrets})");
        let finding = Finding::warning("secret", what);
        return Some(finding.fix("write ${NAME} instead, and set NAME in your environment"));
    }
    let others = others_can(file)?;
    let what = format!("{others} can read {shown}, which holds secrets ({secrets})");
    Some(Finding::warning("permissions", what).fix(format!("chmod 600 {shown}")))
}

/// Checks that the data folder is usable and private.
fn data_folder() -> Option<Finding> {
    let folder = match data::directory() {
        Ok(folder) => folder,
        Err(error) => return Some(Finding::error("data", format!("{error:#}"))),
    };
    if let Err(error) = data::open() {
        let what = format!("the database cannot be used: {error:#}");
        let fix = format!("see to it that {} can be written", folder.display());
        return Some(Finding::error("data", what).fix(fix));
    }
    // Other users who may enter the folder see names only.
    let files = fs::read_dir(&folder)
        .ok()?
        .flatten()
        .map(|file| file.path());
    let (file, others) = files
        .filter(|file| file.is_file())
        .find_map(|file| Some((file.clone(), others_can(&file)?)))?;
    let what = format!(
        "{others} can read a file of the data folder: {}",
        file.display()
    );
    let fix = format!("chmod -R go-rwx {}", folder.display());
    Some(Finding::warning("permissions", what).fix(fix))
}

/// The other users who can read it, if any.
#[cfg(unix)]
fn others_can(path: &Path) -> Option<&'static str> {
    use std::os::unix::fs::PermissionsExt;

    let mode = fs::metadata(path).ok()?.permissions().mode();
    match (mode & 0o004 != 0, mode & 0o040 != 0) {
        (true, _) => Some("everybody on this machine"),
        (false, true) => Some("your group"),
        (false, false) => None,
    }
}

#[cfg(not(unix))]
fn others_can(_path: &Path) -> Option<&'static str> {
    None
}
