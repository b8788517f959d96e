//! The gateways that are measured.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

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
    program: Program,
    told: Told,
    pub(crate) path: &'static str,
    /// Which revision of the handshake era its clients must speak.
    pub(crate) handshake: &'static str,
    /// The eras of its clients.
    pub(crate) clients: &'static [Era],
    /// The eras that it can be told to speak to its server.
    pub(crate) servers: &'static [Era],
    /// What it puts before the names of tools.
    pub(crate) prefix: &'static str,
}

/// How a gateway is told its server.
#[derive(Debug, Clone, Copy)]
enum Told {
    /// The address, or the program with its arguments, are the last arguments.
    Last,
    /// The same, after `--server-era ERA`.
    LastWithEra,
    /// The whole command line is one argument, `{command}`.
    Quoted,
    /// By a file of JSON, `{config}`, as agents have it, with the era.
    McpServers,
    /// By a file of JSON, `{config}`, without the era.
    Servers,
    /// By a file of TOML, `{config}`, which also says where to listen.
    Toml,
    /// By `--http URL`, or by `--cmd` and an `--args` for each of its arguments.
    Options,
}

/// The server behind a gateway, both ways.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    pub(crate) command: Program,
}

pub(crate) const BRIDGE: &str = "plexus bridge";
pub(crate) const HUB: &str = "plexus serve";
const BOTH: &[Era] = &[Era::Handshake, Era::Stateless];
const HANDSHAKE: &[Era] = &[Era::Handshake];

impl Gateway {
    /// The command line that listens on `address` and speaks `era` to its server. What it must
    /// read goes into `folder`.
    pub(crate) fn command(
        &self,
        upstream: &Upstream,
        era: Era,
        address: SocketAddr,
        folder: &Path,
    ) -> std::io::Result<Program> {
        let Upstream { url, command } = upstream;
        let last = match self.behind {
            Behind::Http => vec![url.clone()],
            Behind::Stdio => {
                let path = command.path.display().to_string();
                [vec![path], command.arguments.clone()].concat()
            }
        };
        let last: Vec<_> = last.iter().map(String::as_str).collect();
        let era = match era {
            Era::Handshake => "legacy",
            Era::Stateless => "modern",
        };
        let program = match self.told {
            Told::Last => self.program.and(&last),
            Told::LastWithEra => self.program.and(&["--server-era", era]).and(&last),
            Told::Quoted => self.program.with("command", &last.join(" ")),
            Told::McpServers => {
                let entry = match self.behind {
                    Behind::Http => json!({"type": "http", "url": url, "era": era}),
                    Behind::Stdio => {
                        let Program {
                            path, arguments, ..
                        } = command;
                        json!({"command": path, "args": arguments, "era": era})
                    }
                };
                let config = json!({"mcpServers": {"up": entry}});
                self.configured(folder, &config.to_string())?
            }
            Told::Servers => {
                let entry = match self.behind {
                    Behind::Http => json!({"type": "http", "url": url}),
                    Behind::Stdio => {
                        let Program {
                            path, arguments, ..
                        } = command;
                        json!({"type": "stdio", "command": path, "args": arguments})
                    }
                };
                let config = json!({"servers": {"up": entry}});
                self.configured(folder, &config.to_string())?
            }
            Told::Options => match (self.behind, last.split_first()) {
                (Behind::Stdio, Some((path, arguments))) => {
                    let started = self.program.and(&["--backend", "stdio", "--cmd", path]);
                    arguments.iter().fold(started, |program, argument| {
                        program.and(&[&format!("--args={argument}")])
                    })
                }
                _ => self.program.and(&["--http", url.trim_end_matches("/mcp")]),
            },
            Told::Toml => {
                let backend = match self.behind {
                    Behind::Http => format!("transport = \"http\"\nurl = \"{url}\""),
                    Behind::Stdio => format!(
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
        let file = folder.join(match self.told {
            Told::Toml => "config.toml",
            _ => "config.json",
        });
        std::fs::write(&file, text)?;
        Ok(self.program.with("config", &file.display().to_string()))
    }
}

/// Ours, and those rivals that are installed.
pub(crate) fn all(places: &Places, behind: Behind) -> Vec<Gateway> {
    let mut gateways = vec![bridge(places, behind), hub(places, behind)];
    if places.compares {
        let rivals = places
            .rivals
            .iter()
            .flat_map(|folder| rivals(folder, behind));
        gateways.extend(rivals);
    }
    gateways
}

fn bridge(places: &Places, behind: Behind) -> Gateway {
    let arguments = ["bridge", "--http", "127.0.0.1:{port}"];
    Gateway {
        name: BRIDGE,
        behind,
        program: Program::new(&places.plexus, &arguments),
        told: Told::LastWithEra,
        path: "/mcp",
        handshake: Era::Handshake.revision(),
        clients: BOTH,
        servers: BOTH,
        prefix: "",
    }
}

fn hub(places: &Places, behind: Behind) -> Gateway {
    let listen = ["serve", "--http", "127.0.0.1:{port}"];
    let program = Program::new(&places.plexus, &listen);
    Gateway {
        name: HUB,
        behind,
        program: program.and(&["--mcp-config", "{config}"]),
        told: Told::McpServers,
        path: "/mcp",
        handshake: Era::Handshake.revision(),
        clients: BOTH,
        servers: BOTH,
        prefix: "up__",
    }
}

fn rivals(folder: &Path, behind: Behind) -> Vec<Gateway> {
    let installed = |file: &str, arguments: &[&str]| {
        let path = folder.join(file);
        path.exists().then(|| Program::new(path, arguments))
    };
    let script = |interpreter: &Path, file: &str, arguments: &[&str]| {
        let script = folder.join(file);
        let program = Program::new(interpreter, &[&script.display().to_string()]);
        script.exists().then(|| program.and(arguments))
    };
    let gateway = |name, told, program: Option<Program>| {
        Some(Gateway {
            name,
            behind,
            program: program?,
            told,
            path: "/mcp",
            handshake: Era::Handshake.revision(),
            clients: HANDSHAKE,
            servers: HANDSHAKE,
            prefix: "",
        })
    };
    let fastmcp = gateway(
        "fastmcp (PyPI)",
        Told::Last,
        script(
            &folder.join("python-fastmcp/bin/python"),
            "python-fastmcp/fastmcp_proxy.py",
            &["{port}"],
        ),
    );
    let tower = gateway(
        "mcp-proxy (crates.io)",
        Told::Toml,
        installed("mcp-proxy-rust/bin/mcp-proxy", &["--config", "{config}"]),
    );
    let tower = tower.map(|gateway| Gateway {
        path: "/",
        clients: BOTH,
        prefix: "up__",
        ..gateway
    });
    let aggregator = gateway(
        "mcp-aggregator (crates.io)",
        Told::Servers,
        installed(
            "mcp-aggregator/bin/mcp-aggregator",
            &["--addr", "127.0.0.1:{port}", "--config", "{config}"],
        ),
    );
    // It refuses every other revision instead of offering its own.
    let aggregator = aggregator.map(|gateway| Gateway {
        handshake: "2025-06-18",
        ..gateway
    });
    let turbomcp = gateway(
        "turbomcp-proxy (crates.io)",
        Told::Options,
        installed(
            "turbomcp-proxy/bin/turbomcp-proxy",
            &["serve", "--bind", "127.0.0.1:{port}"],
        ),
    );
    let for_pipes = [
        gateway(
            "supergateway (npm)",
            Told::Quoted,
            script(
                Path::new("node"),
                "node/node_modules/.bin/supergateway",
                &[
                    "--outputTransport",
                    "streamableHttp",
                    "--stateful",
                    "--logLevel",
                    "none",
                    "--port",
                    "{port}",
                    "--stdio",
                    "{command}",
                ],
            ),
        ),
        gateway(
            "mcp-proxy (npm)",
            Told::Last,
            script(
                Path::new("node"),
                "node/node_modules/.bin/mcp-proxy",
                &[
                    "--host",
                    "127.0.0.1",
                    "--port",
                    "{port}",
                    "--server",
                    "stream",
                    "--no-eventStore",
                    "--",
                ],
            ),
        ),
        gateway(
            "mcp-proxy (PyPI)",
            Told::Last,
            installed(
                "python-proxy/bin/python",
                &[
                    "-m",
                    "mcp_proxy",
                    "--port",
                    "{port}",
                    "--log-level",
                    "ERROR",
                    "--stateless",
                    "--",
                ],
            ),
        ),
    ];
    let mut rivals = vec![tower, aggregator, turbomcp, fastmcp];
    if behind == Behind::Stdio {
        rivals.extend(for_pipes);
    }
    rivals.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            bench: "bench".into(),
            plexus: "plexus".into(),
            rivals: None,
            compares: false,
        }
    }

    fn command(behind: Behind, name: &str, folder: &Path) -> Vec<String> {
        let upstream = Upstream {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            command: Program::new("echo-server", &["stdio"]),
        };
        let gateways = all(&places(), behind);
        let gateway = gateways
            .iter()
            .find(|gateway| gateway.name == name)
            .unwrap();
        let address = "127.0.0.1:4000".parse().unwrap();
        let command = gateway.command(&upstream, Era::Stateless, address, folder);
        command.unwrap().arguments
    }

    #[test]
    fn a_bridge_is_told_its_server_and_its_era_on_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let http = command(Behind::Http, BRIDGE, folder.path());
        let listen = [
            "bridge",
            "--http",
            "127.0.0.1:4000",
            "--server-era",
            "modern",
        ];
        assert_eq!(http, [&listen[..], &["http://127.0.0.1:1/mcp"]].concat());
        let stdio = command(Behind::Stdio, BRIDGE, folder.path());
        assert_eq!(stdio, [&listen[..], &["echo-server", "stdio"]].concat());
    }

    #[test]
    fn a_hub_is_told_its_server_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = command(Behind::Stdio, HUB, folder.path());
        let file = std::fs::read(arguments.last().unwrap()).unwrap();
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let server = json!({"command": "echo-server", "args": ["stdio"], "era": "modern"});
        assert_eq!(file, json!({"mcpServers": {"up": server}}));
    }
}
