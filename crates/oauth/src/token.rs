//! Requests to token endpoints.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use serde::{Deserialize, Deserializer};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::ambient::Ambient;
use crate::answer::{self, refusal};
use crate::client_auth::authenticate;
use crate::dpop::{self, Proven};
use crate::error::OAuthError;
use crate::keys::SigningKey;
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;

pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const WHAT: &str = "token endpoint";
const FORM: &str = "application/x-www-form-urlencoded";

/// The fields of a form.
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

    fn encode(&self) -> Bytes {
        let fields = self.0.iter().map(|(name, value)| (name, value.expose()));
        Serializer::new(String::new())
            .extend_pairs(fields)
            .finish()
            .into()
    }
}

/// One request for a token, and its repetition where the server wants a nonce.
#[derive(Debug, Clone)]
pub(crate) struct TokenCall {
    pub(crate) endpoint: Url,
    pub(crate) form: Form,
    /// Who asks; none where the form says it already.
    pub(crate) client: Option<Registration>,
    pub(crate) key: Option<SigningKey>,
    pub(crate) nonce: Option<String>,
}

/// What an answer leads to.
pub(crate) enum Answered {
    /// The same again, with the nonce that came.
    Again(Box<Request<Bytes>>),
    Token(Box<TokenAnswer>),
}

/// What a token endpoint gives.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) access_token: Secret,
    pub(crate) token_type: Option<String>,
    #[serde(default, deserialize_with = "lenient_seconds")]
    pub(crate) expires_in: Option<u64>,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) scope: Option<Scopes>,
    pub(crate) issued_token_type: Option<String>,
}

impl TokenCall {
    pub(crate) fn request(&self, ambient: &dyn Ambient) -> Result<Request<Bytes>, OAuthError> {
        let mut form = self.form.clone();
        let mut headers = HeaderMap::new();
        let endpoint = self.endpoint.as_str();
        if let Some(client) = &self.client {
            authenticate(client, endpoint, &mut form, &mut headers, ambient)?;
        }
        if let Some(key) = &self.key {
            let proven = Proven {
                method: "POST",
                url: endpoint,
                token: None,
                nonce: self.nonce.as_deref(),
            };
            let proof = dpop::proof(key, proven, ambient)?;
            let proof = HeaderValue::try_from(proof);
            headers.insert(
                DPOP,
                proof.map_err(|error| answer::malformed("proof", &error))?,
            );
        }
        let mut request = answer::post(&self.endpoint, FORM, form.encode())?;
        request.headers_mut().extend(headers);
        Ok(request)
    }

    /// A nonce is given once; who wants another one after that is not answered again.
    pub(crate) fn answered(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<Answered, OAuthError> {
        if response.status() == StatusCode::OK {
            return Ok(Answered::Token(Box::new(answer::json(WHAT, response)?)));
        }
        let error = refusal(WHAT, response);
        let wants_nonce =
            matches!(&error, OAuthError::Refused { code, .. } if code == "use_dpop_nonce");
        let nonce = response.headers().get(DPOP_NONCE);
        let nonce = nonce.and_then(|nonce| nonce.to_str().ok());
        match nonce {
            Some(nonce) if wants_nonce && self.key.is_some() && self.nonce.is_none() => {
                self.nonce = Some(nonce.to_owned());
                Ok(Answered::Again(Box::new(self.request(ambient)?)))
            }
            _ => Err(error),
        }
    }
}

/// Some servers give a number as a string; what is no number says nothing.
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
        reason = "seconds are whole, and what is out of range becomes the nearest"
    )]
    Ok(match Seconds::deserialize(deserializer)? {
        Seconds::Number(seconds) => Some(seconds as u64),
        Seconds::Text(text) => text.parse().ok(),
        Seconds::Other(_) => None,
    })
}
