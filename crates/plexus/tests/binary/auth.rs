//! `plexus auth`, with a real authorization server and a user who opens the page in another
//! program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use plexus_mcp_protocol::Revision;
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour, TokenRequirements};
use plexus_testkit::server::{HttpServer, Offer, tool};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{DATA_DIR, Plexus, ProcessOutput, plexus};

/// A server that requires tokens, and a home directory without any.
pub(crate) struct SignInFixture {
    pub(crate) issuer: Arc<AuthorizationServer>,
    pub(crate) server: HttpServer,
    pub(crate) home: TempDir,
    _runtime: Runtime,
}

impl SignInFixture {
    pub(crate) fn with(behaviour: Behaviour) -> Self {
        let runtime = Runtime::new().unwrap();
        let issuer = Arc::new(runtime.block_on(AuthorizationServer::start(behaviour)));
        let own = Arc::clone(&issuer);
        let server = runtime.block_on(HttpServer::start(move |request| {
            let mut offer = Offer::new(Revision::V2026_07_28).declaring("tools", json!({}));
            offer.tools.push(tool("work"));
            let refused = own.guard(TokenRequirements::default(), request);
            refused.unwrap_or_else(|| request.reply_from(&offer))
        }));
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let config = json!({"mcpServers": {
            "example": {"type": "http", "url": server.url()},
            "local": {"command": "true"},
        }});
        std::fs::write(project.join(".mcp.json"), config.to_string()).unwrap();
        Self {
            issuer,
            server,
            home,
            _runtime: runtime,
        }
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Plexus {
        let mut command = plexus(arguments);
        command
            .current_dir(self.home.path().join("project"))
            .env("HOME", self.home.path())
            .env(DATA_DIR, self.home.path().join("data"))
            // The keyring of the machine must not be changed.
            .env("PATH", "/nonexistent")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        Plexus::spawn(&mut command)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProcessOutput {
        self.start(arguments).end()
    }

    /// The output of a command that succeeds.
    pub(crate) fn output(&self, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    }

    /// Signs in: opens the printed page, and follows the redirect back.
    pub(crate) fn sign_in(&self, arguments: &[&str]) -> ProcessOutput {
        let mut plexus = self.start(arguments);
        let back = redirect_target(&page(&plexus));
        let welcome = get(&back);
        assert!(welcome.starts_with("HTTP/1.1 200"), "{welcome}");
        plexus.end()
    }

    fn data(&self) -> &Path {
        self.home.path()
    }
}

/// The page that the user should open.
pub(crate) fn page(plexus: &Plexus) -> String {
    format!("http://{}", plexus.wait_for_stderr("http://"))
}

/// The redirect target of a page whose user consents at once.
pub(crate) fn redirect_target(page: &str) -> String {
    let answer = get(page);
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

pub(crate) fn get(url: &str) -> String {
    send("GET", url)
}

pub(crate) fn send(method: &str, url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("{method} /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// S004-20: for a server that requires a sign-in, the error names the command to run. After that
/// command, the server is connected.
#[test]
fn a_server_is_connected_after_sign_in() {
    let world = SignInFixture::with(Behaviour::default());
    let url = world.server.url();
    let refused = world.run(&["probe", &url]);
    assert_eq!(refused.code, Some(1));
    let said = refused.stderr.join("\n");
    assert!(said.contains(&format!("plexus auth login {url}")), "{said}");

    let signed_in = world.sign_in(&["auth", "login", &url, "--no-browser"]);
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");
    assert!(signed_in.stdout[0].starts_with(&format!("signed in to {url} as default")));
    world.output(&["probe", &url]);
    assert_eq!(world.issuer.counts().sign_ins, 1);
}

/// A name in the configuration can be used instead of a URL. Accounts are separate, and are shown
/// without secrets.
#[test]
fn there_may_be_several_accounts() {
    let world = SignInFixture::with(Behaviour::default());
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let second = [
        "auth",
        "login",
        "example",
        "--account",
        "work",
        "--no-browser",
    ];
    world.sign_in(&second);
    let own = world.output(&["auth", "token", "example"]);
    let work = world.output(&["auth", "token", "example", "--account", "work"]);
    assert_ne!(own, work);

    let status = world.output(&["auth", "status"]);
    assert_eq!(status.len(), 2, "{status:?}");
    let shown: Value = world
        .output(&["auth", "status", "--json"])
        .concat()
        .parse()
        .unwrap();
    let accounts = shown["accounts"].as_array().unwrap();
    assert_eq!(accounts[0]["account"], "default");
    assert_eq!(accounts[1]["account"], "work");
    assert_eq!(accounts[0]["issuer"], world.issuer.issuer());
    assert_eq!(accounts[0]["renewable"], true);
    let everything = format!("{status:?}{shown}");
    assert!(!everything.contains(&own[0]) && !everything.contains(&work[0]));

    // The client was registered once for each account, since each account has its own registration.
    world.output(&["auth", "logout", "example"]);
    assert_eq!(world.output(&["auth", "status"]).len(), 1);
    assert_eq!(world.issuer.counts().revocations, 1);
    let gone = world.run(&["auth", "token", "example"]);
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.stderr[0].contains("plexus auth login example"),
        "{gone:?}"
    );
}

/// A gateway that waits for the sign-in connects the server at once.
#[cfg(unix)]
#[test]
fn a_running_gateway_takes_note() {
    let world = SignInFixture::with(Behaviour::default());
    let file = world.home.path().join("project/.mcp.json");
    let serve = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut gateway = world.start(&serve);
    gateway.initialize("2025-11-25");
    gateway.wait_for_stderr("plexus auth login example");
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    while gateway.receive()["method"] != "notifications/tools/list_changed" {}
    gateway.send(
        r#"{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"example__work"}}"#,
    );
    let answer = loop {
        let message = gateway.receive();
        if message["id"] == "call" {
            break message;
        }
    };
    // The server itself answers that the call is unknown: the request was let through.
    assert!(!answer.to_string().contains("sign in"), "{answer}");
    assert_eq!(world.issuer.counts().sign_ins, 1);
}

/// A gateway over stdio, whose client supports URL elicitation.
pub(crate) fn gateway(world: &SignInFixture, revision: &str) -> Plexus {
    let file = world.home.path().join("project/.mcp.json");
    let serve = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut gateway = world.start(&serve);
    let version = json!({"protocolVersion": revision, "clientInfo": {"name": "t", "version": "1"},
        "capabilities": {"elicitation": {"url": {}}}});
    let greeting = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": version});
    gateway.send(&greeting.to_string());
    while gateway.receive()["id"] != 0 {}
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    gateway.wait_for_stderr("plexus auth login example");
    gateway
}

/// The next message for which `is_it` holds.
pub(crate) fn next(plexus: &Plexus, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = plexus.receive();
        if is_it(&message) {
            return message;
        }
    }
}

/// ELIC-07, ELIC-09, ELIC-12: a client with URL elicitation is offered the sign-in page, the
/// redirect leads back to this process, and no secret passes through the client.
#[test]
fn a_client_of_the_handshake_era_is_offered_the_page() {
    let world = SignInFixture::with(Behaviour::default());
    let mut gateway = gateway(&world, "2025-11-25");
    gateway.send(
        r#"{"jsonrpc":"2.0","id":"in","method":"tools/call","params":{"name":"example__sign_in"}}"#,
    );
    let question = next(&gateway, |message| {
        message["method"] == "elicitation/create"
    });
    assert_eq!(question["params"]["mode"], "url");
    assert!(question["params"]["elicitationId"].is_string());
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    gateway.send(&answer.to_string());
    let back = redirect_target(question["params"]["url"].as_str().unwrap());
    let stranger = get(&back.replace("state=", "state=x"));
    assert!(stranger.starts_with("HTTP/1.1 404"), "{stranger}");
    let welcome = get(&back);
    assert!(welcome.starts_with("HTTP/1.1 200"), "{welcome}");
    let answer = next(&gateway, |message| message["id"] == "in");
    assert!(answer.to_string().contains("signed in"), "{answer}");
    let tools = gateway.tools();
    assert!(tools.contains(&"example__work".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"example__sign_in".to_owned()), "{tools:?}");
    let token = world.output(&["auth", "token", "example"]).concat();
    let ended = gateway.end();
    let said = format!("{question}{answer}{ended:?}");
    assert!(!said.contains(&token) && !said.contains("code="), "{said}");
}

/// MRTR26: the same in the stateless era, whose client retries with its answer.
#[test]
fn a_client_of_the_stateless_era_is_offered_the_page() {
    let world = SignInFixture::with(Behaviour::default());
    let file = world.home.path().join("project/.mcp.json");
    let serve = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut gateway = world.start(&serve);
    gateway.wait_for_stderr("plexus auth login example");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}});
    let call = |id: &str, more: Value| {
        let mut params = json!({"name": "example__sign_in", "arguments": {}, "_meta": meta});
        let object = params.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    gateway.send(&call("first", json!({})));
    let asked = next(&gateway, |message| message["id"] == "first");
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    assert_eq!(question["params"]["mode"], "url");
    // The user has signed in before the client answers.
    get(&redirect_target(
        question["params"]["url"].as_str().unwrap(),
    ));
    let answers = json!({"inputResponses": {key: {"action": "accept"}},
        "requestState": asked["result"]["requestState"]});
    gateway.send(&call("second", answers));
    let answer = next(&gateway, |message| message["id"] == "second");
    assert!(answer.to_string().contains("signed in"), "{answer}");
    assert_eq!(world.issuer.counts().sign_ins, 1);
}

/// Without a client that supports URL elicitation, the tool names the command to run.
#[test]
fn the_sign_in_tool_names_the_command_without_url_elicitation() {
    let world = SignInFixture::with(Behaviour::default());
    let file = world.home.path().join("project/.mcp.json");
    let serve = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut gateway = world.start(&serve);
    gateway.initialize("2025-06-18");
    gateway.wait_for_stderr("plexus auth login example");
    gateway.send(
        r#"{"jsonrpc":"2.0","id":"in","method":"tools/call","params":{"name":"example__sign_in"}}"#,
    );
    let answer = next(&gateway, |message| message["id"] == "in");
    assert_eq!(answer["result"]["isError"], true);
    assert!(
        answer.to_string().contains("plexus auth login example"),
        "{answer}"
    );
    assert_eq!(world.issuer.counts().registrations, 0);
}

/// Without a browser on this machine, the user pastes the redirect URL.
#[test]
fn an_address_can_be_pasted() {
    let world = SignInFixture::with(Behaviour::default());
    let mut plexus = world.start(&["auth", "login", "example", "--no-browser"]);
    let back = redirect_target(&page(&plexus));
    plexus.send("http://127.0.0.1:1/callback?code=x&state=guessed");
    plexus.send(&back);
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// An expired token is refreshed by the next process that needs it.
#[test]
fn a_token_is_renewed_for_scripts() {
    let behaviour = Behaviour {
        token_life: 0,
        ..Behaviour::default()
    };
    let world = SignInFixture::with(behaviour);
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let first = world.output(&["auth", "token", "example"]);
    let second = world.output(&["auth", "token", "example"]);
    assert_ne!(first, second);
    let counts = world.issuer.counts();
    assert_eq!((counts.renewals, counts.replays), (2, 0));
}

/// The stored files are encrypted, and only their owner can read them.
#[test]
fn tokens_are_kept_encrypted() {
    let world = SignInFixture::with(Behaviour::default());
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let token = world.output(&["auth", "token", "example"]).concat();
    let mut files = 0;
    for entry in std::fs::read_dir(world.data().join("data/auth")).unwrap() {
        let entry = entry.unwrap();
        files += 1;
        let bytes = std::fs::read(entry.path()).unwrap();
        let needle = &token.as_bytes()[..20];
        assert!(!bytes.windows(needle.len()).any(|part| part == needle));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0);
        }
    }
    assert!(files >= 2, "the key and the tokens");
}

/// Errors say what to do.
#[test]
fn failures_say_what_to_do() {
    let disagreeing = Behaviour {
        agrees: false,
        ..Behaviour::default()
    };
    let world = SignInFixture::with(disagreeing);
    let failed = |arguments: &[&str], text: &str| {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.join("\n").contains(text), "{ended:?}");
    };
    failed(&["auth", "login", "nobody"], "plexus mcp list");
    failed(&["auth", "login", "local"], "not a remote server");
    failed(
        &[
            "auth",
            "login",
            "example",
            "--client-id",
            "a",
            "--client-secret-env",
            "NOT_SET",
        ],
        "NOT_SET is not set",
    );
    let refused = world.sign_in(&["auth", "login", "example", "--no-browser"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.join("\n").contains("access_denied"),
        "{refused:?}"
    );
}
