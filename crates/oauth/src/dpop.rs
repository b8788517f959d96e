//! Proofs that a token is used by whom it was issued to (RFC 9449).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Header;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ambient::{Ambient, unguessable};
use crate::error::OAuthError;
use crate::jwt::{self, JwtError};
use crate::keys::{SigningKey, thumbprint};

const TYPE: &str = "dpop+jwt";
/// How old or how young a proof may be, in seconds.
const FRESH: u64 = 300;

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
pub struct Proven<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its address; query and fragment do not count.
    pub url: &'a str,
    /// The access token it presents.
    pub token: Option<&'a str>,
    /// What the server wants to see in the proof.
    pub nonce: Option<&'a str>,
}

/// What a good proof shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// The thumbprint of the key, to be held against the token's.
    pub jkt: String,
    /// The proof's own name, which must not come twice.
    pub jti: String,
}

/// A proof for one request.
///
/// # Errors
/// The key cannot sign.
pub fn proof(
    key: &SigningKey,
    request: Proven<'_>,
    ambient: &dyn Ambient,
) -> Result<String, OAuthError> {
    let header = Header {
        typ: Some(TYPE.to_owned()),
        jwk: Some(key.public()?),
        ..Header::default()
    };
    let claims = Proof {
        jti: unguessable(ambient),
        htm: request.method.to_owned(),
        htu: bare(request.url).to_owned(),
        iat: ambient.now(),
        ath: request.token.map(token_hash),
        nonce: request.nonce.map(str::to_owned),
    };
    key.sign(header, &claims)
}

/// Checks a proof that came with a request. Whether it was seen before is the caller's to know.
///
/// # Errors
/// It is no good proof of this request.
pub fn check(proof: &str, request: Proven<'_>, now: u64) -> Result<Shown, JwtError> {
    let header = jwt::header(proof)?;
    if header.typ.as_deref() != Some(TYPE) {
        return Err(JwtError::Type);
    }
    let key = header.jwk.ok_or(JwtError::UnknownKey)?;
    let claims: Proof = jwt::signed_claims(proof, &key, header.alg)?;
    if claims.htm != request.method || bare(&claims.htu) != bare(request.url) {
        return Err(JwtError::Audience);
    }
    if claims.iat.abs_diff(now) > FRESH {
        return Err(JwtError::Expired);
    }
    if request.token.is_some() && claims.ath != request.token.map(token_hash) {
        return Err(JwtError::Signature);
    }
    if request.nonce.is_some() && claims.nonce.as_deref() != request.nonce {
        return Err(JwtError::NotYet);
    }
    Ok(Shown {
        jkt: thumbprint(&key).map_err(|_unusable| JwtError::UnknownKey)?,
        jti: claims.jti,
    })
}

fn token_hash(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(token))
}

fn bare(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::tests::Still;

    const REQUEST: Proven<'static> = Proven {
        method: "POST",
        url: "https://s.example/mcp?x=1",
        token: Some("token"),
        nonce: Some("nonce"),
    };

    #[test]
    fn a_proof_is_good_for_its_own_request_only() {
        let (key, _) = SigningKey::generate().unwrap();
        let ambient = Still::at(1000);
        let proof = proof(&key, REQUEST, &ambient).unwrap();
        let shown = check(&proof, REQUEST, 1000).unwrap();
        assert_eq!(shown.jkt, key.thumbprint().unwrap());

        let other = |change: fn(&mut Proven<'static>)| {
            let mut request = REQUEST;
            change(&mut request);
            check(&proof, request, 1000)
        };
        assert!(other(|request| request.method = "GET").is_err());
        assert!(other(|request| request.url = "https://s.example/other").is_err());
        assert!(other(|request| request.token = Some("another")).is_err());
        assert!(other(|request| request.nonce = Some("another")).is_err());
        assert!(other(|request| request.url = "https://s.example/mcp").is_ok());
        assert_eq!(
            check(&proof, REQUEST, 1000 + FRESH + 1),
            Err(JwtError::Expired)
        );
    }

    #[test]
    fn every_proof_is_another() {
        let (key, _) = SigningKey::generate().unwrap();
        let ambient = Still::at(1000);
        let jti = |proof: &str| check(proof, REQUEST, 1000).unwrap().jti;
        let first = proof(&key, REQUEST, &ambient).unwrap();
        let second = proof(&key, REQUEST, &ambient).unwrap();
        assert_ne!(jti(&first), jti(&second));
    }
}
