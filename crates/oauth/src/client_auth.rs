use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use jsonwebtoken::Header;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::byte_serialize;

use crate::ambient::{Ambient, random_token};
use crate::error::OAuthError;
use crate::keys::SigningKey;
use crate::metadata::ServerMetadata;
use crate::registration::Registration;
use crate::secret::Secret;
use crate::token::Form;

/// The lifetime of a client assertion.
const ASSERTION_LIFETIME_SECONDS: u64 = 120;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AuthMethod {
    /// No authentication: a public client.
    #[serde(rename = "none")]
    None,
    /// The client secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// The client secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// A JWT that is signed with the client's key (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// A private key that a client authenticates with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientKey {
    /// The key in PEM.
    pub pem: Secret,
    /// The signature algorithm, such as ES256.
    pub algorithm: String,
    /// The key id at the authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

impl AuthMethod {
    /// The name of the method in OAuth metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Chooses the best method that the server supports and that the client has the credentials for.
    pub(crate) fn choose(
        server: &ServerMetadata,
        has_secret: bool,
        has_key: bool,
    ) -> Result<Self, OAuthError> {
        let candidates: &[Self] = match (has_key, has_secret) {
            (true, _) => &[Self::PrivateKeyJwt],
            (false, true) => &[Self::Basic, Self::Post],
            (false, false) => &[Self::None],
        };
        let is_supported =
            |method: &&Self| server.supports_auth_method(method.as_str()).unwrap_or(true);
        // Many authorization servers accept public clients without listing the method.
        let chosen = candidates.iter().find(is_supported).copied();
        chosen
            .or((!has_key && !has_secret).then_some(Self::None))
            .ok_or_else(|| OAuthError::Unsupported {
                issuer: server.issuer.clone(),
                what: "the authentication method of the configured client",
            })
    }

    /// Chooses the method for a new client registration.
    pub(crate) fn to_register(server: &ServerMetadata) -> Result<Self, OAuthError> {
        let candidates = [Self::None, Self::Basic, Self::Post];
        let is_supported =
            |method: &Self| server.supports_auth_method(method.as_str()).unwrap_or(true);
        let chosen = candidates.into_iter().find(is_supported);
        chosen.ok_or_else(|| OAuthError::Unsupported {
            issuer: server.issuer.clone(),
            what: "clients without a private key",
        })
    }
}

/// Adds the client's credentials to a token request.
pub(crate) fn authenticate(
    client: &Registration,
    token_endpoint: &str,
    form: &mut Form,
    headers: &mut HeaderMap,
    ambient: &dyn Ambient,
) -> Result<(), OAuthError> {
    let secret = || {
        client.client_secret.as_ref().ok_or(OAuthError::Malformed {
            what: "registration of the client",
            reason: "it has no secret".to_owned(),
        })
    };
    match client.method {
        AuthMethod::None => form.add("client_id", &client.client_id),
        AuthMethod::Post => {
            form.add("client_id", &client.client_id);
            form.add("client_secret", secret()?.expose());
        }
        AuthMethod::Basic => {
            // RFC 6749 §2.3.1: both are form-encoded first.
            let id: String = byte_serialize(client.client_id.as_bytes()).collect();
            let password: String = byte_serialize(secret()?.expose().as_bytes()).collect();
            let credentials = STANDARD.encode(format!("{id}:{password}"));
            let mut value =
                HeaderValue::try_from(format!("Basic {credentials}")).map_err(|_never| {
                    OAuthError::Key("the client id or secret is not valid in a header".to_owned())
                })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        AuthMethod::PrivateKeyJwt => {
            let assertion = client_assertion(client, token_endpoint, ambient)?;
            form.add("client_id", &client.client_id);
            form.add("client_assertion_type", ASSERTION_TYPE);
            form.add("client_assertion", &assertion);
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
    jti: String,
}

/// The signed client assertion. Its audience is the issuer, so that the host of a token endpoint
/// cannot use it at another authorization server.
fn client_assertion(
    client: &Registration,
    token_endpoint: &str,
    ambient: &dyn Ambient,
) -> Result<String, OAuthError> {
    let key = client.key.as_ref();
    let key = key.ok_or_else(|| OAuthError::Key("the client has no key".to_owned()))?;
    let mut header = Header::default();
    header.kid.clone_from(&key.key_id);
    let now = ambient.now();
    let aud = if client.issuer.is_empty() {
        token_endpoint
    } else {
        &client.issuer
    };
    let claims = Assertion {
        iss: &client.client_id,
        sub: &client.client_id,
        aud,
        iat: now,
        exp: now + ASSERTION_LIFETIME_SECONDS,
        jti: random_token(ambient),
    };
    SigningKey::from_pem(&key.pem, &key.algorithm)?.sign(header, &claims)
}

#[cfg(test)]
mod tests;
