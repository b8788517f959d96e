//! Tokens that are bound to a key (DPoP, RFC 9449).

use std::cell::Cell;

use jsonwebtoken::Header;
use plexus_mcp_access::Options;
use plexus_mcp_oauth::Ambient;
use plexus_mcp_oauth::dpop::{self, ProofRequest};
use plexus_mcp_oauth::jwt::Confirmation;
use plexus_mcp_oauth::keys::SigningKey;
use plexus_testkit::{HttpRequest, HttpResponse};

use crate::world::{World, initialize_request, principal_service};

/// A fixed clock, and a counter instead of random bytes.
struct FixedAmbient {
    now: u64,
    count: Cell<u8>,
}

impl Ambient for FixedAmbient {
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
    ambient: FixedAmbient,
}

impl Holder {
    async fn new() -> Self {
        let requires = |options: &mut Options| options.requires_dpop = true;
        let world = World::with(principal_service(), requires).await;
        let (key, _) = SigningKey::generate().unwrap();
        let mut claims = world.claims();
        let jkt = key.thumbprint().unwrap();
        claims.cnf = Some(Confirmation { jkt });
        let token = world.issuer.sign(Header::default(), &claims);
        let ambient = FixedAmbient {
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
        let proven = ProofRequest {
            method: "POST",
            url: &self.world.url,
            token: Some(&self.token),
            nonce,
        };
        dpop::create_proof(key, proven, &self.ambient).unwrap()
    }

    fn request(&self, scheme: &str, proof: Option<&str>) -> HttpRequest {
        let request = initialize_request(&self.world.client());
        let request = request.header("authorization", format!("{scheme} {}", self.token));
        match proof {
            Some(proof) => request.header("dpop", proof),
            None => request,
        }
    }

    async fn send(&self, proof: &str) -> HttpResponse {
        self.request("DPoP", Some(proof)).send().await
    }

    /// The nonce that the server requires in a proof.
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

fn error(answer: &HttpResponse) -> &str {
    let challenge = answer.header("www-authenticate").unwrap();
    challenge.split('"').nth(1).unwrap()
}

/// A proof with the nonce of the server is accepted once only.
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

/// A stolen token is useless without its key.
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

/// A proof is for one method and one URL.
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

/// A server that requires DPoP refuses a token that is not bound to a key.
#[tokio::test]
async fn a_token_that_is_not_bound_to_a_key() {
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
