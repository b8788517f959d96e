use std::ffi::OsString;
use std::time::Duration;

use plexus_mcp_server::Options;
use plexus_mcp_server::http::SsePaths;
use plexus_mcp_server::net::{Host, Origin};

use super::*;

mod examples;

fn read(line: &str) -> Result<Command, clap::Error> {
    Cli::read_from(line.split_whitespace().map(OsString::from).collect())
}

fn serve(line: &str) -> ServeArgs {
    match read(line) {
        Ok(Command::Serve(arguments)) => arguments,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

/// S000-07.
#[test]
fn http_is_served_unless_only_stdio_is_asked_for() {
    let cases = [
        ("plexus serve", false, Some("127.0.0.1:4445")),
        ("plexus serve --sse", false, Some("127.0.0.1:4445")),
        ("plexus serve --stdio", true, None),
        ("plexus serve --http [::1]:0", false, Some("[::1]:0")),
        (
            "plexus serve --http localhost:80",
            false,
            Some("127.0.0.1:80"),
        ),
        (
            "plexus serve --stdio --http 127.0.0.1:80",
            true,
            Some("127.0.0.1:80"),
        ),
    ];
    for (line, stdio, http) in cases {
        let arguments = serve(line);
        assert_eq!(arguments.downstream.stdio, stdio, "{line}");
        let address = arguments
            .downstream
            .address()
            .map(|address| address.to_string());
        assert_eq!(address.as_deref(), http, "{line}");
    }
}

/// S003-59: the spelling of the S003 document.
#[test]
fn stdio_mcp_is_serve_stdio() {
    let arguments = serve("plexus --stdio --mcp");
    assert!(arguments.downstream.stdio && arguments.downstream.address().is_none());
    assert!(!arguments.native);
}

/// S003-58
#[test]
fn stdio_alone_is_the_native_protocol() {
    for line in ["plexus --stdio", "plexus serve --stdio --native"] {
        let arguments = serve(line);
        assert!(arguments.downstream.stdio && arguments.native, "{line}");
        assert!(arguments.downstream.address().is_none(), "{line}");
    }
}

/// S003-37.
#[test]
fn http_options_are_parsed() {
    let options = serve(
        "plexus serve --sse --path /plexus --allow-host a.example --allow-host b.example:81 \
         --allow-origin https://c.example",
    )
    .downstream
    .http_options();
    assert_eq!(options.path, "/plexus");
    assert_eq!(options.sse, Some(SsePaths::default()));
    let hosts: Vec<_> = options.allowed_hosts.iter().map(Host::to_string).collect();
    assert_eq!(hosts, ["a.example", "b.example:81"]);
    let origins: Vec<_> = options
        .allowed_origins
        .iter()
        .map(Origin::to_string)
        .collect();
    assert_eq!(origins, ["https://c.example"]);

    let options = serve("plexus serve").downstream.http_options();
    assert_eq!((options.path.as_str(), options.sse), ("/mcp", None));
}

/// C51: the validator mode is independent of the profile.
#[test]
fn a_profile_and_a_validator_go_together() {
    let plain = serve("plexus serve");
    assert_eq!((plain.profile, plain.compat), (Profile::Plexus, None));
    let both = serve("plexus serve --profile substrate --compat mcp-validator");
    assert_eq!(both.profile, Profile::Substrate);
    assert_eq!(both.compat, Some(Compat::McpValidator));
}

#[test]
fn misuse_is_told_apart_and_explained() {
    let cases = [
        ("plexus", "plexus serve --stdio"),
        ("plexus --mcp", "--stdio"),
        ("plexus --stdio serve", "plexus serve --stdio"),
        ("plexus serve --http 4445", "127.0.0.1:4445"),
        ("plexus serve --http a.example:4445", "localhost:4445"),
        ("plexus serve --path mcp", "/mcp"),
        ("plexus serve --path /mcp?x", "/mcp"),
        ("plexus serve --sse --path /sse", "/sse"),
        ("plexus serve --stdio --sse", "--http"),
        ("plexus serve --stdio --path /x", "--http"),
        ("plexus serve --allow-host http://a", "host name"),
        ("plexus serve --allow-origin a.example", "origin"),
        ("plexus serve --era ancient", "legacy"),
        ("plexus serve --log-level loud", "trace"),
        ("plexus serv", "serve"),
    ];
    for (line, hint) in cases {
        let error = read(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(hint), "{line}: {error}");
    }
}

/// Shell commands are offered only to the client that starts Plexus by default.
#[test]
fn shell_commands_are_offered_only_over_stdio_by_default() {
    let cases = [
        ("plexus serve --stdio", true),
        ("plexus --stdio --mcp", true),
        ("plexus serve", false),
        ("plexus serve --stdio --http 127.0.0.1:0", false),
        ("plexus serve --allow-bash", true),
    ];
    for (line, offered) in cases {
        assert_eq!(serve(line).extras().bash, offered, "{line}");
        let agents = line.replace("--allow-bash", "--allow-claudecode");
        let agents = serve(&agents).extras().claudecode.is_some();
        assert_eq!(agents, offered, "{line}");
    }
    let settings = serve("plexus serve --stdio --claude /opt/agent")
        .extras()
        .claudecode;
    assert_eq!(settings.unwrap().program, "/opt/agent");
}

#[test]
fn the_time_for_answers_can_be_set() {
    let time = |line| {
        serve(line)
            .downstream
            .options(Options::default())
            .answer_time
    };
    assert_eq!(time("plexus serve"), Options::default().answer_time);
    assert_eq!(time("plexus serve --answer-time 7"), Duration::from_secs(7));
    for wrong in ["0", "-1", "1.5", "86401", "long"] {
        let line = format!("plexus serve --answer-time={wrong}");
        let error = read(&line).unwrap_err().to_string();
        assert!(error.contains("from 1 to 86400"), "{line}: {error}");
    }
}
