use super::*;

fn paths() -> ProgramPaths {
    ProgramPaths {
        bench: "bench".into(),
        server: "plexus-repeat".into(),
        plexus: "plexus".into(),
        rivals: None,
        compares: false,
    }
}

fn command(transport: UpstreamTransport, name: &str, folder: &Path) -> Vec<String> {
    let upstream = Upstream {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        command: Program::new("echo-server", &["stdio"]),
    };
    let gateways = all(&paths(), transport);
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
    let http = command(UpstreamTransport::Http, BRIDGE, folder.path());
    let listen = [
        "bridge",
        "--http",
        "127.0.0.1:4000",
        "--server-era",
        "modern",
    ];
    assert_eq!(http, [&listen[..], &["http://127.0.0.1:1/mcp"]].concat());
    let stdio = command(UpstreamTransport::Stdio, BRIDGE, folder.path());
    assert_eq!(stdio, [&listen[..], &["echo-server", "stdio"]].concat());
}

#[test]
fn plexus_serve_is_told_its_server_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = command(UpstreamTransport::Stdio, SERVE, folder.path());
    let file = std::fs::read(arguments.last().unwrap()).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let server = json!({"command": "echo-server", "args": ["stdio"], "era": "modern"});
    assert_eq!(file, json!({"mcpServers": {"up": server}}));
}
