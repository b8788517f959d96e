//! The base URL of a provider's API, and authentication.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request, Uri};
use plexus_mcp_client::http::Origin;

use super::error::ModelError;
use super::id::Provider;

/// The maximum length of a server's text in an error, in characters.
const MAX_ERROR_EXCERPT_CHARS: usize = 500;

/// The base URL of a provider's API.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// Without a trailing slash.
    url: String,
    pub(super) origin: Origin,
}

impl Base {
    /// Parses `url`. `setting` is the name of the setting, for the error.
    pub(super) fn parse(url: &str, setting: &'static str) -> Result<Self, ModelError> {
        let bad = |why: String| ModelError::BadUrl { setting, why };
        let uri: Uri = url
            .trim()
            .parse()
            .map_err(|_unparsable| bad("it is not a url".to_owned()))?;
        let origin = Origin::of(&uri).map_err(|error| bad(error.to_string()))?;
        if uri.query().is_some() {
            return Err(bad("it has a query".to_owned()));
        }
        let url = uri.to_string().trim_end_matches('/').to_owned();
        Ok(Self { url, origin })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// An API key. `Debug` does not show it.
#[derive(Clone)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The header that carries the key to `provider`; `None` if the key has characters that are not
    /// allowed in a header.
    fn header(&self, provider: Provider) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match provider {
            Provider::Anthropic => (HeaderName::from_static("x-api-key"), self.0.clone()),
            Provider::OpenAi => (AUTHORIZATION, format!("Bearer {}", self.0)),
        };
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The base URL and the key for one request.
#[derive(Debug, Clone)]
pub(super) struct ModelEndpoint {
    pub(super) provider: Provider,
    pub(super) base: Base,
    pub(super) key: Option<Key>,
}

impl ModelEndpoint {
    /// Makes a request for `path`: POST if it has a body, otherwise GET.
    pub(super) fn request(
        &self,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Request<Bytes>, ModelError> {
        let unsendable = || ModelError::BadUrl {
            setting: self.provider.base_variable(),
            why: "it does not make a valid request".to_owned(),
        };
        let url = format!("{}{path}", self.base.url);
        let request = match &body {
            Some(_) => Request::post(url)
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "text/event-stream"),
            None => Request::get(url).header(ACCEPT, "application/json"),
        };
        let mut request = request
            .body(body.unwrap_or_default())
            .map_err(|_invalid| unsendable())?;
        let headers = request.headers_mut();
        if self.provider == Provider::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = &self.key {
            let (name, value) = key
                .header(self.provider)
                .ok_or(ModelError::BadKey(self.provider))?;
            headers.insert(name, value);
        }
        Ok(request)
    }

    /// The text of a server as one line, without the key.
    pub(super) fn quoted(&self, said: &str) -> String {
        let said = match &self.key {
            Some(Key(key)) => said.replace(key.as_str(), "[key]"),
            None => said.to_owned(),
        };
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let mut line: String = said
            .trim()
            .chars()
            .take(MAX_ERROR_EXCERPT_CHARS)
            .map(plain)
            .collect();
        if line.len() < said.trim().len() {
            line.push_str("...");
        }
        line
    }
}
