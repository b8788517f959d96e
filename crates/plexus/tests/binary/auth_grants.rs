//! Servers whose tokens nobody needs to sign in for, and those that are used in callers' names.

use std::fs;

use plexus_client::auth::rules::Secret;
use plexus_client::auth::rules::jwt::{Audience, Claims};
use plexus_client::auth::rules::keys::SigningKey;
use plexus_testkit::authorization_server::Behaviour;
use serde_json::{Value, json};

use crate::auth::World;

/// A key, and itself in PEM.
fn key() -> (SigningKey, String) {
    let (key, text) = SigningKey::generate().unwrap();
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        Secret::expose(&text)
    );
    (key, pem)
}

impl World {
    /// Defines the server with these members, and lists its tools.
    fn tools_with(&self, members: &Value) -> Vec<String> {
        let mut definition = json!({"type": "http", "url": self.server.url()});
        let object = definition.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        let file = self.home.path().join("servers.json");
        let servers = json!({"mcpServers": {"example": definition}});
        fs::write(&file, servers.to_string()).unwrap();
        let ended = self.run(&["tools", "--mcp-config", file.to_str().unwrap()]);
        let said = format!("{ended:?}");
        assert!(
            !said.contains("s3cret") && !said.contains("PRIVATE"),
            "{said}"
        );
        ended.stdout
    }

    /// The same with what stands under `oauth`; the server must be let in.
    fn is_let_in_with(&self, oauth: &Value) {
        let tools = self.tools_with(&json!({"oauth": oauth}));
        let tools = tools.join("\n");
        assert!(tools.contains("work"), "{tools}");
        assert_eq!(self.issuer.counts().sign_ins, 0);
    }

    fn file(&self, name: &str, contents: &str) -> Value {
        let file = self.home.path().join(name);
        fs::write(&file, contents).unwrap();
        json!({"command": ["/bin/cat", file]})
    }
}

/// CC-01: the client proves itself with a secret that the file only refers to.
#[test]
fn a_client_has_a_secret() {
    let world = World::with(Behaviour {
        clients: vec![("robot".to_owned(), Some("s3cret".to_owned()))],
        registers: false,
        ..Behaviour::default()
    });
    let secret = world.file("secret", "s3cret\n");
    world.is_let_in_with(
        &json!({"grant": "client_credentials", "clientId": "robot", "clientSecret": secret}),
    );
}

/// CC-01: or with a key.
#[test]
fn a_client_has_a_key() {
    let (key, pem) = key();
    let world = World::with(Behaviour {
        keys: vec![("robot".to_owned(), key.public().unwrap())],
        registers: false,
        ..Behaviour::default()
    });
    let private_key = world.file("key.pem", &pem);
    world.is_let_in_with(&json!({"grant": "client_credentials", "clientId": "robot",
        "privateKey": private_key, "algorithm": "ES256", "issuer": world.issuer.issuer()}));
}

/// RFC 7523: whoever runs the workload vouches for it.
#[test]
fn a_workload_is_vouched_for() {
    const PLATFORM: &str = "https://platform.example";
    let (key, _) = key();
    let world = World::with(Behaviour {
        clients: vec![("robot".to_owned(), None)],
        vouched_by: Some((PLATFORM.to_owned(), key.public().unwrap())),
        ..Behaviour::default()
    });
    let mut claims = Claims::default();
    claims.iss = PLATFORM.to_owned();
    claims.sub = Some("workload".to_owned());
    claims.aud = Audience::One(world.issuer.issuer().to_owned());
    claims.exp = Some(u64::from(u32::MAX));
    let assertion = key.sign(Default::default(), &claims).unwrap();
    let assertion = world.file("assertion", &assertion);
    world
        .is_let_in_with(&json!({"grant": "workload", "clientId": "robot", "assertion": assertion}));
}

/// EMA-01, EMA-02: the enterprise's identity provider vouches for its user, who visits no page.
#[test]
fn an_enterprise_vouches_for_its_user() {
    let world = World::with(Behaviour {
        clients: vec![("app".to_owned(), None)],
        ..Behaviour::default()
    });
    let id_token = world.file("id-token", &world.issuer.id_token("ann", "app"));
    let idp = format!("{}/token", world.issuer.issuer());
    world.is_let_in_with(&json!({"grant": "enterprise", "clientId": "app",
        "idpClientId": "app", "idpTokenEndpoint": idp, "idToken": id_token}));
}

/// What is configured wrongly, or refused, is told without the secret.
#[test]
fn refusals_tell_no_secret() {
    let world = World::with(Behaviour {
        clients: vec![("robot".to_owned(), Some("another".to_owned()))],
        ..Behaviour::default()
    });
    let tools = world.tools_with(&json!({"oauth": {"grant": "client_credentials",
        "clientId": "robot", "clientSecret": "s3cret"}}));
    assert!(!tools.join("\n").contains("work"));
    let login = world.run(&["auth", "login", "example", "--principal", "ann"]);
    assert_eq!(login.code, Some(1));
    assert!(login.stderr.join("\n").contains("identity"), "{login:?}");
}

/// A project's file starts no program before it is trusted, not even for a secret.
#[test]
fn a_sign_in_starts_nothing_of_a_project_that_is_not_trusted() {
    let world = World::with(Behaviour::default());
    let touched = world.home.path().join("touched");
    let secret = json!({"command": ["/bin/cp", "/dev/null", touched]});
    let servers = json!({"mcpServers": {"example": {"url": world.server.url(),
        "oauth": {"clientId": "a", "clientSecret": secret}}}});
    let file = world.home.path().join("project/.mcp.json");
    fs::write(file, servers.to_string()).unwrap();
    let login = world.run(&["auth", "login", "example", "--no-browser"]);
    assert_eq!(login.code, Some(1));
    let said = login.stderr.join("\n");
    assert!(said.contains("plexus trust example"), "{said}");
    assert!(!touched.exists());
}

/// Each caller of a server that is used in its callers' names has an account of its own.
#[test]
fn a_principal_has_an_account_of_its_own() {
    let world = World::with(Behaviour::default());
    let servers = json!({"mcpServers": {"example": {"url": world.server.url(),
        "identity": "user"}}});
    let file = world.home.path().join("project/.mcp.json");
    fs::write(file, servers.to_string()).unwrap();
    world.sign_in(&["auth", "login", "example", "--no-browser"]);
    let ann = [
        "auth",
        "login",
        "example",
        "--no-browser",
        "--principal",
        "ann",
    ];
    let signed_in = world.sign_in(&ann);
    assert!(signed_in.stdout[0].contains("as ann"), "{signed_in:?}");
    let own = world.says(&["auth", "token", "example"]);
    let hers = world.says(&["auth", "token", "example", "--principal", "ann"]);
    assert_ne!(own, hers);
    let shown: Value = world
        .says(&["auth", "status", "--json"])
        .concat()
        .parse()
        .unwrap();
    assert_eq!(shown["accounts"][0]["principal"], Value::Null);
    assert_eq!(shown["accounts"][1]["principal"], "ann");
    world.says(&["auth", "logout", "example", "--principal", "ann"]);
    assert_eq!(world.says(&["auth", "token", "example"]), own);
}
