//! The gateways that are measured.

use std::path::Path;

use crate::message::Era;
use crate::process::Program;
use crate::servers::Places;

/// How a gateway reaches the server behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    Http,
    Stdio,
}

impl Behind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP upstream",
            Self::Stdio => "stdio upstream",
        }
    }
}

/// A gateway in front of one server.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) name: &'static str,
    pub(crate) behind: Behind,
    /// Started with `{port}`, and `{url}` or the upstream's command at the end.
    pub(crate) program: Program,
    pub(crate) path: &'static str,
    /// The eras of its clients.
    pub(crate) clients: &'static [Era],
    /// Whether it can be told which era to speak to its server, and is then started with
    /// `--server-era`.
    pub(crate) chooses: bool,
    /// What it puts before the names of tools.
    pub(crate) prefix: &'static str,
    /// Where it has its server from a file, with `{config}` for it.
    pub(crate) is_configured: bool,
}

pub(crate) const BRIDGE: &str = "plexus bridge";
pub(crate) const HUB: &str = "plexus serve";
const BOTH: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE: &[Era] = &[Era::Handshake];

/// Ours, and those rivals that are installed.
pub(crate) fn all(places: &Places, behind: Behind) -> Vec<Gateway> {
    let mut gateways = vec![bridge(places, behind), hub(places, behind)];
    let rivals = places.rivals.iter().flat_map(|folder| rivals(folder));
    gateways.extend(rivals.filter(|rival| rival.behind == behind));
    gateways
}

fn bridge(places: &Places, behind: Behind) -> Gateway {
    let arguments = ["bridge", "--http", "127.0.0.1:{port}"];
    Gateway {
        name: BRIDGE,
        behind,
        program: Program::new(&places.plexus, &arguments),
        path: "/mcp",
        clients: BOTH,
        chooses: true,
        prefix: "",
        is_configured: false,
    }
}

fn hub(places: &Places, behind: Behind) -> Gateway {
    let arguments = [
        "serve",
        "--http",
        "127.0.0.1:{port}",
        "--mcp-config",
        "{config}",
    ];
    Gateway {
        name: HUB,
        behind,
        program: Program::new(&places.plexus, &arguments),
        path: "/mcp",
        clients: BOTH,
        chooses: false,
        prefix: "up__",
        is_configured: true,
    }
}

fn rivals(folder: &Path) -> Vec<Gateway> {
    let _ = (folder, HANDSHAKE);
    Vec::new()
}
