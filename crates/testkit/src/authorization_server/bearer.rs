//! Validation of access tokens.

use http::{HeaderMap, Method};
use jsonwebtoken::jwk::JwkSet;
use plexus_mcp_oauth::dpop::{self, ProofRequest};
use plexus_mcp_oauth::jwt::{self, Claims, Expected};

use super::SharedState;
use super::endpoints::NONCE;
use super::state::now;

/// The public keys for the token signatures.
pub(super) fn keys(shared: &SharedState) -> JwkSet {
    let state = shared.state();
    let key = state.key.public();
    let mut key = key.unwrap_or_else(|error| panic!("the server has a key: {error}"));
    key.common.key_id = Some(state.key_name());
    JwkSet { keys: vec![key] }
}

/// The claims of a valid token.
pub(super) fn claims(shared: &SharedState, token: &str, resource: &str) -> Option<Claims> {
    let audience = [resource];
    let mut expected = Expected::new(&shared.issuer, &audience);
    expected.typ = Some("at+jwt");
    let claims = jwt::verify(token, &keys(shared), &expected, now()).ok()?;
    let id = claims.jti.as_deref()?;
    shared.state().live.contains_key(id).then_some(claims)
}

pub(super) fn admit(
    shared: &SharedState,
    headers: &HeaderMap,
    method: &Method,
    url: &str,
    resource: &str,
) -> Result<Claims, String> {
    let given = headers.get("authorization");
    let given = given.and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = given.and_then(|value| value.split_once(' ')) else {
        return Err("Bearer".to_owned());
    };
    let invalid = || format!(r#"{scheme} error="invalid_token""#);
    let claims = claims(shared, token, resource).ok_or_else(invalid)?;
    match &claims.cnf {
        None if scheme == "Bearer" => Ok(claims),
        Some(bound) if scheme == "DPoP" => {
            let proof = headers.get("dpop").and_then(|proof| proof.to_str().ok());
            let proven = ProofRequest {
                method: method.as_str(),
                url,
                token: Some(token),
                nonce: shared.behaviour.wants_nonce.then_some(NONCE),
            };
            let shown = dpop::verify_proof(proof.unwrap_or_default(), proven, now());
            let shown = shown.map_err(|_wrong| r#"DPoP error="use_dpop_nonce""#.to_owned())?;
            let is_new = shared.state().proofs.insert(shown.jti);
            if is_new && shown.jkt == bound.jkt {
                Ok(claims)
            } else {
                Err(invalid())
            }
        }
        _ => Err(invalid()),
    }
}
