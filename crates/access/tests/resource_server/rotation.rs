//! Keys that change, and issuers that cannot be reached.

use jsonwebtoken::Header;
use plexus_mcp_access::{Check, Issuer};
use plexus_mcp_oauth::keys::SigningKey;

use crate::world::{World, later, principal_service};

/// The keys are fetched once for many requests, and again for a key that is new.
#[tokio::test]
async fn a_new_key_is_found() {
    let world = World::start().await;
    for _ in 0..5 {
        world.accepts(&world.token("alice")).await;
    }
    assert_eq!(world.issuer.counts().key_fetches, 1);
    let old = world.token("alice");
    world.issuer.rotate_key();
    later(11).await;
    world.accepts(&world.token("alice")).await;
    assert_eq!(world.issuer.counts().key_fetches, 2);
    world.refuses(&old).await;
}

/// Made-up key ids cause few fetches of keys.
#[tokio::test]
async fn made_up_keys_are_not_looked_for_again_and_again() {
    let world = World::start().await;
    world.accepts(&world.token("alice")).await;
    let (key, _) = SigningKey::generate().unwrap();
    for number in 0..20 {
        let header = Header {
            kid: Some(format!("made-up-{number}")),
            ..Header::default()
        };
        world
            .refuses(&key.sign(header, &world.claims()).unwrap())
            .await;
    }
    assert_eq!(world.issuer.counts().key_fetches, 1);
    world.accepts(&world.token("alice")).await;
}

/// A token that cannot be verified is refused, without a request to sign in again.
#[tokio::test]
async fn with_an_unreachable_issuer_every_request_is_refused() {
    let world = World::with(principal_service(), |options| {
        let issuer = options.issuers[0].issuer.clone();
        let jwks_uri = Some("http://127.0.0.1:1/jwks".to_owned());
        options.issuers = vec![Issuer::new(issuer).checked_by(Check::Signature { jwks_uri })];
    })
    .await;
    let answer = world.try_token(&world.token("alice")).await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.header("www-authenticate"), None);
}

/// SEC-07: metadata that names another issuer is rejected.
#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let world = World::with(principal_service(), |options| {
        let mut issuer = options.issuers[0].issuer.clone();
        issuer.push('/');
        options.issuers = vec![Issuer::new(issuer)];
    })
    .await;
    let mut claims = world.claims();
    claims.iss.push('/');
    let token = world.issuer.sign(Header::default(), &claims);
    assert_eq!(world.try_token(&token).await.status(), 503);
    assert_eq!(world.issuer.counts().key_fetches, 0);
}
