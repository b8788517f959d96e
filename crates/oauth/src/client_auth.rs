use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use jsonwebtoken::Header;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::byte_serialize;

use crate::ambient::{Ambient, unguessable};
use crate::error::OAuthError;
use crate::keys::SigningKey;
use crate::metadata::ServerMetadata;
use crate::registration::Registration;
use crate::secret::Secret;
use crate::token::Form;

/// How long an assertion of ours holds, in seconds.
const ASSERTION_LIFE: u64 = 120;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How a client proves at the token endpoint who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AuthMethod {
    /// Not at all: it is a public client.
    #[serde(rename = "none")]
    None,
    /// By its secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// By its secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// By a signature (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// A private key that a client proves with who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientKey {
    /// The key in PEM.
    pub pem: Secret,
    /// The algorithm to sign with, such as ES256.
    pub algorithm: String,
    /// The name under which the authorization server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

impl AuthMethod {
    /// The method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The best method that a client can use with what it has.
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
        let taken = |method: &&Self| server.takes_auth_method(method.as_str()).unwrap_or(true);
        // Many authorization servers take public clients and do not list that they do.
        let chosen = candidates.iter().find(taken).copied();
        chosen
            .or((!has_key && !has_secret).then_some(Self::None))
            .ok_or_else(|| OAuthError::Unsupported {
                issuer: server.issuer.clone(),
                what: "the way in which the configured client proves who it is",
            })
    }

    /// What a client that is yet to be registered should be registered with.
    pub(crate) fn to_register(server: &ServerMetadata) -> Result<Self, OAuthError> {
        let candidates = [Self::None, Self::Basic, Self::Post];
        let taken = |method: &Self| server.takes_auth_method(method.as_str()).unwrap_or(true);
        let chosen = candidates.into_iter().find(taken);
        chosen.ok_or_else(|| OAuthError::Unsupported {
            issuer: server.issuer.clone(),
            what: "clients without a key of their own",
        })
    }
}

/// Adds to a token request what shows whose it is.
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
            // RFC 6749 §2.3.1: both are encoded as in a form first.
            let id: String = byte_serialize(client.client_id.as_bytes()).collect();
            let password: String = byte_serialize(secret()?.expose().as_bytes()).collect();
            let credentials = STANDARD.encode(format!("{id}:{password}"));
            let mut value = HeaderValue::try_from(format!("Basic {credentials}"))
                .map_err(|_never| OAuthError::Key("it does not fit a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        AuthMethod::PrivateKeyJwt => {
            let assertion = assertion(client, token_endpoint, ambient)?;
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

/// The audience is the issuer, so that nobody who only hosts the endpoint can use it elsewhere.
fn assertion(
    client: &Registration,
    token_endpoint: &str,
    ambient: &dyn Ambient,
) -> Result<String, OAuthError> {
    let key = client.key.as_ref();
    let key = key.ok_or_else(|| OAuthError::Key("the client has none".to_owned()))?;
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
        exp: now + ASSERTION_LIFE,
        jti: unguessable(ambient),
    };
    SigningKey::from_pem(&key.pem, &key.algorithm)?.sign(header, &claims)
}
