//! Token issuers, and how their tokens are verified.

use std::sync::Arc;

use jsonwebtoken::jwk::JwkSet;
use plexus_mcp_oauth::jwt::{self, Expected, JwtError};
use plexus_mcp_oauth::{Reach, Secret, UrlPolicy};
use url::Url;

use crate::clock::now;
use crate::introspection::Introspector;
use crate::keys::Keys;
use crate::resource_server::SettingsError;
use crate::verified::{Rejected, Verified};
use crate::web::Web;

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Issuer {
    /// The issuer identifier, byte by byte as in the `iss` claim of its tokens.
    pub issuer: String,
    /// How tokens of this issuer are verified.
    pub check: Check,
}

/// How the tokens of an issuer are verified.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a token is verified here or by its issuer; there is no third way"
)]
pub enum Check {
    /// Verify the signature of the token, a JWT.
    Signature {
        /// The URL of the issuer's JSON Web Key Set; `None` takes it from the issuer's metadata.
        jwks_uri: Option<String>,
    },
    /// Ask the issuer about each token (RFC 7662), which also detects revoked tokens.
    Introspection(Introspection),
}

/// Token introspection (RFC 7662): the endpoint of an issuer, and the credentials for it.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "RFC 7662 needs these and no more"
)]
pub struct Introspection {
    /// The URL of the introspection endpoint; `None` takes it from the issuer's metadata.
    pub endpoint: Option<String>,
    /// The client id for the introspection endpoint.
    pub client_id: String,
    /// The client secret for the introspection endpoint.
    pub client_secret: Secret,
}

impl Issuer {
    /// An issuer of signed tokens. The URL of its keys is taken from its metadata.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            check: Check::Signature { jwks_uri: None },
        }
    }

    /// Sets how the tokens of this issuer are verified.
    #[must_use]
    pub fn checked_by(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
}

/// Verifies the tokens of one issuer.
#[derive(Debug)]
pub(crate) struct TokenVerifier {
    pub(crate) issuer: String,
    method: VerificationMethod,
}

#[derive(Debug)]
enum VerificationMethod {
    Signature(Arc<Keys>),
    Introspection(Box<Introspector>),
}

impl TokenVerifier {
    pub(crate) fn new(issuer: &Issuer, web: &Web) -> Result<Self, SettingsError> {
        parse_url("issuer", &issuer.issuer)?;
        let method = match &issuer.check {
            Check::Signature { jwks_uri } => {
                let jwks_uri = jwks_uri.as_deref().map(|text| parse_url("jwks_uri", text));
                let jwks_uri = jwks_uri.transpose()?;
                VerificationMethod::Signature(Keys::new(&issuer.issuer, jwks_uri, web.clone()))
            }
            Check::Introspection(settings) => {
                let endpoint = settings.endpoint.as_deref();
                let endpoint = endpoint.map(|text| parse_url("introspection endpoint", text));
                let endpoint = endpoint.transpose()?;
                let introspector =
                    Introspector::new(&issuer.issuer, endpoint, settings, web.clone());
                VerificationMethod::Introspection(Box::new(introspector))
            }
        };
        Ok(Self {
            issuer: issuer.issuer.clone(),
            method,
        })
    }

    /// Whether opaque tokens can be verified, which do not name their issuer.
    pub(crate) fn accepts_opaque_tokens(&self) -> bool {
        matches!(self.method, VerificationMethod::Introspection(_))
    }

    /// Verifies `token` for `resource`.
    pub(crate) async fn verify(&self, token: &str, resource: &str) -> Result<Verified, Rejected> {
        match &self.method {
            VerificationMethod::Introspection(introspector) => {
                introspector.verify(token, resource).await
            }
            VerificationMethod::Signature(keys) => {
                let known = keys.current().await.map_err(Rejected::Unknown)?;
                let mut claims = self.verify_jwt(token, &known, resource);
                if claims == Err(JwtError::UnknownKey)
                    && let Some(newer) = keys.newer(&known).await
                {
                    claims = self.verify_jwt(token, &newer, resource);
                }
                let claims = claims.map_err(|error| Rejected::invalid(error.to_string()))?;
                Verified::from_claims(&self.issuer, &claims)
            }
        }
    }

    fn verify_jwt(
        &self,
        token: &str,
        keys: &JwkSet,
        resource: &str,
    ) -> Result<jwt::Claims, JwtError> {
        let header = jwt::header(token)?;
        // Issuers sign JWTs for other purposes with the same keys; those have another type. Many
        // issuers give access tokens no type, or the general type `JWT`.
        let typ = header.typ.as_deref().unwrap_or("JWT");
        let typ = typ.strip_prefix("application/").unwrap_or(typ);
        if !["JWT", "at+jwt"]
            .iter()
            .any(|known| typ.eq_ignore_ascii_case(known))
        {
            return Err(JwtError::Type);
        }
        let audience = [resource];
        jwt::verify(token, keys, &Expected::new(&self.issuer, &audience), now())
    }
}

/// Parses a URL of the configuration: any host, but HTTPS unless the host is loopback.
fn parse_url(what: &'static str, text: &str) -> Result<Url, SettingsError> {
    let checked = UrlPolicy::new(Reach::Loopback).check(text);
    // A principal is issuer, space, subject: a space in the issuer would make it ambiguous.
    let checked = checked.map_err(|error| error.to_string()).and_then(|url| {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        is_plain
            .then_some(url)
            .ok_or_else(|| "a URL consists of printable ASCII characters without spaces".to_owned())
    });
    checked.map_err(|reason| SettingsError::Address {
        what,
        address: text.to_owned(),
        reason,
    })
}
