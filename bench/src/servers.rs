//! The servers that are measured.

use std::path::{Path, PathBuf};

use plexus_mcp_protocol::Era;

use crate::message::Job;
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
    /// The `plexus` binary.
    pub(crate) plexus: PathBuf,
    /// The folder with the installed rivals, if there is one.
    pub(crate) rivals: Option<PathBuf>,
    /// Whether rivals are measured.
    pub(crate) compares: bool,
}

/// An echo server.
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
    /// The eras in which it answers with event streams, if configured so.
    streams: &'static [Era],
    pub(crate) tool: &'static str,
    /// The echo tool that streams, if the tool decides that.
    pub(crate) streaming_tool: Option<&'static str>,
}

pub(crate) const PATH: &str = "/mcp";
pub(crate) const LIMIT: &str = "limit";
pub(crate) const OURS: &str = "plexus";
const BOTH_ERAS: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE_ERA: &[Era] = &[Era::Handshake];
const NO_ERAS: &[Era] = &[];

impl Server {
    pub(crate) fn echo(&self, bytes: usize, is_stream: bool) -> Job {
        let streaming = self.streaming_tool.filter(|_| is_stream);
        Job::Echo {
            tools: vec![streaming.unwrap_or(self.tool).to_owned()],
            argument: "message".to_owned(),
            bytes,
            with_progress: streaming.is_some(),
        }
    }

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
    let http = Program::new(&paths.plexus, &["serve", "--http", "127.0.0.1:{port}"]);
    Server {
        name: OURS,
        role: Role::Ours,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&paths.plexus, &["serve", "--stdio"]),
        eras: BOTH_ERAS,
        streams: BOTH_ERAS,
        tool: "echo_once",
        streaming_tool: Some("echo_echo"),
    }
}

/// The server behind the measured gateways: the best rival's, since every gateway can use it; ours
/// if there are no rivals.
pub(crate) fn upstream(paths: &ProgramPaths) -> Server {
    let mut rivals = paths.rivals.iter().flat_map(|folder| rivals(folder));
    rivals
        .find(|rival| rival.name == "rmcp")
        .unwrap_or_else(|| ours(paths))
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
        tool: "echo",
        streaming_tool: None,
    }
}

/// Each is a small program of ours that uses a third-party library; all are started in the same
/// way.
fn rivals(folder: &Path) -> Vec<Server> {
    let compiled = |name: &str| {
        let program = folder.join("bin").join(format!("{name}-echo"));
        program.exists().then(|| Program::new(program, &[]))
    };
    let script = |interpreter: PathBuf, script: &str| {
        let script = folder.join(script);
        let start = |script: &Path| Program::new(interpreter, &[&script.display().to_string()]);
        script.exists().then(|| start(&script))
    };
    let typescript = script("node".into(), "node/typescript.mjs");
    let python = script(folder.join("python/bin/python"), "python/echo_server.py");
    let rivals = [
        ("rmcp", compiled("rmcp"), BOTH_ERAS, BOTH_ERAS),
        ("turbomcp", compiled("turbomcp"), HANDSHAKE_ERA, NO_ERAS),
        ("tower-mcp", compiled("tower-mcp"), BOTH_ERAS, BOTH_ERAS),
        ("TypeScript SDK", typescript, BOTH_ERAS, BOTH_ERAS),
        ("Python SDK", python, BOTH_ERAS, HANDSHAKE_ERA),
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
            tool: "echo",
            streaming_tool: None,
        })
    };
    rivals.into_iter().filter_map(server).collect()
}
