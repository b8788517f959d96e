//! Grants without a user's sign-in, and servers with one account for each caller.

use std::fs;

use jsonwebtoken::Header;
use plexus_mcp_client::auth::rules::Secret;
use plexus_mcp_client::auth::rules::jwt::{Audience, Claims};
use plexus_mcp_client::auth::rules::keys::SigningKey;
use plexus_mcp_protocol::Revision;
use plexus_testkit::authorization_server::Behaviour;
use plexus_testkit::{Client, HttpClient};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::auth::{SignInFixture, get, redirect_target, send};
use crate::process::Plexus;

/// A signing key, and its PEM text.
fn key() -> (SigningKey, String) {
    let (key, text) = SigningKey::generate().unwrap();
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        Secret::expose(&text)
    );
    (key, pem)
}

impl SignInFixture {
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

    /// Defines the server with this `oauth` object, and checks that it accepts the token.
    fn assert_accepted_with(&self, oauth: &Value) {
        let tools = self.tools_with(&json!({"oauth": oauth}));
        let tools = tools.join("\n");
        assert!(tools.contains("example__work"), "{tools}");
        assert_eq!(self.issuer.counts().sign_ins, 0);
    }

    fn file(&self, name: &str, contents: &str) -> Value {
        let file = self.home.path().join(name);
        fs::write(&file, contents).unwrap();
        json!({"command": ["/bin/cat", file]})
    }
}

/// CC-01: the client authenticates with a secret, to which the file only refers.
#[test]
fn a_client_has_a_secret() {
    let world = SignInFixture::with(Behaviour {
        clients: vec![("robot".to_owned(), Some("s3cret".to_owned()))],
        registers: false,
        ..Behaviour::default()
    });
    let secret = world.file("secret", "s3cret\n");
    world.assert_accepted_with(
        &json!({"grant": "client_credentials", "clientId": "robot", "clientSecret": secret}),
    );
}

/// CC-01: the client authenticates with a key.
#[test]
fn a_client_has_a_key() {
    let (key, pem) = key();
    let world = SignInFixture::with(Behaviour {
        keys: vec![("robot".to_owned(), key.public().unwrap())],
        registers: false,
        ..Behaviour::default()
    });
    let private_key = world.file("key.pem", &pem);
    world.assert_accepted_with(&json!({"grant": "client_credentials", "clientId": "robot",
        "privateKey": private_key, "algorithm": "ES256", "issuer": world.issuer.issuer()}));
}

/// RFC 7523: the platform of the workload issues the assertion.
#[test]
fn a_workload_is_vouched_for() {
    const PLATFORM: &str = "https://platform.example";
    let (key, _) = key();
    let world = SignInFixture::with(Behaviour {
        clients: vec![("robot".to_owned(), None)],
        vouched_by: Some((PLATFORM.to_owned(), key.public().unwrap())),
        ..Behaviour::default()
    });
    let mut claims = Claims::default();
    claims.iss = PLATFORM.to_owned();
    claims.sub = Some("workload".to_owned());
    claims.aud = Audience::One(world.issuer.issuer().to_owned());
    claims.exp = Some(u64::from(u32::MAX));
    let assertion = key.sign(Header::default(), &claims).unwrap();
    let assertion = world.file("assertion", &assertion);
    world.assert_accepted_with(
        &json!({"grant": "workload", "clientId": "robot", "assertion": assertion}),
    );
}

/// EMA-01, EMA-02: the identity provider of the enterprise issues the assertion for its user,
/// without a sign-in page.
#[test]
fn an_enterprise_vouches_for_its_user() {
    let world = SignInFixture::with(Behaviour {
        clients: vec![("app".to_owned(), None)],
        ..Behaviour::default()
    });
    let id_token = world.file("id-token", &world.issuer.id_token("ann", "app"));
    let idp = format!("{}/token", world.issuer.issuer());
    world.assert_accepted_with(&json!({"grant": "enterprise", "clientId": "app",
        "idpClientId": "app", "idpTokenEndpoint": idp, "idToken": id_token}));
}

/// Wrong settings and refusals are reported without the secret.
#[test]
fn refusals_tell_no_secret() {
    let world = SignInFixture::with(Behaviour {
        clients: vec![("robot".to_owned(), Some("another".to_owned()))],
        ..Behaviour::default()
    });
    let tools = world.tools_with(&json!({"oauth": {"grant": "client_credentials",
        "clientId": "robot", "clientSecret": "s3cret"}}));
    assert!(!tools.join("\n").contains("example__work"));
    let login = world.run(&["auth", "login", "example", "--principal", "ann"]);
    assert_eq!(login.code, Some(1));
    assert!(login.stderr.join("\n").contains("identity"), "{login:?}");
}

/// A project's file starts no program before it is trusted, not even a program that prints a
/// secret.
#[test]
fn a_sign_in_starts_nothing_of_a_project_that_is_not_trusted() {
    let world = SignInFixture::with(Behaviour::default());
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

/// With accounts per caller, each caller of a server has its own account.
#[test]
fn a_principal_has_an_account_of_its_own() {
    let world = SignInFixture::with(Behaviour::default());
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
    let own = world.output(&["auth", "token", "example"]);
    let hers = world.output(&["auth", "token", "example", "--principal", "ann"]);
    assert_ne!(own, hers);
    let shown: Value = world
        .output(&["auth", "status", "--json"])
        .concat()
        .parse()
        .unwrap();
    assert_eq!(shown["accounts"][0]["principal"], Value::Null);
    assert_eq!(shown["accounts"][1]["principal"], "ann");
    world.output(&["auth", "logout", "example", "--principal", "ann"]);
    assert_eq!(world.output(&["auth", "token", "example"]), own);
}

impl SignInFixture {
    /// A gateway on a free loopback port with this definition of the server, whose lists are per
    /// user; and its URL.
    fn gateway_with(&self, members: &Value, arguments: &[&str]) -> (Plexus, String) {
        self.sign_in(&["auth", "login", &self.server.url(), "--no-browser"]);
        self.tools_with(members);
        let file = self.home.path().join("servers.json");
        let file = ["--mcp-config", file.to_str().unwrap()];
        let serve = [&["serve", "--http", "127.0.0.1:0"], arguments, &file].concat();
        let gateway = self.start(&serve);
        let url = gateway.wait_for_stderr("listening on ");
        (gateway, url)
    }
}

fn client(url: &str, token: &str) -> Client {
    let revision = Revision::V2026_07_28;
    let http = HttpClient::new(url, revision);
    let http = http.with_header("authorization", &format!("Bearer {token}"));
    Client::over(http, revision, json!({"elicitation": {"url": {}}}))
}

/// ELIC-12: an identified caller on this machine is offered its own sign-in page. After the
/// redirect, the user must confirm in the browser to be that caller.
#[test]
fn a_caller_with_a_name_is_offered_the_page_for_itself() {
    let world = SignInFixture::with(Behaviour::default());
    let token = world.output(&["token", "add", "ann"]).concat();
    let identity = json!({"identity": "user"});
    let (_gateway, url) = world.gateway_with(&identity, &["--require-token"]);
    let call = json!({"name": "example__work", "arguments": {}});
    Runtime::new().unwrap().block_on(async {
        let mut ann = client(&url, &token);
        let asked = ann.result("tools/call", call.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (key, question) = asked["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let back = redirect_target(question["params"]["url"].as_str().unwrap());
        let page = get(&back);
        assert!(page.contains("token:ann"), "{page}");
        let form = page.split_once("action=\"").unwrap().1;
        let form = form.split_once('"').unwrap().0;
        let origin = back.split_once("/callback").unwrap().0;
        let thanks = send("POST", &format!("{origin}{form}"));
        assert!(thanks.starts_with("HTTP/1.1 200"), "{thanks}");
        let mut again = call;
        again["inputResponses"] = json!({key: {"action": "accept"}});
        again["requestState"] = asked["requestState"].clone();
        let answer = ann.exchange("tools/call", again).await.response;
        // The server itself answers that the call is unknown: the request was let through.
        assert!(!answer.to_string().contains("sign in"), "{answer}");
    });
    assert_eq!(world.issuer.counts().sign_ins, 2);
    let kept = world.output(&["auth", "status"]);
    assert!(
        kept.iter().any(|line| line.contains("of token:ann")),
        "{kept:?}"
    );
}

/// AUTH06-09, RFC 8693: the caller's token is exchanged for a token of the server, and is sent to
/// no other server.
#[test]
fn a_callers_token_is_exchanged() {
    const US: &str = "https://us.example/mcp";
    let world = SignInFixture::with(Behaviour {
        clients: vec![("gateway".to_owned(), Some("s3cret".to_owned()))],
        exchanges: Some(US.to_owned()),
        ..Behaviour::default()
    });
    let issuer = world.issuer.issuer().to_owned();
    let exchange = json!({"identity": "exchange", "oauth": {"clientId": "gateway",
        "clientSecret": world.file("secret", "s3cret"), "issuer": issuer}});
    let access = ["--issuer", &issuer, "--resource", US];
    let (_gateway, url) = world.gateway_with(&exchange, &access);
    let token = world.issuer.issue_to("ann", US, "");
    Runtime::new().unwrap().block_on(async {
        let call = json!({"name": "example__work", "arguments": {}});
        let answer = client(&url, &token).exchange("tools/call", call).await;
        let answer = answer.response.to_string();
        assert!(!answer.contains("authorization"), "{answer}");
    });
    assert_eq!(world.issuer.counts().exchanges, 1);
    let shown = world.server.all().into_iter();
    let shown = shown.filter_map(|request| Some(request.header("authorization")?.to_owned()));
    assert!(shown.into_iter().all(|header| !header.contains(&token)));
}
