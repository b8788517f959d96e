//! Tokens that are signed claims: checked with the keys of who issued them (RFC 7519, RFC 9068).

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::scopes::Scopes;

/// The longest token that is looked at.
const LONGEST: usize = 16 * 1024;
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 60;

/// What a token must be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expected<'a> {
    /// Who must have issued it, byte by byte.
    pub issuer: &'a str,
    /// For whom it must have been issued: any of these.
    pub audience: &'a [&'a str],
    /// Its type, if it must have one.
    pub typ: Option<&'a str>,
}

impl<'a> Expected<'a> {
    /// A token of `issuer` for one of `audience`, of any type.
    pub fn new(issuer: &'a str, audience: &'a [&'a str]) -> Self {
        Self {
            issuer,
            audience,
            typ: None,
        }
    }
}

/// What a token says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// Who issued it.
    #[serde(default)]
    pub iss: String,
    /// Of whom it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// For whom it was issued.
    #[serde(default)]
    pub aud: Audience,
    /// Until when it holds, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// From when on it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// When it was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<u64>,
    /// Its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// Which client it was issued to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// What it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
    /// The same, as some issuers call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scp: Option<Scopes>,
    /// The key it is bound to.
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
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Audience {
    /// Whether `name` is among them.
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
    /// Its thumbprint.
    pub jkt: String,
}

/// Why a token is not accepted. For logs: whoever sent it learns only that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It is no signed JWT, is too long, or demands what we do not know.
    #[error("it is no token that can be checked")]
    Malformed,
    /// Its algorithm is none, or not one of private keys.
    #[error("its algorithm is not accepted")]
    Algorithm,
    /// No known key has its name; the keys may have changed.
    #[error("it is signed with an unknown key")]
    UnknownKey,
    /// The signature is not that of the key.
    #[error("its signature is wrong")]
    Signature,
    /// It is of another type.
    #[error("it is a token of another type")]
    Type,
    /// Somebody else issued it.
    #[error("it is of another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("it is for another audience")]
    Audience,
    /// Its time is over, or it does not say when that is.
    #[error("it has expired")]
    Expired,
    /// Its time is to come.
    #[error("it does not hold yet")]
    NotYet,
}

/// Checks `token` against the keys of its issuer, and gives what it says.
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
            Ok(claims) => return checked(claims, expected, now),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The claims of `token`, if `key` has signed it.
///
/// # Errors
/// It has not, or the algorithm is not one of private keys.
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
    // Times are checked against the time that was given to us.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    let decoded = jsonwebtoken::decode::<T>(token, &key, &validation);
    let decoded = decoded.map_err(|_invalid| JwtError::Signature)?;
    Ok(decoded.claims)
}

/// The header of `token`, if it is one that can be checked at all.
///
/// # Errors
/// It is not.
pub fn header(token: &str) -> Result<jsonwebtoken::Header, JwtError> {
    if token.len() > LONGEST {
        return Err(JwtError::Malformed);
    }
    let header = jsonwebtoken::decode_header(token).map_err(|_garbled| JwtError::Malformed)?;
    if header.crit.is_some() {
        return Err(JwtError::Malformed);
    }
    if is_symmetric(header.alg) {
        return Err(JwtError::Algorithm);
    }
    Ok(header)
}

fn checked(claims: Claims, expected: &Expected<'_>, now: u64) -> Result<Claims, JwtError> {
    if claims.iss != expected.issuer {
        return Err(JwtError::Issuer);
    }
    if !expected.audience.iter().any(|one| claims.aud.contains(one)) {
        return Err(JwtError::Audience);
    }
    if claims
        .exp
        .is_none_or(|exp| exp.saturating_add(LEEWAY) <= now)
    {
        return Err(JwtError::Expired);
    }
    let starts = claims.nbf.max(claims.iat);
    if starts.is_some_and(|starts| starts > now.saturating_add(LEEWAY)) {
        return Err(JwtError::NotYet);
    }
    Ok(claims)
}

/// A key that has a name signs only what names it, and one that has an algorithm only with that.
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
