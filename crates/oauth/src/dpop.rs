//! Proofs of possession (DPoP) of the key that a token is bound to (RFC 9449).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Header;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ambient::{Ambient, random_token};
use crate::error::OAuthError;
use crate::jwt::{self, JwtError};
use crate::keys::{SigningKey, thumbprint};

const JWT_TYPE: &str = "dpop+jwt";
/// How far the time of a proof may differ from the local time.
const PROOF_MAX_AGE_SECONDS: u64 = 300;

#[derive(Serialize, Deserialize)]
struct Proof {
    jti: String,
    htm: String,
    htu: String,
    iat: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

/// The request that a proof is for.
#[derive(Debug, Clone, Copy)]
pub struct ProofRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The URL; query and fragment are ignored.
    pub url: &'a str,
    /// The access token in the request.
    pub token: Option<&'a str>,
    /// The nonce that the server requires in the proof.
    pub nonce: Option<&'a str>,
}

/// The claims of a valid proof.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedProof {
    /// The thumbprint of the key. The caller compares it with that of the token.
    pub jkt: String,
    /// The id of the proof. The caller rejects an id that was used before.
    pub jti: String,
}

/// Creates a proof for one request.
///
/// # Errors
/// The key cannot sign.
pub fn create_proof(
    key: &SigningKey,
    request: ProofRequest<'_>,
    ambient: &dyn Ambient,
) -> Result<String, OAuthError> {
    let header = Header {
        typ: Some(JWT_TYPE.to_owned()),
        jwk: Some(key.public()?),
        ..Header::default()
    };
    let claims = Proof {
        jti: random_token(ambient),
        htm: request.method.to_owned(),
        htu: without_query(request.url).to_owned(),
        iat: ambient.now(),
        ath: request.token.map(token_hash),
        nonce: request.nonce.map(str::to_owned),
    };
    key.sign(header, &claims)
}

/// Verifies the proof of a request. The caller must check for replays.
///
/// # Errors
/// The proof is not valid for this request.
pub fn verify_proof(
    proof: &str,
    request: ProofRequest<'_>,
    now: u64,
) -> Result<VerifiedProof, JwtError> {
    let header = jwt::header(proof)?;
    if header.typ.as_deref() != Some(JWT_TYPE) {
        return Err(JwtError::Type);
    }
    let key = header.jwk.ok_or(JwtError::UnknownKey)?;
    let claims: Proof = jwt::signed_claims(proof, &key, header.alg)?;
    if claims.htm != request.method || without_query(&claims.htu) != without_query(request.url) {
        return Err(JwtError::Audience);
    }
    if claims.iat.abs_diff(now) > PROOF_MAX_AGE_SECONDS {
        return Err(JwtError::Expired);
    }
    if request.token.is_some() && claims.ath != request.token.map(token_hash) {
        return Err(JwtError::Signature);
    }
    if request.nonce.is_some() && claims.nonce.as_deref() != request.nonce {
        return Err(JwtError::NotYet);
    }
    Ok(VerifiedProof {
        jkt: thumbprint(&key).map_err(|_unusable| JwtError::UnknownKey)?,
        jti: claims.jti,
    })
}

fn token_hash(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(token))
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::tests::FixedAmbient;

    const REQUEST: ProofRequest<'static> = ProofRequest {
        method: "POST",
        url: "https://s.example/mcp?x=1",
        token: Some("token"),
        nonce: Some("nonce"),
    };

    #[test]
    fn a_proof_is_valid_for_its_own_request_only() {
        let (key, _) = SigningKey::generate().unwrap();
        let ambient = FixedAmbient::at(1000);
        let proof = create_proof(&key, REQUEST, &ambient).unwrap();
        let shown = verify_proof(&proof, REQUEST, 1000).unwrap();
        assert_eq!(shown.jkt, key.thumbprint().unwrap());

        let other = |change: fn(&mut ProofRequest<'static>)| {
            let mut request = REQUEST;
            change(&mut request);
            verify_proof(&proof, request, 1000)
        };
        assert!(other(|request| request.method = "GET").is_err());
        assert!(other(|request| request.url = "https://s.example/other").is_err());
        assert!(other(|request| request.token = Some("another")).is_err());
        assert!(other(|request| request.nonce = Some("another")).is_err());
        assert!(other(|request| request.url = "https://s.example/mcp").is_ok());
        assert_eq!(
            verify_proof(&proof, REQUEST, 1000 + PROOF_MAX_AGE_SECONDS + 1),
            Err(JwtError::Expired)
        );
    }

    #[test]
    fn every_proof_has_a_new_id() {
        let (key, _) = SigningKey::generate().unwrap();
        let ambient = FixedAmbient::at(1000);
        let jti = |proof: &str| verify_proof(proof, REQUEST, 1000).unwrap().jti;
        let first = create_proof(&key, REQUEST, &ambient).unwrap();
        let second = create_proof(&key, REQUEST, &ambient).unwrap();
        assert_ne!(jti(&first), jti(&second));
    }
}
