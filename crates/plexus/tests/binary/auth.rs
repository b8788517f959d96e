//! `plexus auth`, with a real authorization server and a user who opens the page elsewhere.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use plexus_mcp::Revision;
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour, Demands};
use plexus_testkit::server::{HttpServer, Offer, tool};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{DATA_DIR, Ended, Plexus, plexus};

/// A server that wants tokens, and a home that has none yet.
struct World {
    issuer: Arc<AuthorizationServer>,
    server: HttpServer,
    home: TempDir,
    _runtime: Runtime,
}

impl World {
    fn with(behaviour: Behaviour) -> Self {
        let runtime = Runtime::new().unwrap();
        let issuer = Arc::new(runtime.block_on(AuthorizationServer::start(behaviour)));
        let own = Arc::clone(&issuer);
        let server = runtime.block_on(HttpServer::start(move |request| {
            let mut offer = Offer::new(Revision::V2026_07_28).declaring("tools", json!({}));
            offer.tools.push(tool("work"));
            let refused = own.guard(Demands::default(), request);
            refused.unwrap_or_else(|| request.plainly(&offer))
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

    fn start(&self, arguments: &[&str]) -> Plexus {
        let mut command = plexus(arguments);
        command
            .current_dir(self.home.path().join("project"))
            .env("HOME", self.home.path())
            .env(DATA_DIR, self.home.path().join("data"))
            // Whatever keyring the machine has is not ours to write to.
            .env("PATH", "/nonexistent")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        Plexus::spawn(&mut command)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// What a command prints that succeeds.
    fn says(&self, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    }

    /// Signs in: opens the page that is printed, and follows it back.
    fn sign_in(&self, arguments: &[&str]) -> Ended {
        let mut plexus = self.start(arguments);
        let back = led_to(&page(&plexus));
        let welcome = get(&back);
        assert!(welcome.starts_with("HTTP/1.1 200"), "{welcome}");
        plexus.end()
    }

    fn data(&self) -> &Path {
        self.home.path()
    }
}

/// The page that the user is told to open.
fn page(plexus: &Plexus) -> String {
    format!("http://{}", plexus.wait_for_stderr("http://"))
}

/// Where a page leads whose user agrees at once.
fn led_to(page: &str) -> String {
    let answer = get(page);
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// S004-20: a server that wants a sign-in says which command to run, and after that is connected.
#[test]
fn who_signs_in_is_let_in() {
    let world = World::with(Behaviour::default());
    let url = world.server.url();
    let refused = world.run(&["probe", &url]);
    assert_eq!(refused.code, Some(1));
    let said = refused.stderr.join("\n");
    assert!(said.contains(&format!("plexus auth login {url}")), "{said}");

    let signed_in = world.sign_in(&["auth", "login", &url, "--no-browser"]);
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");
    assert!(signed_in.stdout[0].starts_with(&format!("signed in to {url} as default")));
    world.says(&["probe", &url]);
    assert_eq!(world.issuer.counts().sign_ins, 1);
}

/// A name in the configuration does as well; accounts are kept apart, and shown without secrets.
#[test]
fn there_may_be_several_accounts() {
    let world = World::with(Behaviour::default());
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
    let own = world.says(&["auth", "token", "example"]);
    let work = world.says(&["auth", "token", "example", "--account", "work"]);
    assert_ne!(own, work);

    let status = world.says(&["auth", "status"]);
    assert_eq!(status.len(), 2, "{status:?}");
    let shown: Value = world
        .says(&["auth", "status", "--json"])
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

    // The client was registered once for each, since each has its own drawer.
    world.says(&["auth", "logout", "example"]);
    assert_eq!(world.says(&["auth", "status"]).len(), 1);
    assert_eq!(world.issuer.counts().revocations, 1);
    let gone = world.run(&["auth", "token", "example"]);
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.stderr[0].contains("plexus auth login example"),
        "{gone:?}"
    );
}

/// Far from a browser, the address that the page led to is pasted.
#[test]
fn an_address_can_be_pasted() {
    let world = World::with(Behaviour::default());
    let mut plexus = world.start(&["auth", "login", "example", "--no-browser"]);
    let back = led_to(&page(&plexus));
    plexus.send("http://127.0.0.1:1/callback?code=x&state=guessed");
    plexus.send(&back);
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A token that ended is renewed by whoever needs it next.
#[test]
fn a_token_is_renewed_for_scripts() {
    let behaviour = Behaviour {
        token_life: 0,
        ..Behaviour::default()
    };
    let world = World::with(behaviour);
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let first = world.says(&["auth", "token", "example"]);
    let second = world.says(&["auth", "token", "example"]);
    assert_ne!(first, second);
    let counts = world.issuer.counts();
    assert_eq!((counts.renewals, counts.replays), (2, 0));
}

/// Nothing that is kept can be read, nor belongs to anybody else.
#[test]
fn tokens_are_kept_encrypted() {
    let world = World::with(Behaviour::default());
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let token = world.says(&["auth", "token", "example"]).concat();
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

/// What cannot be done is told, with what to do about it.
#[test]
fn failures_say_what_to_do() {
    let disagreeing = Behaviour {
        agrees: false,
        ..Behaviour::default()
    };
    let world = World::with(disagreeing);
    let failed = |arguments: &[&str], text: &str| {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.join("\n").contains(text), "{ended:?}");
    };
    failed(&["auth", "login", "nobody"], "plexus mcp list");
    failed(&["auth", "login", "local"], "no server on the web");
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
