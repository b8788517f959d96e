use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::address::Reach;
use crate::answer::{self, refusal};
use crate::client_auth::{AuthMethod, ClientKey};
use crate::error::OAuthError;
use crate::metadata::ServerMetadata;
use crate::scopes::Scopes;
use crate::secret::Secret;

const WHAT: &str = "registration of the client";

/// What a client is at one authorization server. Never used at another (AUTH26-07, AUTH26-08).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Registration {
    /// Where it is known.
    pub issuer: String,
    /// Its name there.
    pub client_id: String,
    /// What it proves itself with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// Until when the secret holds, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
    /// Or the key that it signs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ClientKey>,
    /// How it proves itself.
    pub method: AuthMethod,
    /// Where it may be sent back to, if it was registered for that.
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

    /// Whether it is still good, there, for coming back to `redirect_uri`.
    pub(crate) fn serves(&self, issuer: &str, redirect_uri: &str, now: u64) -> bool {
        self.issuer == issuer
            && self.redirect_uri.as_deref() == Some(redirect_uri)
            && self.secret_expires_at.is_none_or(|expires| expires > now)
    }
}

/// What a client says of itself, when it registers (RFC 7591) and in a document at its id (CIMD).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// The address of the document, if it is one (AUTH11-07).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// What users are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Where it may be sent back to.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// How it gets tokens.
    #[serde(default)]
    pub grant_types: Vec<String>,
    /// What it wants the sign-in page to answer.
    #[serde(default)]
    pub response_types: Vec<String>,
    /// How it proves who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// `native` or `web` (AUTH26-09).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    /// What it will ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
}

impl ClientMetadata {
    /// A client of this name that users come back to at `redirect_uri`.
    pub fn new(client_name: &str, redirect_uri: &str) -> Self {
        // A program on the user's machine is native, a service elsewhere is not.
        let is_local = Url::parse(redirect_uri).is_ok_and(|url| match url.host() {
            Some(url::Host::Ipv4(address)) => {
                Reach::needed(address.into()) == Some(Reach::Loopback)
            }
            Some(url::Host::Ipv6(address)) => {
                Reach::needed(address.into()) == Some(Reach::Loopback)
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
struct Registered {
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
    let body = body.map_err(|error| answer::malformed(WHAT, &error))?;
    answer::post(endpoint, "application/json", Bytes::from(body))
}

/// What the answer makes of the client.
pub(crate) fn registered(
    response: &Response<Bytes>,
    server: &ServerMetadata,
    asked: &ClientMetadata,
) -> Result<Registration, OAuthError> {
    if !matches!(response.status(), StatusCode::OK | StatusCode::CREATED) {
        return Err(refusal(WHAT, response));
    }
    let registered: Registered = answer::json(WHAT, response)?;
    let has_secret = registered.client_secret.is_some();
    let method = registered
        .token_endpoint_auth_method
        .unwrap_or(if has_secret {
            AuthMethod::Basic
        } else {
            AuthMethod::None
        });
    if matches!(method, AuthMethod::Basic | AuthMethod::Post) && !has_secret {
        return Err(answer::malformed(WHAT, &"it gives no client secret"));
    }
    Ok(Registration {
        issuer: server.issuer.clone(),
        client_id: registered.client_id,
        client_secret: registered.client_secret,
        secret_expires_at: Some(registered.client_secret_expires_at).filter(|at| *at != 0),
        key: None,
        method,
        redirect_uri: asked.redirect_uris.first().cloned(),
    })
}
