//! Keys that sign.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

use crate::error::OAuthError;
use crate::secret::Secret;

/// A private key, and the algorithm it signs with.
#[derive(Clone)]
pub struct SigningKey {
    key: EncodingKey,
    algorithm: Algorithm,
}

impl SigningKey {
    /// A new key for ES256, and itself as text for [`restore`](Self::restore).
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<(Self, Secret), OAuthError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new())
            .map_err(|error| OAuthError::Key(error.to_string()))?;
        let text = Secret::new(STANDARD.encode(document.as_ref()));
        Ok((Self::restore(&text)?, text))
    }

    /// The ES256 key that [`generate`](Self::generate) gave as text.
    ///
    /// # Errors
    /// The text is none.
    pub fn restore(text: &Secret) -> Result<Self, OAuthError> {
        let document = STANDARD.decode(text.expose());
        let document = document.map_err(|_garbled| OAuthError::Key("it is garbled".to_owned()))?;
        let key = Self {
            key: EncodingKey::from_ec_der(&document),
            algorithm: Algorithm::ES256,
        };
        key.public()?;
        Ok(key)
    }

    /// The key in a PEM file, for the algorithm of this name, such as ES256 or RS256.
    ///
    /// # Errors
    /// The file holds no such key, or the algorithm is none that signs with a private key.
    pub fn from_pem(pem: &Secret, algorithm: &str) -> Result<Self, OAuthError> {
        let unusable = |error: &dyn std::fmt::Display| OAuthError::Key(error.to_string());
        let algorithm: Algorithm = algorithm.parse().map_err(|error| unusable(&error))?;
        let bytes = pem.expose().as_bytes();
        let key = match algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                return Err(OAuthError::Key(format!(
                    "{algorithm:?} is not an algorithm of private keys"
                )));
            }
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_pem(bytes),
            Algorithm::EdDSA => EncodingKey::from_ed_pem(bytes),
            _ => EncodingKey::from_rsa_pem(bytes),
        };
        let key = key.map_err(|error| unusable(&error))?;
        Ok(Self { key, algorithm })
    }

    /// The name of its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its public half.
    ///
    /// # Errors
    /// It has none that can be told.
    pub fn public(&self) -> Result<Jwk, OAuthError> {
        Jwk::from_encoding_key(&self.key, self.algorithm)
            .map_err(|error| OAuthError::Key(error.to_string()))
    }

    /// What a token is bound to that is bound to this key (RFC 7638).
    ///
    /// # Errors
    /// See [`public`](Self::public).
    pub fn thumbprint(&self) -> Result<String, OAuthError> {
        thumbprint(&self.public()?)
    }

    /// A signed JWT of this type.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, mut header: Header, claims: &impl Serialize) -> Result<String, OAuthError> {
        header.alg = self.algorithm;
        jsonwebtoken::encode(&header, claims, &self.key)
            .map_err(|error| OAuthError::Key(error.to_string()))
    }
}

/// The SHA-256 thumbprint of a public key (RFC 7638).
///
/// # Errors
/// It is no key that has one.
pub fn thumbprint(key: &Jwk) -> Result<String, OAuthError> {
    key.thumbprint(ThumbprintHash::SHA256)
        .map_err(|error| OAuthError::Key(error.to_string()))
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_after_it_was_stored() {
        let (key, text) = SigningKey::generate().unwrap();
        let again = SigningKey::restore(&text).unwrap();
        assert_eq!(key.thumbprint().unwrap(), again.thumbprint().unwrap());
        assert!(SigningKey::restore(&Secret::new("AAAA")).is_err());
        assert!(!format!("{key:?}{text:?}").contains(text.expose()));
    }

    #[test]
    fn only_private_keys_sign() {
        let pem = Secret::new("no key");
        for algorithm in ["none", "HS256", "ES256", "RS256", "EdDSA", "XY"] {
            assert!(
                SigningKey::from_pem(&pem, algorithm).is_err(),
                "{algorithm}"
            );
        }
    }
}
