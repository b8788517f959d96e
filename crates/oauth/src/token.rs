//! Requests to token endpoints.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use serde::{Deserialize, Deserializer};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::ambient::Ambient;
use crate::client_auth::authenticate;
use crate::dpop::{self, ProofRequest};
use crate::error::OAuthError;
use crate::http_exchange::{self, error_response};
use crate::keys::SigningKey;
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;

pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const RESPONSE_OF: &str = "token endpoint";
const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form-encoded request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(&'static str, Secret)>);

impl Form {
    pub(crate) fn of_grant(grant_type: &str) -> Self {
        let mut form = Self::default();
        form.add("grant_type", grant_type);
        form
    }

    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.0.push((name, Secret::new(value)));
    }

    pub(crate) fn add_some(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// The fields, for tests: their values are secrets.
    #[cfg(test)]
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, String)> {
        let fields = self.0.iter();
        fields.map(|(name, value)| ((*name).to_owned(), value.expose().to_owned()))
    }

    fn encode(&self) -> Bytes {
        let fields = self.0.iter().map(|(name, value)| (name, value.expose()));
        Serializer::new(String::new())
            .extend_pairs(fields)
            .finish()
            .into()
    }
}

/// A request to a token endpoint. It is repeated once if the server requires a DPoP nonce.
#[derive(Debug, Clone)]
pub(crate) struct TokenRequest {
    pub(crate) endpoint: Url,
    pub(crate) form: Form,
    /// The client to authenticate as; `None` if the form names it already.
    pub(crate) client: Option<Registration>,
    pub(crate) key: Option<SigningKey>,
    pub(crate) nonce: Option<String>,
}

/// The outcome of a response of a token endpoint.
pub(crate) enum TokenOutcome {
    /// Send the request again, with the nonce of the response.
    Retry(Box<Request<Bytes>>),
    Token(Box<TokenResponse>),
}

/// A token response (RFC 6749 §5.1).
#[derive(Debug, Deserialize)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: Secret,
    pub(crate) token_type: Option<String>,
    #[serde(default, deserialize_with = "lenient_seconds")]
    pub(crate) expires_in: Option<u64>,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) scope: Option<Scopes>,
    pub(crate) issued_token_type: Option<String>,
}

impl TokenRequest {
    pub(crate) fn request(&self, ambient: &dyn Ambient) -> Result<Request<Bytes>, OAuthError> {
        let mut form = self.form.clone();
        let mut headers = HeaderMap::new();
        let endpoint = self.endpoint.as_str();
        if let Some(client) = &self.client {
            authenticate(client, endpoint, &mut form, &mut headers, ambient)?;
        }
        if let Some(key) = &self.key {
            let proven = ProofRequest {
                method: "POST",
                url: endpoint,
                token: None,
                nonce: self.nonce.as_deref(),
            };
            let proof = dpop::create_proof(key, proven, ambient)?;
            let proof = HeaderValue::try_from(proof);
            headers.insert(
                DPOP,
                proof.map_err(|error| http_exchange::malformed("proof", &error))?,
            );
        }
        let mut request = http_exchange::post(&self.endpoint, FORM_CONTENT_TYPE, form.encode())?;
        request.headers_mut().extend(headers);
        Ok(request)
    }

    /// Handles a response. A second demand for a nonce is an error.
    pub(crate) fn handle_response(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<TokenOutcome, OAuthError> {
        if response.status() == StatusCode::OK {
            return Ok(TokenOutcome::Token(Box::new(http_exchange::decode_json(
                RESPONSE_OF,
                response,
            )?)));
        }
        let error = error_response(RESPONSE_OF, response);
        let requires_nonce =
            matches!(&error, OAuthError::Refused { code, .. } if code == "use_dpop_nonce");
        let nonce = response.headers().get(DPOP_NONCE);
        let nonce = nonce.and_then(|nonce| nonce.to_str().ok());
        match nonce {
            Some(nonce) if requires_nonce && self.key.is_some() && self.nonce.is_none() => {
                self.nonce = Some(nonce.to_owned());
                Ok(TokenOutcome::Retry(Box::new(self.request(ambient)?)))
            }
            _ => Err(error),
        }
    }
}

/// Decodes a number of seconds. Some servers send a string; any other type counts as absent.
fn lenient_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Number(f64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds are whole, and a value out of range is saturated"
    )]
    Ok(match Seconds::deserialize(deserializer)? {
        Seconds::Number(seconds) => Some(seconds as u64),
        Seconds::Text(text) => text.parse().ok(),
        Seconds::Other(_) => None,
    })
}
