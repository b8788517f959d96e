//! Signing keys.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

use crate::error::OAuthError;
use crate::secret::Secret;

/// A private key with its signature algorithm.
#[derive(Clone)]
pub struct SigningKey {
    key: EncodingKey,
    algorithm: Algorithm,
}

impl SigningKey {
    /// Generates a key for ES256. Returns it also as text, for [`restore`](Self::restore).
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

    /// Restores an ES256 key from the text of [`generate`](Self::generate).
    ///
    /// # Errors
    /// The text is not a key.
    pub fn restore(text: &Secret) -> Result<Self, OAuthError> {
        let document = STANDARD.decode(text.expose());
        let document =
            document.map_err(|_malformed| OAuthError::Key("it is not base64".to_owned()))?;
        let key = Self {
            key: EncodingKey::from_ec_der(&document),
            algorithm: Algorithm::ES256,
        };
        key.public()?;
        Ok(key)
    }

    /// Parses a key in PEM for the named algorithm, such as ES256 or RS256.
    ///
    /// # Errors
    /// The text contains no such key, or the algorithm is symmetric or unknown.
    pub fn from_pem(pem: &Secret, algorithm: &str) -> Result<Self, OAuthError> {
        let unusable = |error: &dyn std::fmt::Display| OAuthError::Key(error.to_string());
        let algorithm: Algorithm = algorithm.parse().map_err(|error| unusable(&error))?;
        let bytes = pem.expose().as_bytes();
        let key = match algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                return Err(OAuthError::Key(format!(
                    "{algorithm:?} does not sign with a private key"
                )));
            }
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_pem(bytes),
            Algorithm::EdDSA => EncodingKey::from_ed_pem(bytes),
            _ => EncodingKey::from_rsa_pem(bytes),
        };
        let key = key.map_err(|error| unusable(&error))?;
        Ok(Self { key, algorithm })
    }

    /// The signature algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key.
    ///
    /// # Errors
    /// It cannot be derived.
    pub fn public(&self) -> Result<Jwk, OAuthError> {
        Jwk::from_encoding_key(&self.key, self.algorithm)
            .map_err(|error| OAuthError::Key(error.to_string()))
    }

    /// The thumbprint of the public key (RFC 7638), which tokens are bound to.
    ///
    /// # Errors
    /// See [`public`](Self::public).
    pub fn thumbprint(&self) -> Result<String, OAuthError> {
        thumbprint(&self.public()?)
    }

    /// Signs a JWT.
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
/// The key type has no thumbprint.
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
    fn a_restored_key_is_the_same_key() {
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
