use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::ambient::Ambient;
use crate::dpop::{self, ProofRequest};
use crate::error::OAuthError;
use crate::http_exchange::malformed;
use crate::keys::SigningKey;
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;
use crate::token::{DPOP, TokenResponse};

/// A token counts as expired this long before its end; for short-lived tokens, a quarter of the
/// lifetime.
const EXPIRY_MARGIN_SECONDS: u64 = 30;

/// An access token, and the data that is needed to renew it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// The client registration that the token was issued to.
    pub registration: Registration,
    /// The URL for its renewal.
    pub token_endpoint: String,
    /// The URL for its revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The resource that it is for, as the resource metadata names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The access token.
    pub access_token: Secret,
    /// How it is sent.
    pub kind: TokenKind,
    /// When it expires, in seconds since 1970, if the authorization server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// When it should be renewed, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_at: Option<u64>,
    /// The refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// The requested scopes.
    #[serde(default)]
    pub requested: Scopes,
    /// The granted scopes, if the authorization server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Scopes>,
    /// The private key that it is bound to, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
}

/// How a token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "MCP has these two")]
pub enum TokenKind {
    /// In the `Authorization` header alone.
    Bearer,
    /// With a DPoP proof for each request.
    DPoP,
}

impl Session {
    /// The authorization headers for a request. `nonce` is the last DPoP nonce of the server.
    ///
    /// # Errors
    /// The token is not valid in a header, or the key cannot sign.
    pub fn headers(
        &self,
        method: &str,
        url: &str,
        nonce: Option<&str>,
        ambient: &dyn Ambient,
    ) -> Result<HeaderMap, OAuthError> {
        let token = self.access_token.expose();
        let mut headers = HeaderMap::with_capacity(2);
        let scheme = match self.kind {
            TokenKind::Bearer => "Bearer",
            TokenKind::DPoP => "DPoP",
        };
        headers.insert(
            AUTHORIZATION,
            sensitive_header(format!("{scheme} {token}"))?,
        );
        if self.kind == TokenKind::DPoP {
            let key = self.key.as_ref();
            let key = key.ok_or_else(|| OAuthError::Key("the session has no key".to_owned()))?;
            let proven = ProofRequest {
                method,
                url,
                token: Some(token),
                nonce,
            };
            let proof = dpop::create_proof(&SigningKey::restore(key)?, proven, ambient)?;
            headers.insert(DPOP, sensitive_header(proof)?);
        }
        Ok(headers)
    }

    /// Whether the token should be renewed, because it has expired or is about to.
    pub fn is_renewal_due(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|renew| renew <= now)
    }

    /// Replaces the token by that of a token response.
    pub(crate) fn apply(&mut self, answer: TokenResponse, now: u64) -> Result<(), OAuthError> {
        self.kind = match answer.token_type.as_deref() {
            Some(kind) if kind.eq_ignore_ascii_case("DPoP") && self.key.is_some() => {
                TokenKind::DPoP
            }
            Some(kind) if kind.eq_ignore_ascii_case("Bearer") => TokenKind::Bearer,
            None => TokenKind::Bearer,
            Some(_) => {
                return Err(malformed("token", &"its type is unknown"));
            }
        };
        if answer.access_token.expose().is_empty() {
            return Err(malformed("token", &"it is empty"));
        }
        sensitive_header(answer.access_token.expose().to_owned())?;
        self.access_token = answer.access_token;
        let life = answer.expires_in;
        self.expires_at = life.map(|life| now.saturating_add(life));
        self.renew_at =
            life.map(|life| now.saturating_add(life - EXPIRY_MARGIN_SECONDS.min(life / 4)));
        // Without a new refresh token, the old one stays valid (RFC 6749 §6).
        if answer.refresh_token.is_some() {
            self.refresh_token = answer.refresh_token;
        }
        if answer.scope.is_some() {
            self.granted = answer.scope;
        }
        Ok(())
    }
}

fn sensitive_header(text: String) -> Result<HeaderValue, OAuthError> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_invalid| malformed("token", &"it is not valid in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
