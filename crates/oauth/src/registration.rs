use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::address::Reach;
use crate::client_auth::{AuthMethod, ClientKey};
use crate::error::OAuthError;
use crate::http_exchange::{self, error_response};
use crate::metadata::ServerMetadata;
use crate::scopes::Scopes;
use crate::secret::Secret;

const RESPONSE_OF: &str = "registration of the client";

/// The registration of a client at one authorization server. It is never used at another (AUTH26-07,
/// AUTH26-08).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Registration {
    /// The issuer that it is registered at.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// When the secret expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
    /// The private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ClientKey>,
    /// How it authenticates.
    pub method: AuthMethod,
    /// The registered redirect URI, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
}

impl Registration {
    /// A public client.
    pub(crate) fn public(issuer: &str, client_id: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: None,
            secret_expires_at: None,
            key: None,
            method: AuthMethod::None,
            redirect_uri: None,
        }
    }

    /// Whether it can be used at `issuer` with `redirect_uri`, and its secret has not expired.
    pub(crate) fn is_usable_for(&self, issuer: &str, redirect_uri: &str, now: u64) -> bool {
        self.issuer == issuer
            && self.redirect_uri.as_deref() == Some(redirect_uri)
            && self.secret_expires_at.is_none_or(|expires| expires > now)
    }
}

/// The metadata of a client: sent in a registration (RFC 7591), or published at the URL that is its
/// client id (CIMD).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// The URL of the published document (AUTH11-07).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The name that users are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The redirect URIs.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// The grant types that it uses.
    #[serde(default)]
    pub grant_types: Vec<String>,
    /// The response types that it uses.
    #[serde(default)]
    pub response_types: Vec<String>,
    /// How it authenticates at the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// `native` or `web` (AUTH26-09).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    /// The scopes that it may request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
}

impl ClientMetadata {
    /// The metadata of a client with this name and this redirect URI.
    pub fn new(client_name: &str, redirect_uri: &str) -> Self {
        // A redirect to this machine belongs to a native program, any other to a web service.
        let is_local = Url::parse(redirect_uri).is_ok_and(|url| match url.host() {
            Some(url::Host::Ipv4(address)) => {
                Reach::required_for(address.into()) == Some(Reach::Loopback)
            }
            Some(url::Host::Ipv6(address)) => {
                Reach::required_for(address.into()) == Some(Reach::Loopback)
            }
            Some(url::Host::Domain(name)) => name == "localhost",
            None => true,
        });
        Self {
            client_id: None,
            client_name: Some(client_name.to_owned()),
            redirect_uris: vec![redirect_uri.to_owned()],
            grant_types: vec!["authorization_code".to_owned(), "refresh_token".to_owned()],
            response_types: vec!["code".to_owned()],
            token_endpoint_auth_method: None,
            application_type: Some(if is_local { "native" } else { "web" }.to_owned()),
            scope: None,
        }
    }
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: u64,
    token_endpoint_auth_method: Option<AuthMethod>,
}

/// The request that registers a client.
pub(crate) fn request(
    endpoint: &Url,
    metadata: &ClientMetadata,
) -> Result<Request<Bytes>, OAuthError> {
    let body = serde_json::to_vec(metadata);
    let body = body.map_err(|error| http_exchange::malformed(RESPONSE_OF, &error))?;
    http_exchange::post(endpoint, "application/json", Bytes::from(body))
}

/// Decodes the response to a registration request.
pub(crate) fn decode_response(
    response: &Response<Bytes>,
    server: &ServerMetadata,
    requested: &ClientMetadata,
) -> Result<Registration, OAuthError> {
    if !matches!(response.status(), StatusCode::OK | StatusCode::CREATED) {
        return Err(error_response(RESPONSE_OF, response));
    }
    let registered: RegistrationResponse = http_exchange::decode_json(RESPONSE_OF, response)?;
    let has_secret = registered.client_secret.is_some();
    let method = registered
        .token_endpoint_auth_method
        .unwrap_or(if has_secret {
            AuthMethod::Basic
        } else {
            AuthMethod::None
        });
    if matches!(method, AuthMethod::Basic | AuthMethod::Post) && !has_secret {
        return Err(http_exchange::malformed(
            RESPONSE_OF,
            &"it has no client secret",
        ));
    }
    Ok(Registration {
        issuer: server.issuer.clone(),
        client_id: registered.client_id,
        client_secret: registered.client_secret,
        secret_expires_at: Some(registered.client_secret_expires_at).filter(|at| *at != 0),
        key: None,
        method,
        redirect_uri: requested.redirect_uris.first().cloned(),
    })
}
