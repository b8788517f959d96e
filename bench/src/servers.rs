//! The servers that are measured.

use std::path::{Path, PathBuf};

use crate::message::{Era, Job};
use crate::process::Program;

/// Who somebody is in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// What the machine can do.
    Limit,
    Ours,
    Rival,
}

/// Where everything that is started lies.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// This program, which is also the limits.
    pub(crate) bench: PathBuf,
    /// The product.
    pub(crate) plexus: PathBuf,
    /// Where rivals are installed, if they are.
    pub(crate) rivals: Option<PathBuf>,
    /// Whether they are measured, too.
    pub(crate) compares: bool,
}

/// A server that says back what it is told.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// Started with `{port}`; answers in JSON, if it can.
    pub(crate) json: Program,
    /// The same for event streams.
    pub(crate) stream: Program,
    pub(crate) stdio: Program,
    eras: &'static [Era],
    /// In which of them it answers with event streams, if it is told to.
    streams: &'static [Era],
    pub(crate) tool: &'static str,
    /// A tool that makes it stream, if that is up to the tool.
    pub(crate) streaming_tool: Option<&'static str>,
}

pub(crate) const PATH: &str = "/mcp";
pub(crate) const LIMIT: &str = "limit";
pub(crate) const OURS: &str = "plexus";
const BOTH: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE: &[Era] = &[Era::Handshake];
const NONE: &[Era] = &[];

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

    /// Whether it speaks `era`, and answers in this form.
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

/// The limit, ours, and those rivals that are installed.
pub(crate) fn all(places: &Places) -> Vec<Server> {
    let mut servers = vec![limit(places), ours(places)];
    if places.compares {
        servers.extend(places.rivals.iter().flat_map(|folder| rivals(folder)));
    }
    servers
}

pub(crate) fn ours(places: &Places) -> Server {
    let http = Program::new(&places.plexus, &["serve", "--http", "127.0.0.1:{port}"]);
    Server {
        name: OURS,
        role: Role::Ours,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&places.plexus, &["serve", "--stdio"]),
        eras: BOTH,
        streams: BOTH,
        tool: "echo_once",
        streaming_tool: Some("echo_echo"),
    }
}

/// The server behind the gateways that are measured: the best rival's, as every gateway can use
/// it, and ours only where there are no rivals.
pub(crate) fn upstream(places: &Places) -> Server {
    let mut rivals = places.rivals.iter().flat_map(|folder| rivals(folder));
    rivals
        .find(|rival| rival.name == "rmcp")
        .unwrap_or_else(|| ours(places))
}

fn limit(places: &Places) -> Server {
    let http = Program::new(&places.bench, &["limit-http", "127.0.0.1:{port}"]);
    Server {
        name: LIMIT,
        role: Role::Limit,
        json: http.clone(),
        stream: http,
        stdio: Program::new(&places.bench, &["limit-echo"]),
        eras: BOTH,
        streams: BOTH,
        tool: "echo",
        streaming_tool: None,
    }
}

/// All of them are small programs of ours around somebody else's library, and are started alike.
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
        ("rmcp", compiled("rmcp"), BOTH, BOTH),
        ("turbomcp", compiled("turbomcp"), HANDSHAKE, NONE),
        ("tower-mcp", compiled("tower-mcp"), BOTH, BOTH),
        ("TypeScript SDK", typescript, BOTH, BOTH),
        ("Python SDK", python, BOTH, HANDSHAKE),
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
