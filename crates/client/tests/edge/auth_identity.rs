//! Servers that are called with the identity of each caller.

use std::sync::{Arc, Mutex};

use plexus_mcp_client::auth::{Identity, MemoryVault, OAuthOptions};
use plexus_mcp_client::{Definition, ServerState, Target, Upstream};
use plexus_mcp_core::{Credential, Principal, Service as _};
use plexus_mcp_oauth::{Challenges, Client};
use plexus_mcp_protocol::Revision;
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::server::Reply;
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::auth_fixture::{Protected, by_a_user, client, offer_of};
use crate::support::{Caller, LEGACY, STATELESS, connected, for_clients, status};

const US: &str = "https://us.example/mcp";

/// A server that records the token of each call.
struct World {
    protected: Protected,
    tokens: Arc<Mutex<Vec<String>>>,
    options: OAuthOptions,
    revision: Revision,
}

impl World {
    async fn start(revision: Revision) -> Self {
        let behaviour = Behaviour {
            clients: vec![("gateway".to_owned(), Some("s3cret".to_owned()))],
            exchanges: Some(US.to_owned()),
            ..Behaviour::default()
        };
        let tokens = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&tokens);
        let answer = move |request: &plexus_testkit::server::Received| match request.mcp() {
            "tools/call" => {
                let token = request.header("authorization").unwrap_or_default();
                let token = token.strip_prefix("Bearer ").unwrap_or_default();
                noted.lock().unwrap().push(token.to_owned());
                let done = json!({"resultType": "complete", "content": []});
                Reply::json(&request.result(&done))
            }
            _ => request.reply_from(&offer_of(revision)),
        };
        let protected = Protected::answering(behaviour, TokenRequirements::default(), answer).await;
        let mut options = protected.options();
        options.server_name = "example".to_owned();
        options.vault = Arc::new(MemoryVault::default());
        Self {
            protected,
            tokens,
            options,
            revision,
        }
    }

    /// The server, connected with the tokens of the user of this machine.
    async fn connected(&self, identity: Identity, client: Option<Client>) -> Upstream {
        let own = by_a_user(self.options.clone());
        let mut definition: Definition = for_clients(self.protected.definition(&own));
        definition.era = Some(self.revision.era());
        let mut options = self.options.clone();
        options.client = client;
        if let Target::Http(target) = &mut definition.target {
            target.identities = Some(identity.with_options(options));
        }
        connected(definition).await
    }

    fn tokens(&self) -> Vec<String> {
        self.tokens.lock().unwrap().clone()
    }

    fn token_of(&self, subject: &str) -> Credential {
        Credential::new(self.protected.issuer.issue_to(subject, US, ""), US)
    }

    fn configured_client(&self) -> Client {
        Client {
            issuer: Some(self.protected.issuer.issuer().to_owned()),
            ..client("gateway", Some("s3cret"))
        }
    }
}

fn user() -> Identity {
    Identity::User(Arc::new(|principal, options| {
        options.sign_in_hint = format!("sign in as {:?}", principal.as_str());
    }))
}

async fn work(upstream: &Upstream, caller: &Caller) -> Result<(), String> {
    let params = json!({"name": "work", "arguments": {}});
    let (outcome, _events) = caller.call(upstream, "tools/call", &params);
    let outcome = within("the call", outcome).await;
    outcome.map(|_| ()).map_err(|fault| fault.to_string())
}

fn named(principal: &str) -> Caller {
    Caller {
        principal: Some(principal.to_owned()),
        ..Caller::default()
    }
}

fn showing(principal: &str, credential: &Credential) -> Caller {
    Caller {
        credential: Some(credential.clone()),
        ..named(principal)
    }
}

/// The claims of a token, without verifying its signature.
fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload);
    serde_json::from_slice(&payload.unwrap()).unwrap()
}

/// Each principal signs in separately, in both eras, and no call carries another caller's token. A
/// principal without tokens gets a sign-in hint.
#[tokio::test]
async fn every_principal_has_tokens_of_its_own() {
    for revision in [STATELESS, LEGACY] {
        let world = World::start(revision).await;
        let upstream = world.connected(user(), None).await;
        work(&upstream, &Caller::default()).await.unwrap();
        for name in ["ann", "bob"] {
            let told = work(&upstream, &named(name)).await.unwrap_err();
            assert!(told.contains(&format!("sign in as {name:?}")), "{told}");
            assert_eq!(status(&upstream).state, ServerState::Connected);
            let mut options = world.options.clone();
            options.principal = Principal::new(name);
            let theirs = by_a_user(options);
            theirs.sign_in(Challenges::default()).await.unwrap();
            work(&upstream, &named(name)).await.unwrap();
        }
        work(&upstream, &named("ann")).await.unwrap();
        work(&upstream, &Caller::default()).await.unwrap();
        let tokens = world.tokens();
        let [machine, ann, bob, ann_again, machine_again] = &tokens[..] else {
            panic!("{tokens:?}");
        };
        assert!(machine != ann && ann != bob && bob != machine);
        assert_eq!((ann, machine), (ann_again, machine_again));
        assert_eq!(world.protected.issuer.counts().sign_ins, 3);
    }
}

/// A subscription would share one caller's token with others, so it is refused.
#[tokio::test]
async fn a_server_in_callers_names_is_not_watched() {
    let world = World::start(STATELESS).await;
    let upstream = world.connected(user(), None).await;
    let refused = upstream.subscribe(&named("ann").peer(), "a:b").await;
    assert!(refused.is_err());
}

/// AUTH06-09: a caller's token is exchanged once for a token for the server. Only the authorization
/// server receives the caller's token.
#[tokio::test]
async fn a_token_is_exchanged() {
    for revision in [STATELESS, LEGACY] {
        let world = World::start(revision).await;
        let exchange = Identity::Exchange { audience: None };
        let client = Some(world.configured_client());
        let upstream = world.connected(exchange, client).await;
        let (ann, bob) = (world.token_of("ann"), world.token_of("bob"));
        for _ in 0..2 {
            work(&upstream, &showing("ann", &ann)).await.unwrap();
            work(&upstream, &showing("bob", &bob)).await.unwrap();
        }
        let tokens = world.tokens();
        let resource = world.protected.server.url();
        for (token, subject) in tokens.iter().zip(["ann", "bob", "ann", "bob"]) {
            let claims = claims(token);
            assert_eq!(
                (&claims["sub"], &claims["aud"]),
                (&json!(subject), &json!(resource))
            );
            assert!(token != ann.expose() && token != bob.expose());
        }
        assert_eq!(world.protected.issuer.counts().exchanges, 2);
        // Another token of the same principal may have other rights, so it gets a session of its
        // own.
        work(&upstream, &showing("ann", &world.token_of("ann")))
            .await
            .unwrap();
        assert_eq!(world.protected.issuer.counts().exchanges, 3);
        // Expired tokens are exchanged again, if the caller's own token is still valid.
        world.protected.issuer.expire();
        let ended = work(&upstream, &showing("ann", &ann)).await.unwrap_err();
        assert!(ended.contains("invalid_grant"), "{ended}");
        let fresh = world.token_of("ann");
        work(&upstream, &showing("ann", &fresh)).await.unwrap();
        assert_eq!(status(&upstream).state, ServerState::Connected);
    }
}

/// A caller without a token is refused; no other credentials are used.
#[tokio::test]
async fn a_caller_without_a_token_is_refused() {
    let world = World::start(STATELESS).await;
    let exchange = Identity::Exchange { audience: None };
    let upstream = world
        .connected(exchange, Some(world.configured_client()))
        .await;
    for caller in [Caller::default(), named("ann")] {
        let told = work(&upstream, &caller).await.unwrap_err();
        assert!(told.contains("requires a token of each caller"), "{told}");
    }
    assert_eq!(world.tokens(), Vec::<String>::new());
    assert_eq!(status(&upstream).state, ServerState::Connected);
}

/// Callers' tokens are sent only to the configured authorization server, not to one that the server
/// names.
#[tokio::test]
async fn tokens_are_exchanged_where_that_is_configured_only() {
    let world = World::start(STATELESS).await;
    let unregistered = client("gateway", Some("s3cret"));
    let other = Client {
        issuer: Some("https://as.example".to_owned()),
        ..unregistered.clone()
    };
    for (client, reason) in [(unregistered, "is not configured"), (other, "is for")] {
        let exchange = Identity::Exchange { audience: None };
        let upstream = world.connected(exchange, Some(client)).await;
        let ann = showing("ann", &world.token_of("ann"));
        let told = work(&upstream, &ann).await.unwrap_err();
        assert!(told.contains(reason), "{told}");
    }
    assert_eq!(world.protected.issuer.counts().exchanges, 0);
}

/// AUTH06-09: a token is forwarded only if its audience equals the configured one, byte by byte.
#[tokio::test]
async fn a_token_is_passed_on_to_its_own_audience_only() {
    for revision in [STATELESS, LEGACY] {
        let world = World::start(revision).await;
        let audience = world.protected.server.url();
        let forward = Identity::Forward {
            audience: audience.clone(),
        };
        let upstream = world.connected(forward, None).await;
        let token = world.protected.issuer.issue_to("ann", &audience, "");
        let good = showing("ann", &Credential::new(token.clone(), &audience));
        work(&upstream, &good).await.unwrap();
        assert_eq!(world.tokens(), std::slice::from_ref(&token));
        for other in [
            format!("{audience}/"),
            US.to_owned(),
            audience.to_uppercase(),
        ] {
            let bad = showing("ann", &Credential::new(token.clone(), &other));
            let told = work(&upstream, &bad).await.unwrap_err();
            assert!(told.contains("not forwarded"), "{told}");
            assert!(!told.contains(&token), "{told}");
        }
        assert!(work(&upstream, &named("ann")).await.is_err());
        assert_eq!(world.tokens().len(), 1);
        world.protected.issuer.expire();
        let told = work(&upstream, &good).await.unwrap_err();
        assert!(told.contains("refuses the caller's own token"), "{told}");
    }
}
