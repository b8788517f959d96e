//! Tokens that must be refused, one test for each defect. Unless the signature is the defect, the
//! token is signed with the issuer's own key, so that nothing else is wrong with it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};
use plexus_mcp_oauth::jwt::{Audience, Claims};
use plexus_mcp_oauth::keys::SigningKey;

use crate::world::World;

/// A valid token is accepted; after `change` to its claims it is refused.
async fn refused_when(change: impl FnOnce(&mut Claims, &World)) {
    let world = World::start().await;
    let mut claims = world.claims();
    world
        .accepts(&world.issuer.sign(Header::default(), &claims))
        .await;
    change(&mut claims, &world);
    world
        .refuses(&world.issuer.sign(Header::default(), &claims))
        .await;
}

/// AUTH03-09, AUTH06-07
#[tokio::test]
async fn an_expired_token() {
    refused_when(|claims, _| claims.exp = Some(1_000_000)).await;
}

/// AUTH03-11: a token that never expires is refused.
#[tokio::test]
async fn a_token_without_an_end() {
    refused_when(|claims, _| claims.exp = None).await;
}

/// AUTH06-07
#[tokio::test]
async fn a_token_that_is_not_valid_yet() {
    refused_when(|claims, _| claims.nbf = Some(u64::MAX / 4)).await;
}

/// AUTH06-07, AUTH06-08, AUTH06-09, SEC-05, TRAP: a token of another resource.
#[tokio::test]
async fn a_token_for_another_server() {
    refused_when(|claims, _| claims.aud = Audience::One("https://other.example/mcp".to_owned()))
        .await;
}

/// AUTH06-06: the audience must be the URL of the resource, byte for byte.
#[tokio::test]
async fn a_token_for_a_similar_url() {
    refused_when(|claims, world| claims.aud = Audience::One(format!("{}/", world.url))).await;
    refused_when(|claims, world| {
        let origin = world.url.strip_suffix("/mcp").unwrap();
        claims.aud = Audience::One(origin.to_owned());
    })
    .await;
}

/// AUTH06-07
#[tokio::test]
async fn a_token_without_an_audience() {
    refused_when(|claims, _| claims.aud = Audience::default()).await;
}

/// AUTH26-05, AUTH06-08: the signature is valid, the `iss` claim is not.
#[tokio::test]
async fn a_token_of_another_issuer() {
    refused_when(|claims, _| claims.iss = "https://evil.example".to_owned()).await;
    refused_when(|claims, world| claims.iss = format!("{}/", world.issuer.issuer())).await;
}

/// ELIC-21: the user is identified by `sub`, so a token needs one.
#[tokio::test]
async fn a_token_without_a_subject() {
    refused_when(|claims, _| claims.sub = None).await;
    refused_when(|claims, _| claims.sub = Some("x".repeat(300))).await;
}

/// SEC-05
#[tokio::test]
async fn an_unsigned_token() {
    let world = World::start().await;
    let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&world.claims()).unwrap());
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None","typ":"JWT"}"#,
        r#"{"typ":"JWT"}"#,
    ] {
        let header = URL_SAFE_NO_PAD.encode(header);
        world.refuses(&format!("{header}.{claims}.")).await;
        world.refuses(&format!("{header}.{claims}")).await;
    }
}

/// SEC-05: a public key is not accepted as an HMAC secret.
#[tokio::test]
async fn a_token_signed_with_the_public_key() {
    let world = World::start().await;
    let keys = world.issuer.keys();
    let public = serde_json::to_vec(&keys.keys[0]).unwrap();
    for secret in [&public[..], b"", b"secret"] {
        let mut header = Header::default();
        header.kid.clone_from(&keys.keys[0].common.key_id);
        let key = EncodingKey::from_secret(secret);
        let token = jsonwebtoken::encode(&header, &world.claims(), &key).unwrap();
        world.refuses(&token).await;
    }
}

/// SEC-05: keys in the header of the token are ignored.
#[tokio::test]
async fn a_token_signed_with_another_key() {
    let world = World::start().await;
    let (other, _) = SigningKey::generate().unwrap();
    for kid in [Some("k1".to_owned()), Some("k9".to_owned()), None] {
        let header = Header {
            kid,
            jwk: Some(other.public().unwrap()),
            jku: Some("https://evil.example/keys".to_owned()),
            ..Header::default()
        };
        world
            .refuses(&other.sign(header, &world.claims()).unwrap())
            .await;
    }
}

/// EMA-03: a JWT that the issuer signed for another purpose is not an access token.
#[tokio::test]
async fn another_kind_of_jwt_of_the_issuer() {
    let world = World::start().await;
    for typ in ["dpop+jwt", "oauth-id-jag+jwt", "logout+jwt", "secevent+jwt"] {
        let header = Header {
            typ: Some(typ.to_owned()),
            ..Header::default()
        };
        world
            .refuses(&world.issuer.sign(header, &world.claims()))
            .await;
    }
}

/// A token that is too long is refused before parsing, even with a valid signature.
#[tokio::test]
async fn an_oversized_token() {
    let world = World::start().await;
    let mut claims = world.claims();
    claims.client_id = Some("x".repeat(20_000));
    world
        .refuses(&world.issuer.sign(Header::default(), &claims))
        .await;
}

#[tokio::test]
async fn garbage() {
    let world = World::start().await;
    for garbage in [
        "x",
        "..",
        "a.b.c",
        "eyJ.eyJ.",
        "plexus_x.y",
        "💥".escape_unicode().to_string().as_str(),
    ] {
        world.refuses(garbage).await;
    }
}

/// The claims of a signed token were changed.
#[tokio::test]
async fn a_token_with_other_claims_than_were_signed() {
    let world = World::start().await;
    let token = world.token("alice");
    let parts: Vec<_> = token.split('.').collect();
    let mut claims = world.claims();
    claims.sub = Some("root".to_owned());
    let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).unwrap());
    world
        .refuses(&format!("{}.{claims}.{}", parts[0], parts[2]))
        .await;
}
