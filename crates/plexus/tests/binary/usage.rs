//! Help, version and usage errors on the command line.

use crate::process::{Plexus, ProcessOutput, plexus, unread_pipe};

fn run(arguments: &[&str]) -> ProcessOutput {
    Plexus::start(arguments).end()
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    for arguments in [
        &[][..],
        &["surf"],
        &["serve", "--http", "nowhere"],
        &["serve", "--stdio", "--sse"],
        &["--mcp"],
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stdout.is_empty(), "{arguments:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
}

/// A file that is named on the command line must exist, for every command that takes one.
#[test]
fn a_missing_configuration_file_is_wrong_usage() {
    for command in [
        &["serve", "--stdio"][..],
        &["tools"],
        &["call", "x"],
        &["resources"],
        &["read", "x"],
        &["subscribe", "x"],
        &["prompts"],
        &["prompt", "x"],
        &["explain", "x"],
        &["status"],
        &["doctor", "--offline"],
    ] {
        let ended = run(&[command, &["--mcp-config", "no-such-file.json"]].concat());
        assert_eq!(ended.code, Some(2), "{command:?} {ended:?}");
        assert!(ended.stdout.is_empty(), "{command:?} {ended:?}");
        let error = &ended.stderr[0];
        assert!(error.contains("no-such-file.json"), "{error}");
        assert!(error.contains("there is no such file"), "{error}");
    }
}

#[test]
fn the_environment_sets_the_log_level() {
    let mut command = plexus(&["serve", "--stdio"]);
    let mut quiet = Plexus::spawn(command.env("PLEXUS_LOG", "error"));
    let mut chatty = Plexus::spawn(command.env("PLEXUS_LOG", "debug"));
    for plexus in [&mut quiet, &mut chatty] {
        plexus.initialize("2025-11-25");
        plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#);
    }
    assert!(quiet.end().stderr.is_empty());
    assert!(!chatty.end().stderr.is_empty());

    let ended = Plexus::spawn(command.env("PLEXUS_LOG", "loud")).end();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.concat().contains("--log-level"), "{ended:?}");
}

#[test]
fn the_version_is_printed() {
    let ended = run(&["--version"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stdout,
        [concat!("plexus ", env!("CARGO_PKG_VERSION"))]
    );
}

/// `plexus help` is `plexus --help`, and so on for every command.
#[test]
fn help_is_a_command() {
    for (command, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "call"], &["call", "--help"]),
        (&["help", "mcp", "add"], &["mcp", "add", "--help"]),
        (&["mcp", "help", "add"], &["mcp", "add", "--help"]),
    ] {
        let (helped, expected) = (run(command), run(option));
        assert_eq!(helped.code, Some(0), "{command:?} {helped:?}");
        assert!(helped.stderr.is_empty(), "{command:?} {helped:?}");
        assert_eq!(helped.stdout, expected.stdout, "{command:?}");
    }
    let ended = run(&["help", "surf"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&["man", folder.path().to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name));
    assert!(page("plexus.1").unwrap().contains("plexus\\-call(1)"));
    assert!(page("plexus-mcp-add.1").is_ok());
    assert!(
        page("plexus-help.1").is_err(),
        "help is not documented twice"
    );
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(&["completions", shell]);
        assert_eq!(ended.code, Some(0), "{shell}");
        assert!(ended.stdout.concat().contains("allow-origin"), "{shell}");
    }
}

/// As in `plexus --help | head`: a closed pipe is not an error.
#[test]
fn a_closed_pipe_is_no_failure() {
    for arguments in [&["--help"][..], &["completions", "bash"]] {
        let ended = Plexus::spawn(plexus(arguments).stdout(unread_pipe())).end();
        assert_eq!(ended.code, Some(0), "{arguments:?}");
        assert!(ended.stderr.is_empty(), "{ended:?}");
    }
}
