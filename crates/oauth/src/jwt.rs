//! Verifies JWTs with the keys of their issuer (RFC 7519, RFC 9068).

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::scopes::Scopes;

/// The longest token that is parsed.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The tolerated clock skew.
const CLOCK_SKEW_SECONDS: u64 = 60;

/// The claims that a token must have to be accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expected<'a> {
    /// The issuer, compared byte by byte.
    pub issuer: &'a str,
    /// The accepted audiences.
    pub audience: &'a [&'a str],
    /// The required `typ` header; `None` accepts any type.
    pub typ: Option<&'a str>,
}

impl<'a> Expected<'a> {
    /// Accepts tokens of `issuer` for one of `audience`, of any type.
    pub fn new(issuer: &'a str, audience: &'a [&'a str]) -> Self {
        Self {
            issuer,
            audience,
            typ: None,
        }
    }
}

/// The claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// The issuer.
    #[serde(default)]
    pub iss: String,
    /// The subject: the user or client that the token represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// The audience.
    #[serde(default)]
    pub aud: Audience,
    /// The end of its validity, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// The start of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// The time of issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<u64>,
    /// The id of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The client that it was issued to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The scopes that it grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
    /// The scopes, under the name that some issuers use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scp: Option<Scopes>,
    /// The key that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnf: Option<Confirmation>,
}

/// One audience or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(
    clippy::exhaustive_enums,
    reason = "RFC 7519 §4.1.3 has these two forms"
)]
pub enum Audience {
    /// A single audience.
    One(String),
    /// A list of audiences.
    Several(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Audience {
    /// Whether `name` is one of the audiences.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|one| one == name),
        }
    }
}

/// The key that a token is bound to (RFC 9449 §6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The thumbprint of the key.
    pub jkt: String,
}

/// Why a token is not accepted. For logs only: the sender is not told the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It is not a signed JWT, is too long, or has critical extensions.
    #[error("it is not a valid JWT")]
    Malformed,
    /// Its algorithm is `none` or symmetric.
    #[error("its algorithm is not accepted")]
    Algorithm,
    /// No known key has its key id; the keys may have changed.
    #[error("it is signed with an unknown key")]
    UnknownKey,
    /// The signature is invalid.
    #[error("its signature is wrong")]
    Signature,
    /// It has another type.
    #[error("it has another type")]
    Type,
    /// It has another issuer.
    #[error("it has another issuer")]
    Issuer,
    /// It has another audience.
    #[error("it has another audience")]
    Audience,
    /// It has expired, or has no expiry time.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet")]
    NotYet,
}

/// Verifies the signature and the claims of `token`, and returns its claims.
///
/// # Errors
/// See [`JwtError`].
pub fn verify(
    token: &str,
    keys: &JwkSet,
    expected: &Expected<'_>,
    now: u64,
) -> Result<Claims, JwtError> {
    let header = header(token)?;
    if let Some(typ) = expected.typ {
        let given = header.typ.as_deref().unwrap_or_default();
        let given = given.strip_prefix("application/").unwrap_or(given);
        if !given.eq_ignore_ascii_case(typ) {
            return Err(JwtError::Type);
        }
    }
    let mut failure = JwtError::UnknownKey;
    for key in keys.keys.iter().filter(|key| may_have_signed(key, &header)) {
        match signed_claims::<Claims>(token, key, header.alg) {
            Ok(claims) => return check_claims(claims, expected, now),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The claims of `token`, if `key` has signed it.
///
/// # Errors
/// The signature is invalid, or the algorithm is symmetric.
pub fn signed_claims<T: DeserializeOwned>(
    token: &str,
    key: &Jwk,
    algorithm: Algorithm,
) -> Result<T, JwtError> {
    if is_symmetric(algorithm) {
        return Err(JwtError::Algorithm);
    }
    let key = DecodingKey::from_jwk(key).map_err(|_unusable| JwtError::UnknownKey)?;
    let mut validation = Validation::new(algorithm);
    // The caller checks the claims, with its own clock.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    let decoded = jsonwebtoken::decode::<T>(token, &key, &validation);
    let decoded = decoded.map_err(|_invalid| JwtError::Signature)?;
    Ok(decoded.claims)
}

/// The header of `token`.
///
/// # Errors
/// The token is malformed or too long, or its algorithm is not accepted.
pub fn header(token: &str) -> Result<jsonwebtoken::Header, JwtError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(JwtError::Malformed);
    }
    let header = jsonwebtoken::decode_header(token).map_err(|_malformed| JwtError::Malformed)?;
    if header.crit.is_some() {
        return Err(JwtError::Malformed);
    }
    if is_symmetric(header.alg) {
        return Err(JwtError::Algorithm);
    }
    Ok(header)
}

fn check_claims(claims: Claims, expected: &Expected<'_>, now: u64) -> Result<Claims, JwtError> {
    if claims.iss != expected.issuer {
        return Err(JwtError::Issuer);
    }
    if !expected.audience.iter().any(|one| claims.aud.contains(one)) {
        return Err(JwtError::Audience);
    }
    if claims
        .exp
        .is_none_or(|exp| exp.saturating_add(CLOCK_SKEW_SECONDS) <= now)
    {
        return Err(JwtError::Expired);
    }
    let starts = claims.nbf.max(claims.iat);
    if starts.is_some_and(|starts| starts > now.saturating_add(CLOCK_SKEW_SECONDS)) {
        return Err(JwtError::NotYet);
    }
    Ok(claims)
}

/// Whether `key` can be the key of a token with this header: the key id and the algorithm must match.
fn may_have_signed(key: &Jwk, header: &jsonwebtoken::Header) -> bool {
    let named = match (&header.kid, &key.common.key_id) {
        (Some(wanted), Some(name)) => wanted == name,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let algorithm = key.common.key_algorithm;
    named && algorithm.is_none_or(|algorithm| algorithm.to_string() == format!("{:?}", header.alg))
}

fn is_symmetric(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    )
}

#[cfg(test)]
mod tests;
