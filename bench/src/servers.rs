//! The servers that are measured.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use plexus_mcp_protocol::Era;

use crate::message::{Call, Job, TOOL};
use crate::process::Program;

/// The role of a subject in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The baseline: what the machine can do.
    Limit,
    Ours,
    Rival,
}

/// The paths of all programs that are started.
#[derive(Debug, Clone)]
pub(crate) struct ProgramPaths {
    /// This program, which also implements the limits.
    pub(crate) bench: PathBuf,
    /// The server made with our library.
    pub(crate) server: PathBuf,
    /// The `plexus` binary.
    pub(crate) plexus: PathBuf,
    /// The folder with the installed rivals, if there is one.
    pub(crate) rivals: Option<PathBuf>,
    /// Whether rivals are measured.
    pub(crate) compares: bool,
}

/// A server with the tool [`TOOL`].
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// The command line with `{port}`, for answers in JSON if the server supports that.
    pub(crate) json: Program,
    /// The command line for answers as event streams.
    pub(crate) stream: Program,
    pub(crate) stdio: Program,
    eras: &'static [Era],
    /// The eras in which it answers with event streams, if the tool reports its progress.
    streams: &'static [Era],
}

pub(crate) const PATH: &str = "/mcp";
pub(crate) const LIMIT: &str = "limit";
/// The server made with our library.
pub(crate) const OURS: &str = "plexus";
/// The program with its built-in tools.
pub(crate) const SERVE: &str = "plexus serve";
const BOTH_ERAS: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE_ERA: &[Era] = &[Era::Handshake];
const STATELESS_ERA: &[Era] = &[Era::Stateless];

impl Server {
    /// Whether it supports `era`, and answers in this form.
    pub(crate) fn takes_part(&self, era: Era, is_stream: bool) -> bool {
        let eras = if is_stream { self.streams } else { self.eras };
        eras.contains(&era)
    }

    pub(crate) fn is_rival(&self) -> bool {
        self.role == Role::Rival
    }

    pub(crate) fn is_limit(&self) -> bool {
        self.role == Role::Limit
    }
}

/// The limit, ours, and the installed rivals.
pub(crate) fn all(paths: &ProgramPaths) -> Vec<Server> {
    let mut servers = vec![limit(paths), ours(paths)];
    if paths.compares {
        servers.extend(paths.rivals.iter().flat_map(|folder| rivals(folder)));
    }
    servers
}

pub(crate) fn ours(paths: &ProgramPaths) -> Server {
    let http = Program::new(&paths.server, &["http", "{port}"]);
    Server {
        name: OURS,
        role: Role::Ours,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&paths.server, &["stdio"]),
        eras: BOTH_ERAS,
        streams: BOTH_ERAS,
    }
}

/// `plexus serve` without other servers: what users run, but without an ordinary tool.
pub(crate) fn serve(paths: &ProgramPaths) -> Server {
    let http = Program::new(&paths.plexus, &["serve", "--http", "127.0.0.1:{port}"]);
    Server {
        name: SERVE,
        role: Role::Ours,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&paths.plexus, &["serve", "--stdio"]),
        eras: BOTH_ERAS,
        streams: BOTH_ERAS,
    }
}

/// The rival whose server is behind the measured gateways: the best one, since every gateway can use
/// it.
const UPSTREAM: &str = "rmcp";

/// The server behind the measured gateways; ours if there is no folder with rivals.
pub(crate) fn upstream(paths: &ProgramPaths) -> Server {
    let mut rivals = paths.rivals.iter().flat_map(|folder| rivals(folder));
    rivals
        .find(|rival| rival.name == UPSTREAM)
        .unwrap_or_else(|| ours(paths))
}

/// Checks that a folder with rivals has the one behind the gateways: with another server there, the
/// figures could not be compared with those of other runs.
pub(crate) fn check_upstream(paths: &ProgramPaths) -> anyhow::Result<()> {
    ensure!(
        paths.rivals.is_none() || upstream(paths).name == UPSTREAM,
        "the server behind the gateways is not installed: run bench/rivals/install {UPSTREAM}"
    );
    Ok(())
}

/// Calls of the tool of a server.
pub(crate) fn call(bytes: usize, is_stream: bool) -> Job {
    Job::Call(Call {
        with_progress: is_stream,
        ..Call::new(TOOL, bytes)
    })
}

fn limit(paths: &ProgramPaths) -> Server {
    let http = Program::new(&paths.bench, &["limit-http", "127.0.0.1:{port}"]);
    Server {
        name: LIMIT,
        role: Role::Limit,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&paths.bench, &["limit-echo"]),
        eras: BOTH_ERAS,
        streams: BOTH_ERAS,
    }
}

/// Each is a small program of ours that uses a third-party library; all are started in the same
/// way.
fn rivals(folder: &Path) -> Vec<Server> {
    let compiled = |name: &str| {
        let program = folder.join("bin").join(format!("{name}-repeat"));
        program.exists().then(|| Program::new(program, &[]))
    };
    let script = |interpreter: PathBuf, script: &str| {
        let script = folder.join(script);
        let start = |script: &Path| Program::new(interpreter, &[&script.display().to_string()]);
        script.exists().then(|| start(&script))
    };
    let typescript = script("node".into(), "node/typescript.mjs");
    let python = script(folder.join("python/bin/python"), "python/repeat_server.py");
    let rivals = [
        ("rmcp", compiled("rmcp"), BOTH_ERAS, BOTH_ERAS),
        (
            "turbomcp",
            compiled("turbomcp"),
            HANDSHAKE_ERA,
            HANDSHAKE_ERA,
        ),
        ("tower-mcp", compiled("tower-mcp"), BOTH_ERAS, STATELESS_ERA),
        ("TypeScript SDK", typescript, BOTH_ERAS, BOTH_ERAS),
        ("Python SDK", python, BOTH_ERAS, BOTH_ERAS),
    ];
    let server = |(name, program, eras, streams): (_, Option<Program>, _, _)| {
        let program = program?;
        let http = program.and(&["http", "{port}"]);
        Some(Server {
            name,
            role: Role::Rival,
            json: http.and(&["json"]),
            stream: http.and(&["stream"]),
            stdio: program.and(&["stdio"]),
            eras,
            streams,
        })
    };
    rivals.into_iter().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_upstream_is_ours_only_without_a_folder_of_rivals() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = ProgramPaths {
            bench: "bench".into(),
            server: "server".into(),
            plexus: "plexus".into(),
            rivals: None,
            compares: true,
        };
        check_upstream(&paths).unwrap();
        assert_eq!(upstream(&paths).name, OURS);
        paths.rivals = Some(folder.path().to_owned());
        let failed = check_upstream(&paths).unwrap_err().to_string();
        assert!(
            failed.ends_with("run bench/rivals/install rmcp"),
            "{failed}"
        );
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/rmcp-repeat"), "").unwrap();
        check_upstream(&paths).unwrap();
        assert_eq!(upstream(&paths).name, UPSTREAM);
    }
}
