//! Who issues tokens, and how they are checked.

use std::sync::Arc;

use jsonwebtoken::jwk::JwkSet;
use plexus_oauth::jwt::{self, Expected, JwtError};
use plexus_oauth::{Guard, Reach, Secret};
use url::Url;

use crate::clock::now;
use crate::introspection::Introspector;
use crate::keys::Keys;
use crate::resource_server::SettingsError;
use crate::verified::{Rejected, Verified};
use crate::web::Web;

/// An authorization server whose tokens are taken.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Issuer {
    /// Who it is, byte by byte as its tokens name it.
    pub issuer: String,
    /// How its tokens are checked.
    pub check: Check,
}

/// How tokens are checked.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a token is checked here or by its issuer"
)]
pub enum Check {
    /// By its signature.
    Signature {
        /// Where the issuer's keys are; found out if it is not said.
        jwks_uri: Option<String>,
    },
    /// By asking the issuer (RFC 7662), which knows of tokens that were taken back.
    Introspection(Introspection),
}

/// As whom an issuer is asked about tokens.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "these are what RFC 7662 needs to be asked"
)]
pub struct Introspection {
    /// Where; found out if it is not said.
    pub endpoint: Option<String>,
    /// The client that may ask.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
}

impl Issuer {
    /// One whose tokens are signed with keys that are found out.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            check: Check::Signature { jwks_uri: None },
        }
    }

    /// The same, checked like this.
    #[must_use]
    pub fn checked_by(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
}

/// Checks the tokens of one issuer for one resource.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) issuer: String,
    by: By,
}

#[derive(Debug)]
enum By {
    Signature(Arc<Keys>),
    Introspection(Box<Introspector>),
}

impl Judge {
    pub(crate) fn new(issuer: &Issuer, web: &Web) -> Result<Self, SettingsError> {
        address("issuer", &issuer.issuer)?;
        let by = match &issuer.check {
            Check::Signature { jwks_uri } => {
                let place = jwks_uri.as_deref().map(|text| address("jwks_uri", text));
                By::Signature(Keys::new(&issuer.issuer, place.transpose()?, web.clone()))
            }
            Check::Introspection(settings) => {
                let place = settings.endpoint.as_deref();
                let place = place.map(|text| address("introspection endpoint", text));
                let issuer = &issuer.issuer;
                let introspector =
                    Introspector::new(issuer, place.transpose()?, settings, web.clone());
                By::Introspection(Box::new(introspector))
            }
        };
        Ok(Self {
            issuer: issuer.issuer.clone(),
            by,
        })
    }

    /// Whether it can tell what a token is worth that does not say whose it is.
    pub(crate) fn takes_opaque(&self) -> bool {
        matches!(self.by, By::Introspection(_))
    }

    /// What `token` is worth at `resource`.
    pub(crate) async fn verify(&self, token: &str, resource: &str) -> Result<Verified, Rejected> {
        match &self.by {
            By::Introspection(introspector) => introspector.verify(token, resource).await,
            By::Signature(keys) => {
                let known = keys.current().await.map_err(Rejected::Unknown)?;
                let mut verdict = self.signed(token, &known, resource);
                if verdict == Err(JwtError::UnknownKey)
                    && let Some(newer) = keys.newer(&known).await
                {
                    verdict = self.signed(token, &newer, resource);
                }
                let claims = verdict.map_err(|error| Rejected::invalid(error.to_string()))?;
                Verified::of(&self.issuer, &claims)
            }
        }
    }

    fn signed(&self, token: &str, keys: &JwkSet, resource: &str) -> Result<jwt::Claims, JwtError> {
        let header = jwt::header(token)?;
        // Other things are signed with the same keys. Many issuers give access tokens no type, or
        // the one of any JWT, though.
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

/// An address that somebody configured: it may lead anywhere, if nobody can read along.
fn address(what: &'static str, text: &str) -> Result<Url, SettingsError> {
    let checked = Guard::new(Reach::Loopback).check(text);
    // A space would make principals ambiguous; no address has one.
    let checked = checked.map_err(|error| error.to_string()).and_then(|url| {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        is_plain
            .then_some(url)
            .ok_or_else(|| "it has characters that no address has".to_owned())
    });
    checked.map_err(|reason| SettingsError::Address {
        what,
        address: text.to_owned(),
        reason,
    })
}
