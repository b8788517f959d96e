//! Several gateway processes that sign in at the same time, and their output meanwhile.

use std::net::TcpStream;

use plexus_testkit::authorization_server::Behaviour;
use serde_json::{Value, json};

use crate::auth::{SignInFixture, gateway, get, next, page, redirect_target};
use crate::process::Plexus;

const SIGN_IN: &str =
    r#"{"jsonrpc":"2.0","id":"in","method":"tools/call","params":{"name":"example__sign_in"}}"#;

/// Makes a process offer the sign-in page, and returns its address.
fn offered(copy: &mut Plexus) -> String {
    copy.send(SIGN_IN);
    let question = next(copy, |message| message["method"] == "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    copy.send(&answer.to_string());
    question["params"]["url"].as_str().unwrap().to_owned()
}

fn port_of(address: &str) -> &str {
    let rest = address.strip_prefix("http://").unwrap();
    rest.split_once('/').unwrap().0
}

/// TRAP-34: a client starts two processes and ends the first during a sign-in. The second can still
/// sign in, and so can processes that start later; the page of the first one does not work any
/// more.
#[test]
fn a_copy_that_is_ended_in_the_middle_of_a_sign_in_costs_the_other_nothing() {
    let world = SignInFixture::with(Behaviour::default());
    let mut first = gateway(&world, "2025-11-25");
    let mut second = gateway(&world, "2025-11-25");
    let (of_first, of_second) = (offered(&mut first), offered(&mut second));
    assert_ne!(of_first, of_second);
    let (back_to_first, back_to_second) = (redirect_target(&of_first), redirect_target(&of_second));
    assert_ne!(port_of(&back_to_first), port_of(&back_to_second));
    first.kill();
    assert!(TcpStream::connect(port_of(&back_to_first)).is_err());
    // The callback for the first process has no effect in the second.
    let query = back_to_first.split_once('?').unwrap().1;
    let stray = format!("http://{}/callback?{query}", port_of(&back_to_second));
    assert!(get(&stray).starts_with("HTTP/1.1 404"));
    assert!(get(&back_to_second).starts_with("HTTP/1.1 200"));
    let answer = next(&second, |message| message["id"] == "in");
    assert!(answer.to_string().contains("signed in"), "{answer}");

    let mut third = world.start(&["probe", &world.server.url()]);
    assert_eq!(third.end().code, Some(0));
}

/// Two processes that start at the same time, before there is a key, can both sign in, and every
/// process can read what either stored.
#[test]
fn two_copies_log_in_at_once() {
    let world = SignInFixture::with(Behaviour::default());
    let login = |account| {
        [
            "auth",
            "login",
            "example",
            "--no-browser",
            "--account",
            account,
        ]
    };
    let mut copies = [world.start(&login("a")), world.start(&login("b"))];
    let pages = copies.each_ref().map(page);
    for page in &pages {
        assert!(get(&redirect_target(page)).starts_with("HTTP/1.1 200"));
    }
    for copy in &mut copies {
        let ended = copy.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    for account in ["a", "b"] {
        world.output(&["auth", "token", "example", "--account", account]);
    }
    assert_eq!(world.output(&["auth", "status"]).len(), 2);
}

/// Logs of any level and all listings contain no secrets.
#[test]
fn tokens_are_never_said() {
    let world = SignInFixture::with(Behaviour {
        token_life: 0,
        ..Behaviour::default()
    });
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let mut tokens = world.output(&["auth", "token", "example"]);
    let file = world.home.path().join("project/.mcp.json");
    let file = file.to_str().unwrap();
    let serve = [
        "serve",
        "--stdio",
        "--log-level",
        "trace",
        "--mcp-config",
        file,
    ];
    let mut gateway = world.start(&serve);
    gateway.initialize("2025-11-25");
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"example__work"}}"#;
    gateway.send(call);
    next(&gateway, |message| message["id"] == 1);
    let ended = gateway.end();
    assert!(ended.stderr.len() > 3, "it logs: {ended:?}");
    tokens.extend(world.output(&["auth", "token", "example"]));
    let listed = world.output(&["mcp", "get", "example"]);
    let status: Vec<Value> = [world.output(&["auth", "status", "--json"]).concat()]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    let everything = format!("{ended:?}{listed:?}{status:?}");
    for token in tokens {
        // The middle of a token identifies it as well as the whole token.
        let middle: String = token.chars().skip(token.len() / 2).take(30).collect();
        assert!(!everything.contains(&middle));
    }
}
