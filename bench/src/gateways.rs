//! The gateways that are measured.

mod rivals;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use crate::process::Program;
use crate::servers::{ProgramPaths, SERVE};
use plexus_mcp_protocol::Era;

/// The transport between a gateway and the server behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamTransport {
    Http,
    Stdio,
}

impl UpstreamTransport {
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
    pub(crate) transport: UpstreamTransport,
    program: Program,
    config_style: ConfigStyle,
    pub(crate) path: &'static str,
    /// The revision of the handshake era that its clients must use.
    pub(crate) handshake: &'static str,
    /// The eras of its clients.
    pub(crate) clients: &'static [Era],
    /// The eras that it can be configured to use with its server.
    pub(crate) servers: &'static [Era],
    /// The prefix that it adds to the names of tools.
    pub(crate) prefix: &'static str,
}

/// How a gateway is configured with its server.
#[derive(Debug, Clone, Copy)]
enum ConfigStyle {
    /// The address, or the program with its arguments, are the last arguments.
    Last,
    /// Like `Last`, after `--server-era ERA`.
    LastWithEra,
    /// The whole command line is one argument, `{command}`.
    Quoted,
    /// A JSON file, `{config}`, with `mcpServers` as agents have it, and the era.
    McpServers,
    /// A JSON file, `{config}`, with `servers`, without the era.
    Servers,
    /// A TOML file, `{config}`, which also has the listen address.
    Toml,
    /// `--http URL`, or `--cmd` and an `--args` for each argument.
    Options,
}

/// The server behind a gateway, for both transports.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    pub(crate) command: Program,
}

pub(crate) const BRIDGE: &str = "plexus bridge";
const BOTH_ERAS: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE_ERA: &[Era] = &[Era::Handshake];

impl Gateway {
    /// The command line of a gateway that listens on `address` and uses `era` with its server. A
    /// configuration file is written to `folder`.
    pub(crate) fn command(
        &self,
        upstream: &Upstream,
        era: Era,
        address: SocketAddr,
        folder: &Path,
    ) -> std::io::Result<Program> {
        let Upstream { url, command } = upstream;
        let last = match self.transport {
            UpstreamTransport::Http => vec![url.clone()],
            UpstreamTransport::Stdio => {
                let path = command.path.display().to_string();
                [vec![path], command.arguments.clone()].concat()
            }
        };
        let last: Vec<_> = last.iter().map(String::as_str).collect();
        let era = era.as_str();
        let program = match self.config_style {
            ConfigStyle::Last => self.program.and(&last),
            ConfigStyle::LastWithEra => self.program.and(&["--server-era", era]).and(&last),
            ConfigStyle::Quoted => self.program.with("command", &last.join(" ")),
            ConfigStyle::McpServers => {
                let entry = match self.transport {
                    UpstreamTransport::Http => json!({"type": "http", "url": url, "era": era}),
                    UpstreamTransport::Stdio => {
                        let Program {
                            path, arguments, ..
                        } = command;
                        json!({"command": path, "args": arguments, "era": era})
                    }
                };
                let config = json!({"mcpServers": {"up": entry}});
                self.configured(folder, &config.to_string())?
            }
            ConfigStyle::Servers => {
                let entry = match self.transport {
                    UpstreamTransport::Http => json!({"type": "http", "url": url}),
                    UpstreamTransport::Stdio => {
                        let Program {
                            path, arguments, ..
                        } = command;
                        json!({"type": "stdio", "command": path, "args": arguments})
                    }
                };
                let config = json!({"servers": {"up": entry}});
                self.configured(folder, &config.to_string())?
            }
            ConfigStyle::Options => match (self.transport, last.split_first()) {
                (UpstreamTransport::Stdio, Some((path, arguments))) => {
                    let started = self.program.and(&["--backend", "stdio", "--cmd", path]);
                    arguments.iter().fold(started, |program, argument| {
                        program.and(&[&format!("--args={argument}")])
                    })
                }
                _ => self.program.and(&["--http", url.trim_end_matches("/mcp")]),
            },
            ConfigStyle::Toml => {
                let backend = match self.transport {
                    UpstreamTransport::Http => format!("transport = \"http\"\nurl = \"{url}\""),
                    UpstreamTransport::Stdio => format!(
                        "transport = \"stdio\"\ncommand = {}\nargs = {}",
                        json!(command.path),
                        json!(command.arguments)
                    ),
                };
                let config = format!(
                    "[proxy]\nname = \"bench\"\nseparator = \"__\"\n\n[proxy.listen]\n\
                     host = \"127.0.0.1\"\nport = {}\n\n[[backends]]\nname = \"up\"\n{backend}\n",
                    address.port()
                );
                self.configured(folder, &config)?
            }
        };
        Ok(program.with("port", &address.port().to_string()))
    }

    fn configured(&self, folder: &Path, text: &str) -> std::io::Result<Program> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(match self.config_style {
            ConfigStyle::Toml => "config.toml",
            _ => "config.json",
        });
        std::fs::write(&file, text)?;
        Ok(self.program.with("config", &file.display().to_string()))
    }
}

/// Ours, and the installed rivals.
pub(crate) fn all(paths: &ProgramPaths, transport: UpstreamTransport) -> Vec<Gateway> {
    let mut gateways = vec![bridge(paths, transport), serve(paths, transport)];
    if paths.compares {
        let rivals = paths
            .rivals
            .iter()
            .flat_map(|folder| rivals::all(folder, transport));
        gateways.extend(rivals);
    }
    gateways
}

fn bridge(paths: &ProgramPaths, transport: UpstreamTransport) -> Gateway {
    let arguments = ["bridge", "--http", "127.0.0.1:{port}"];
    Gateway {
        name: BRIDGE,
        transport,
        program: Program::new(&paths.plexus, &arguments),
        config_style: ConfigStyle::LastWithEra,
        path: "/mcp",
        handshake: Era::Handshake.newest_revision().as_str(),
        clients: BOTH_ERAS,
        servers: BOTH_ERAS,
        prefix: "",
    }
}

fn serve(paths: &ProgramPaths, transport: UpstreamTransport) -> Gateway {
    let listen = ["serve", "--http", "127.0.0.1:{port}"];
    let program = Program::new(&paths.plexus, &listen);
    Gateway {
        name: SERVE,
        transport,
        program: program.and(&["--mcp-config", "{config}"]),
        config_style: ConfigStyle::McpServers,
        path: "/mcp",
        handshake: Era::Handshake.newest_revision().as_str(),
        clients: BOTH_ERAS,
        servers: BOTH_ERAS,
        prefix: "up__",
    }
}

#[cfg(test)]
mod tests;
