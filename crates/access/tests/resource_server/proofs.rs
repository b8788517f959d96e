//! Tokens that are bound to a key.

use std::cell::Cell;

use jsonwebtoken::Header;
use plexus_access::Options;
use plexus_oauth::Ambient;
use plexus_oauth::dpop::{self, Proven};
use plexus_oauth::jwt::Confirmation;
use plexus_oauth::keys::SigningKey;
use plexus_testkit::{Answer, HttpRequest};

use crate::world::{World, greeting, who};

/// A clock, and chance.
struct Real {
    now: u64,
    count: Cell<u8>,
}

impl Ambient for Real {
    fn now(&self) -> u64 {
        self.now
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.count.set(self.count.get() + 1);
        bytes.fill(self.count.get());
    }
}

/// A client with a token that is bound to its key.
struct Holder {
    world: World,
    key: SigningKey,
    token: String,
    ambient: Real,
}

impl Holder {
    async fn new() -> Self {
        let requires = |options: &mut Options| options.requires_dpop = true;
        let world = World::with(who(), requires).await;
        let (key, _) = SigningKey::generate().unwrap();
        let mut claims = world.claims();
        let jkt = key.thumbprint().unwrap();
        claims.cnf = Some(Confirmation { jkt });
        let token = world.issuer.sign(Header::default(), &claims);
        let ambient = Real {
            now: std::fs::metadata(world.home.path())
                .unwrap()
                .modified()
                .unwrap()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_secs(),
            count: Cell::new(0),
        };
        Self {
            world,
            key,
            token,
            ambient,
        }
    }

    fn proof(&self, key: &SigningKey, nonce: Option<&str>) -> String {
        let proven = Proven {
            method: "POST",
            url: &self.world.url,
            token: Some(&self.token),
            nonce,
        };
        dpop::proof(key, proven, &self.ambient).unwrap()
    }

    fn request(&self, scheme: &str, proof: Option<&str>) -> HttpRequest {
        let request = greeting(&self.world.client());
        let request = request.header("authorization", format!("{scheme} {}", self.token));
        match proof {
            Some(proof) => request.header("dpop", proof),
            None => request,
        }
    }

    async fn send(&self, proof: &str) -> Answer {
        self.request("DPoP", Some(proof)).send().await
    }

    /// What the server wants to see in a proof.
    async fn nonce(&self) -> String {
        let refused = self.send(&self.proof(&self.key, None)).await;
        assert_eq!(refused.status(), 401);
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("DPoP error=\"use_dpop_nonce\""),
            "{challenge}"
        );
        refused.header("dpop-nonce").unwrap().to_owned()
    }
}

fn error(answer: &Answer) -> &str {
    let challenge = answer.header("www-authenticate").unwrap();
    challenge.split('"').nth(1).unwrap()
}

/// The proof is wanted, then good, and good once only.
#[tokio::test]
async fn a_replayed_proof() {
    let holder = Holder::new().await;
    let nonce = holder.nonce().await;
    let proof = holder.proof(&holder.key, Some(&nonce));
    assert_eq!(holder.send(&proof).await.status(), 200);
    let again = holder.send(&proof).await;
    assert_eq!(again.status(), 401);
    assert_eq!(error(&again), "invalid_dpop_proof");
    let another = holder.proof(&holder.key, Some(&nonce));
    assert_eq!(holder.send(&another).await.status(), 200);
}

/// Who stole a token has not stolen the key.
#[tokio::test]
async fn a_stolen_token() {
    let holder = Holder::new().await;
    let nonce = holder.nonce().await;
    let (thief, _) = SigningKey::generate().unwrap();
    let stolen = holder.send(&holder.proof(&thief, Some(&nonce))).await;
    assert_eq!(error(&stolen), "invalid_dpop_proof");
    let as_bearer = holder.request("Bearer", None).send().await;
    assert_eq!(as_bearer.status(), 401);
    assert_eq!(error(&as_bearer), "invalid_token");
    let without = holder.request("DPoP", None).send().await;
    assert_eq!(error(&without), "invalid_dpop_proof");
}

/// A proof is for one method and one address.
#[tokio::test]
async fn a_proof_of_another_request() {
    let holder = Holder::new().await;
    let nonce = holder.nonce().await;
    let proof = holder.proof(&holder.key, Some(&nonce));
    let request = holder.world.client().delete();
    let request = request.header("authorization", format!("DPoP {}", holder.token));
    let answer = request.header("dpop", &proof).send().await;
    assert_eq!(error(&answer), "invalid_dpop_proof");
    assert_eq!(
        holder.send(&proof).await.status(),
        200,
        "it was not used up"
    );
}

/// Where keys are wanted, a token without one is not enough.
#[tokio::test]
async fn a_token_that_is_bound_to_nothing() {
    let holder = Holder::new().await;
    let plain = holder.world.token("alice");
    let answer = holder.world.try_token(&plain).await;
    assert_eq!(answer.status(), 401);
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(
        challenge.starts_with("DPoP error=\"invalid_token\""),
        "{challenge}"
    );
    assert!(
        challenge.contains(r#"algs="ES256 EdDSA RS256""#),
        "{challenge}"
    );
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    let metadata = holder
        .world
        .client()
        .at(metadata)
        .get()
        .send()
        .await
        .text()
        .await;
    assert!(
        metadata.contains(r#""dpop_bound_access_tokens_required":true"#),
        "{metadata}"
    );
}
