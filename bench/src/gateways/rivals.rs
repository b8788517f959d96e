//! The gateways of others.

use std::path::Path;

use plexus_mcp_protocol::Era;

use super::{BOTH_ERAS, ConfigStyle, Gateway, HANDSHAKE_ERA, UpstreamTransport};
use crate::process::Program;

/// The installed gateways in front of servers on this transport.
pub(super) fn all(folder: &Path, transport: UpstreamTransport) -> Vec<Gateway> {
    let installed = |file: &str, arguments: &[&str]| {
        let path = folder.join(file);
        path.exists().then(|| Program::new(path, arguments))
    };
    let script = |interpreter: &Path, file: &str, arguments: &[&str]| {
        let script = folder.join(file);
        let program = Program::new(interpreter, &[&script.display().to_string()]);
        script.exists().then(|| program.and(arguments))
    };
    let gateway = |name, config_style, program: Option<Program>| {
        Some(Gateway {
            name,
            transport,
            program: program?,
            config_style,
            path: "/mcp",
            handshake: Era::Handshake.newest_revision().as_str(),
            clients: HANDSHAKE_ERA,
            servers: HANDSHAKE_ERA,
            prefix: "",
        })
    };
    let fastmcp = gateway(
        "fastmcp (PyPI)",
        ConfigStyle::Last,
        script(
            &folder.join("python-fastmcp/bin/python"),
            "python-fastmcp/fastmcp_proxy.py",
            &["{port}"],
        ),
    );
    let tower = gateway(
        "mcp-proxy (crates.io)",
        ConfigStyle::Toml,
        installed("mcp-proxy-rust/bin/mcp-proxy", &["--config", "{config}"]),
    );
    let tower = tower.map(|gateway| Gateway {
        path: "/",
        clients: BOTH_ERAS,
        prefix: "up__",
        ..gateway
    });
    let aggregator = gateway(
        "mcp-aggregator (crates.io)",
        ConfigStyle::Servers,
        installed(
            "mcp-aggregator/bin/mcp-aggregator",
            &["--addr", "127.0.0.1:{port}", "--config", "{config}"],
        ),
    );
    // This gateway refuses every other revision instead of offering its own.
    let aggregator = aggregator.map(|gateway| Gateway {
        handshake: "2025-06-18",
        ..gateway
    });
    let turbomcp = gateway(
        "turbomcp-proxy (crates.io)",
        ConfigStyle::Options,
        installed(
            "turbomcp-proxy/bin/turbomcp-proxy",
            &["serve", "--bind", "127.0.0.1:{port}"],
        ),
    );
    let for_pipes = [
        gateway(
            "supergateway (npm)",
            ConfigStyle::Quoted,
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
            ConfigStyle::Last,
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
            ConfigStyle::Last,
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
    if transport == UpstreamTransport::Stdio {
        rivals.extend(for_pipes);
    }
    rivals.into_iter().flatten().collect()
}
