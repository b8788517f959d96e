//! Access control over HTTP, and `plexus token`.

use std::sync::Arc;

use plexus_mcp_protocol::Revision;
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour};
use plexus_testkit::{Client, HttpClient};
use serde_json::{Value, json};

use crate::home::Home;
use crate::process::Plexus;

const SETTINGS: &str = ".config/plexus/plexus.toml";

/// A gateway on a free port with its data in `home`, and its URL.
fn serve(home: &Home, arguments: &[&str]) -> (Plexus, String) {
    let arguments = [&["serve", "--http", "127.0.0.1:0"], arguments].concat();
    listening(home.start(&arguments))
}

fn listening(plexus: Plexus) -> (Plexus, String) {
    let url = plexus.wait_for_stderr("listening on ");
    (plexus, url)
}

/// The status of an `initialize` request with this token.
async fn status(url: &str, token: Option<&str>) -> u16 {
    let mut client = HttpClient::new(url, Revision::V2025_11_25);
    if let Some(token) = token {
        client = client.with_header("authorization", &format!("Bearer {token}"));
    }
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    client.post(&hello).send().await.status()
}

/// Runs a command with the data of `home`, and returns the one line that it prints.
fn output(home: &Home, arguments: &[&str]) -> String {
    let ended = home.start(arguments).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.join("\n")
}

/// S000-09, HTTPL-03, HTTP26-03, SSE24-06, SEC-10: a token of `plexus token` gives access from its
/// creation until it is revoked.
#[tokio::test]
async fn a_token_lets_its_holder_in() {
    let home = Home::with(&[]);
    assert!(output(&home, &["token", "list"]).starts_with("there are no tokens"));
    let laptop = output(&home, &["token", "add", "laptop"]);
    assert!(laptop.starts_with("plexus_"), "{laptop}");
    let (_plexus, url) = serve(&home, &["--require-token"]);
    assert_eq!(status(&url, None).await, 401);
    assert_eq!(status(&url, Some("plexus_made.up")).await, 401);
    assert_eq!(status(&url, Some(&laptop)).await, 200);

    let made = output(&home, &["token", "add", "ci", "--scope", "read", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["scopes"], json!(["read"]));
    let ci = made["token"].as_str().unwrap();
    assert_eq!(status(&url, Some(ci)).await, 200);
    let listed = output(&home, &["token", "list", "--json"]);
    assert!(!listed.contains(ci) && !listed.contains(&laptop));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["tokens"][1]["name"], "ci");

    output(&home, &["token", "remove", "laptop"]);
    assert_eq!(status(&url, Some(&laptop)).await, 401);
    assert_eq!(status(&url, Some(ci)).await, 200);
    let again = home.start(&["token", "remove", "laptop"]).end();
    assert_eq!(again.code, Some(1));
    assert!(again.stderr[0].contains("there is no token"), "{again:?}");
}

/// The printed command to connect a client has the header that the server requires.
#[test]
fn the_command_to_connect_carries_the_header() {
    let home = Home::with(&[]);
    output(&home, &["token", "add", "laptop"]);
    let (guarded, _) = serve(&home, &["--require-token"]);
    let command = guarded.wait_for_stderr("connect: claude mcp add ");
    let header = " --header 'Authorization: Bearer TOKEN'";
    assert!(command.ends_with(header), "{command}");
    let (open, _) = serve(&home, &[]);
    let command = open.wait_for_stderr("connect: claude mcp add ");
    assert!(!command.contains("--header"), "{command}");
}

/// The token works in both eras, and for a bridge.
#[tokio::test]
async fn a_bridge_asks_as_well() {
    let home = Home::with(&[]);
    let token = output(&home, &["token", "add", "laptop"]);
    let (_gateway, url) = serve(&home, &["--require-token"]);
    let header = format!("Authorization: Bearer {token}");
    let bridge = [
        "bridge",
        "--http",
        "127.0.0.1:0",
        "--require-token",
        "--header",
    ];
    let (_bridge, bridged) = listening(home.start(&[&bridge[..], &[&header, &url]].concat()));
    assert_eq!(status(&bridged, None).await, 401);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let http = HttpClient::new(&bridged, revision);
        let http = http.with_header("authorization", &format!("Bearer {token}"));
        let mut client = Client::over(http, revision, json!({}));
        client.open().await;
        let called = client.call("echo_ping", json!({})).await;
        assert_eq!(called["content"][0]["text"], "pong", "{revision}");
    }
}

/// Serving on a public address without access control is refused.
#[test]
fn strangers_are_not_served_without_a_token() {
    let home = Home::with(&[]);
    for command in [&["serve"][..], &["bridge", "--stdio"]] {
        let mut arguments = [command, &["--http", "0.0.0.0:0"]].concat();
        if command[0] == "bridge" {
            arguments.push("true");
        }
        let said = home.fails(&arguments);
        for advice in [
            "other machines",
            "plexus token add",
            "--issuer",
            "127.0.0.1:0",
        ] {
            assert!(said.contains(advice), "{said}");
        }
    }
    let loopback = ["serve", "--http", "127.0.0.1:0"];
    let said = home.fails(&[&loopback[..], &["--require-token"]].concat());
    assert!(said.contains("there is none yet"), "{said}");
    let issuer = [
        "serve",
        "--http",
        "0.0.0.0:0",
        "--issuer",
        "https://as.example",
    ];
    let said = home.fails(&issuer);
    assert!(said.contains("--resource https://"), "{said}");
    let said = home.fails(&[&loopback[..], &["--issuer", "http://as.example"]].concat());
    assert!(said.contains("would not be encrypted"), "{said}");
}

/// If the settings cannot be read, HTTP is not served, since they may require tokens.
#[test]
fn http_is_not_served_with_invalid_settings() {
    let home = Home::with(&[(SETTINGS, "[acess]\nrequired = true")]);
    let said = home.fails(&["serve", "--http", "127.0.0.1:0"]);
    assert!(said.contains("did you mean access?"), "{said}");
    let home = Home::with(&[("project/plexus.toml", "[access]\nrequired = false")]);
    let (mut plexus, _) = serve(&home, &[]);
    plexus.kill();
}

/// AUTH06-07, AUTH11-11: tokens of an authorization server are accepted, with only its URL
/// configured.
#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_lets_its_users_in() {
    let home = Home::with(&[]);
    let issuer = AuthorizationServer::start(Behaviour::default()).await;
    let arguments = ["--issuer", issuer.issuer(), "--require-scope", "mcp"];
    let (_plexus, url) = serve(&home, &arguments);
    assert_eq!(status(&url, None).await, 401);
    let token = |resource: &str, scope| issuer.issue_to("alice", resource, scope);
    assert_eq!(status(&url, Some(&token(&url, "mcp"))).await, 200);
    assert_eq!(status(&url, Some(&token(&url, "other"))).await, 403);
    let elsewhere = token("https://other.example/mcp", "mcp");
    assert_eq!(status(&url, Some(&elsewhere)).await, 401);
    // A token that is issued later is accepted, too, if it has the scope.
    let own = output(&home, &["token", "add", "laptop", "--scope", "mcp"]);
    assert_eq!(status(&url, Some(&own)).await, 200);
}

/// The client secret for token introspection is in no file.
#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_can_be_asked() {
    let behaviour = Behaviour {
        clients: vec![("gateway".to_owned(), Some("hunter2".to_owned()))],
        ..Behaviour::default()
    };
    let issuer = Arc::new(AuthorizationServer::start(behaviour).await);
    let settings = format!(
        "[access]\nresource = \"https://plexus.example/mcp\"\n\n[[access.issuers]]\nissuer = \"{}\"\n\
         introspection = {{ client_id = \"gateway\", client_secret = {{ env = \"GITHUB_TOKEN\" }} }}\n",
        issuer.issuer()
    );
    let home = Home::with(&[(SETTINGS, &settings)]);
    let (_plexus, url) = serve(&home, &[]);
    let token = issuer.issue_to("alice", "https://plexus.example/mcp", "");
    assert_eq!(status(&url, Some(&token)).await, 200);
    assert_eq!(issuer.counts().questions, 1);
    assert_eq!(status(&url, None).await, 401);
}

/// Policy rules can apply to some callers only.
#[tokio::test]
async fn rules_name_callers() {
    let settings = r#"
        [policy]
        rules = [
          { tool = "echo_ping", principal = "token:guest", action = "deny" },
          { tool = "echo_once", scope = "!write", action = "deny" },
        ]
    "#;
    let home = Home::with(&[(SETTINGS, settings)]);
    let guest = output(&home, &["token", "add", "guest", "--scope", "write"]);
    let member = output(&home, &["token", "add", "member"]);
    let (_plexus, url) = serve(&home, &["--require-token"]);
    for (token, ping, once) in [(&guest, false, true), (&member, true, false)] {
        let http = HttpClient::new(&url, Revision::V2026_07_28);
        let http = http.with_header("authorization", &format!("Bearer {token}"));
        let mut client = Client::over(http, Revision::V2026_07_28, json!({}));
        client.open().await;
        let ping = ("echo_ping", json!({}), ping);
        let once = ("echo_once", json!({"message": "hi"}), once);
        for (tool, arguments, is_allowed) in [ping, once] {
            let called = client.call(tool, arguments).await;
            assert_eq!(called["isError"] == true, !is_allowed, "{tool}: {called}");
        }
    }
}

/// No command line, log or error contains a token.
#[tokio::test]
async fn tokens_are_not_logged() {
    let home = Home::with(&[]);
    let token = output(&home, &["token", "add", "laptop"]);
    let (mut plexus, url) = serve(&home, &["--require-token", "--log-level", "trace"]);
    assert_eq!(status(&url, Some(&token)).await, 200);
    let broken = format!("{token}x");
    assert_eq!(status(&url, Some(&broken)).await, 401);
    assert_eq!(
        status(&format!("{url}?access_token={token}"), None).await,
        400
    );
    #[cfg(unix)]
    plexus.terminate();
    #[cfg(not(unix))]
    plexus.kill();
    let ended = plexus.wait();
    let secret = token.split('.').next_back().unwrap();
    let told = ended.stderr.iter().find(|line| line.contains(secret));
    assert_eq!(told, None);
    assert!(!ended.stderr.is_empty(), "there is a log");
}
