//! Tokens about which their issuer is asked.

use plexus_access::{Check, Introspection, Issuer, Options};
use plexus_oauth::Secret;

use crate::world::{World, later, who};

async fn asking(client_secret: &str) -> World {
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
    World::with(who(), change).await
}

/// A token that was taken back is worth nothing, and the issuer is not asked for every request.
#[tokio::test]
async fn a_token_holds_while_its_issuer_says_so() {
    let world = asking("hush").await;
    let token = world.token("alice");
    for _ in 0..3 {
        world.takes(&token).await;
    }
    assert_eq!(world.issuer.counts().questions, 1);
    world.issuer.expire();
    later(16).await;
    world.refuses(&token).await;
    assert_eq!(world.issuer.counts().questions, 2);
}

/// AUTH06-07, SEC-05: the issuer says that it holds, but not that it holds here.
#[tokio::test]
async fn a_token_for_another_server_is_refused() {
    let world = asking("hush").await;
    let token = world
        .issuer
        .issue_to("alice", "https://other.example/mcp", "mcp");
    world.refuses(&token).await;
    world.refuses("made-up").await;
}

/// Somebody else's token is shown to nobody.
#[tokio::test]
async fn a_token_of_another_issuer_is_not_asked_about() {
    let world = asking("hush").await;
    let other = World::start().await;
    world.refuses(&other.token("alice")).await;
    world.refuses(&"x".repeat(20_000)).await;
    assert_eq!(world.issuer.counts().questions, 0);
}

/// An issuer that does not know us tells nothing, so nobody is let in.
#[tokio::test]
async fn a_wrong_password_lets_nobody_in() {
    let world = asking("wrong").await;
    let answer = world.try_token(&world.token("alice")).await;
    assert_eq!(answer.status(), 503);
}
