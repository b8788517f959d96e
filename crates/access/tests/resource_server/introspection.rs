//! Tokens that are verified by introspection (RFC 7662).

use std::time::Duration;

use plexus_mcp_access::{Check, Introspection, Issuer, Options};
use plexus_mcp_oauth::Secret;
use plexus_testkit::authorization_server::Behaviour;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::world::{World, initialize_request, later, principal_service};

async fn with_introspection(client_secret: &str) -> World {
    with_issuer(Behaviour::default(), client_secret).await
}

async fn with_issuer(behaviour: Behaviour, client_secret: &str) -> World {
    let client_secret = Secret::new(client_secret);
    let change = |options: &mut Options| {
        let issuer = options.issuers[0].issuer.clone();
        let check = Check::Introspection(Introspection {
            endpoint: None,
            client_id: "gateway".to_owned(),
            client_secret,
        });
        options.issuers = vec![Issuer::new(issuer).checked_by(check)];
    };
    World::with_issuer(behaviour, principal_service(), change).await
}

/// A revoked token is refused; responses are cached, so not every request asks the issuer.
#[tokio::test]
async fn a_revoked_token_is_refused() {
    let world = with_introspection("hush").await;
    let token = world.token("alice");
    for _ in 0..3 {
        world.accepts(&token).await;
    }
    assert_eq!(world.issuer.counts().questions, 1);
    world.issuer.expire();
    later(16).await;
    world.refuses(&token).await;
    assert_eq!(world.issuer.counts().questions, 2);
}

/// The issuer is asked once about an invalid token, however often it comes.
#[tokio::test]
async fn an_invalid_token_is_remembered_for_some_time() {
    let world = with_introspection("hush").await;
    for _ in 0..3 {
        world.refuses("made-up").await;
    }
    assert_eq!(world.issuer.counts().questions, 1);
    later(16).await;
    world.refuses("made-up").await;
    assert_eq!(world.issuer.counts().questions, 2);
}

/// Invalid tokens that the issuer is slow to answer about do not lock out a caller that was admitted
/// before.
#[tokio::test]
async fn a_flood_of_invalid_tokens_does_not_lock_out_known_callers() {
    let behaviour = Behaviour {
        ignores_invalid_tokens: true,
        ..Behaviour::default()
    };
    let world = with_issuer(behaviour, "hush").await;
    let token = world.token("alice");
    world.accepts(&token).await;
    later(16).await;
    let mut flood = JoinSet::new();
    for n in 0..20 {
        let request = initialize_request(&world.client_with(&format!("made-up-{n}")));
        flood.spawn(request.send());
    }
    world.issuer.wait_for(|counts| counts.questions >= 13).await;
    let accepted = timeout(Duration::from_secs(20), world.accepts(&token));
    accepted.await.expect("the token is verified in time");
}

/// AUTH06-07, SEC-05: an active token for another audience is refused.
#[tokio::test]
async fn a_token_for_another_server_is_refused() {
    let world = with_introspection("hush").await;
    let token = world
        .issuer
        .issue_to("alice", "https://other.example/mcp", "mcp");
    world.refuses(&token).await;
    world.refuses("made-up").await;
}

/// A token of an unknown issuer is sent to no issuer.
#[tokio::test]
async fn a_token_of_another_issuer_is_not_asked_about() {
    let world = with_introspection("hush").await;
    let other = World::start().await;
    world.refuses(&other.token("alice")).await;
    world.refuses(&"x".repeat(20_000)).await;
    assert_eq!(world.issuer.counts().questions, 0);
}

/// An issuer that does not accept our credentials verifies no token, so every request is refused.
#[tokio::test]
async fn with_a_wrong_client_secret_every_request_is_refused() {
    let world = with_introspection("wrong").await;
    let answer = world.try_token(&world.token("alice")).await;
    assert_eq!(answer.status(), 503);
}
