use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::ambient::Ambient;
use crate::answer::malformed;
use crate::dpop::{self, Proven};
use crate::error::OAuthError;
use crate::keys::SigningKey;
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;
use crate::token::{DPOP, TokenAnswer};

/// How long before its end a token counts as used up, in seconds; of short lives, a quarter.
const MARGIN: u64 = 30;

/// A token, and all that is needed to renew it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// Who we are at the authorization server that issued it.
    pub registration: Registration,
    /// Where it is renewed.
    pub token_endpoint: String,
    /// Where it is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// What it is for, byte by byte as the resource names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The token.
    pub access_token: Secret,
    /// How it is presented.
    pub kind: TokenKind,
    /// Until when it holds, in seconds since 1970, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// From when on it should be renewed rather than used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_at: Option<u64>,
    /// What the next one is got with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// What was asked for.
    #[serde(default)]
    pub requested: Scopes,
    /// What was given, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Scopes>,
    /// The key that it is bound to, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
}

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "MCP has these two")]
pub enum TokenKind {
    /// By itself.
    Bearer,
    /// With a proof for each request.
    DPoP,
}

impl Session {
    /// What a request must carry. `nonce` is what the server last wanted to see in a proof.
    ///
    /// # Errors
    /// The token does not fit a header, or the key cannot sign.
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
        headers.insert(AUTHORIZATION, sensitive(format!("{scheme} {token}"))?);
        if self.kind == TokenKind::DPoP {
            let key = self.key.as_ref();
            let key = key.ok_or_else(|| OAuthError::Key("it is lost".to_owned()))?;
            let proven = Proven {
                method,
                url,
                token: Some(token),
                nonce,
            };
            let proof = dpop::proof(&SigningKey::restore(key)?, proven, ambient)?;
            headers.insert(DPOP, sensitive(proof)?);
        }
        Ok(headers)
    }

    /// Whether it is so near its end that it should not be used any more.
    pub fn is_used_up(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|renew| renew <= now)
    }

    /// Takes over what a token endpoint gave.
    pub(crate) fn take(&mut self, answer: TokenAnswer, now: u64) -> Result<(), OAuthError> {
        self.kind = match answer.token_type.as_deref() {
            Some(kind) if kind.eq_ignore_ascii_case("DPoP") && self.key.is_some() => {
                TokenKind::DPoP
            }
            Some(kind) if kind.eq_ignore_ascii_case("Bearer") => TokenKind::Bearer,
            None => TokenKind::Bearer,
            Some(_) => {
                return Err(malformed("token", &"it is of an unknown type"));
            }
        };
        if answer.access_token.expose().is_empty() {
            return Err(malformed("token", &"it is empty"));
        }
        sensitive(answer.access_token.expose().to_owned())?;
        self.access_token = answer.access_token;
        let life = answer.expires_in;
        self.expires_at = life.map(|life| now.saturating_add(life));
        self.renew_at = life.map(|life| now.saturating_add(life - MARGIN.min(life / 4)));
        // One that is not replaced goes on (RFC 6749 §6).
        if answer.refresh_token.is_some() {
            self.refresh_token = answer.refresh_token;
        }
        if answer.scope.is_some() {
            self.granted = answer.scope;
        }
        Ok(())
    }
}

fn sensitive(text: String) -> Result<HeaderValue, OAuthError> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_unfit| malformed("token", &"it does not fit a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
