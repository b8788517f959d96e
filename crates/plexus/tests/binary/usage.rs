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
