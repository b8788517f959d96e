//! [`Models`]: sends requests to the providers of models.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use plexus_mcp_client::http::{
    HttpClient, HttpClientError, HttpClientOptions, HttpError, HttpResponse,
};
use serde::Deserialize;

use super::answer::AnswerStream;
use super::endpoint::{Base, Key, ModelEndpoint};
use super::error::ModelError;
use super::id::Provider;
use super::question::Question;
use super::{anthropic, openai};

/// How long a provider may send nothing before the request fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

/// The maximum size of a response that is not a stream, in bytes.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The maximum size of an event of a stream, in bytes.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// The configured providers of models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    inner: Arc<Inner>,
    response_timeout: Duration,
}

#[derive(Debug)]
struct Inner {
    anthropic: Configured,
    openai: Configured,
    /// Created for the first request, since this reads the certificates of the system.
    http: OnceLock<Result<HttpClient, HttpClientError>>,
}

/// The settings of a provider in the environment.
#[derive(Debug)]
struct Configured {
    base: Result<Base, ModelError>,
    key: Option<Key>,
    /// Whether the base URL is not the provider's default.
    has_custom_base_url: bool,
}

impl Models {
    /// Without keys: only models that need none can be used.
    pub fn none() -> Self {
        Self::from_environment(|_name| None)
    }

    /// Uses the keys and base URLs in the environment. `variable` looks up an environment variable.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name)?.into_string().ok();
        let configured = |provider: Provider| {
            let variable = provider.base_variable();
            let chosen = text(variable).filter(|url| !url.trim().is_empty());
            let base = Cow::from(chosen.as_deref().unwrap_or(provider.default_base()));
            Configured {
                base: Base::parse(&base, variable),
                key: text(provider.key_variable()).and_then(|key| Key::new(&key)),
                has_custom_base_url: chosen.is_some(),
            }
        };
        Self {
            inner: Arc::new(Inner {
                anthropic: configured(Provider::Anthropic),
                openai: configured(Provider::OpenAi),
                http: OnceLock::new(),
            }),
            response_timeout: RESPONSE_TIMEOUT,
        }
    }

    /// Sets how long a provider may send nothing before a request fails.
    #[must_use]
    pub fn with_response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Checks a base URL that a caller wants to use instead of the provider's.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn check_base_url(url: &str) -> Result<(), ModelError> {
        Base::parse(url, "base_url").map(drop)
    }

    /// Returns the base URL of a provider.
    ///
    /// # Errors
    /// The base URL in the environment is not valid.
    pub fn base_url(&self, provider: Provider) -> Result<&str, ModelError> {
        let base = self.configured(provider).base.as_ref();
        base.map(Base::url).map_err(Clone::clone)
    }

    /// Whether the provider can be used: there is a key for it, or its base URL is not the default,
    /// and so a key may not be needed.
    pub fn can_ask(&self, provider: Provider, base_url: Option<&str>) -> bool {
        let configured = self.configured(provider);
        configured.key.is_some() || configured.has_custom_base_url || base_url.is_some()
    }

    /// Sends a question to a model. Dropping the future, or later the answer, closes the connection.
    ///
    /// # Errors
    /// The provider gave no answer.
    pub async fn ask(&self, question: &Question) -> Result<AnswerStream, ModelError> {
        let provider = question.provider;
        let endpoint = self.endpoint(provider, question.base_url.as_deref())?;
        let (path, body) = match provider {
            Provider::Anthropic => (
                anthropic::PATH,
                serde_json::to_vec(&anthropic::body(question)),
            ),
            Provider::OpenAi => (
                openai::PATH,
                serde_json::to_vec(&openai::body(question, &endpoint)),
            ),
        };
        let body = body.map_err(|error| ModelError::Unreadable {
            provider,
            why: error.to_string(),
        })?;
        let response = self.send(&endpoint, path, Some(body.into())).await?;
        if !response.is_event_stream() {
            let kind = response.headers.get(CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok());
            return Err(ModelError::NoStream {
                provider,
                kind: endpoint.quoted(kind.unwrap_or("no content type")),
            });
        }
        Ok(AnswerStream::new(
            endpoint,
            response.events(),
            self.response_timeout,
        ))
    }

    /// Returns the names of a provider's models.
    ///
    /// # Errors
    /// The provider did not list its models.
    pub async fn list(&self, provider: Provider) -> Result<Vec<String>, ModelError> {
        #[derive(Deserialize)]
        struct ModelList {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
        }
        let endpoint = self.endpoint(provider, None)?;
        let response = self.send(&endpoint, provider.models_path(), None).await?;
        let body = self.whole(provider, response).await?;
        let listed: ModelList =
            serde_json::from_slice(&body).map_err(|error| ModelError::Unreadable {
                provider,
                why: error.to_string(),
            })?;
        Ok(listed.data.into_iter().map(|model| model.id).collect())
    }

    fn configured(&self, provider: Provider) -> &Configured {
        match provider {
            Provider::Anthropic => &self.inner.anthropic,
            Provider::OpenAi => &self.inner.openai,
        }
    }

    /// The endpoint of a request. The key is sent only to the configured origin: otherwise a caller
    /// could have it sent to a server of its own.
    fn endpoint(
        &self,
        provider: Provider,
        base_url: Option<&str>,
    ) -> Result<ModelEndpoint, ModelError> {
        let configured = self.configured(provider);
        if !self.can_ask(provider, base_url) {
            return Err(ModelError::NoKey(provider));
        }
        let usual = configured.base.as_ref();
        let base = match base_url {
            Some(url) => Base::parse(url, "base_url")?,
            None => usual.map_err(Clone::clone)?.clone(),
        };
        let is_usual = usual.is_ok_and(|usual| usual.origin == base.origin);
        let key = configured.key.clone().filter(|_| is_usual);
        Ok(ModelEndpoint {
            provider,
            base,
            key,
        })
    }

    fn http(&self) -> Result<&HttpClient, ModelError> {
        let client = self.inner.http.get_or_init(|| {
            let mut options = HttpClientOptions::default();
            options.max_body = MAX_BODY_BYTES;
            options.max_event = MAX_EVENT_BYTES;
            HttpClient::new(&options)
        });
        client
            .as_ref()
            .map_err(|error| ModelError::NoHttp(error.to_string()))
    }

    /// Sends a request, and returns the response if its status is a success.
    async fn send(
        &self,
        endpoint: &ModelEndpoint,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, ModelError> {
        let provider = endpoint.provider;
        let request = endpoint.request(path, body)?;
        let answered =
            tokio::time::timeout(self.response_timeout, self.http()?.send(request)).await;
        let response = match answered {
            Ok(answered) => answered.map_err(|cause| unreachable(provider, cause))?,
            Err(_elapsed) => {
                let after = self.response_timeout;
                return Err(ModelError::Silent { provider, after });
            }
        };
        if response.status == StatusCode::OK {
            return Ok(response);
        }
        Err(self.refusal(endpoint, response).await)
    }

    async fn refusal(&self, endpoint: &ModelEndpoint, response: HttpResponse) -> ModelError {
        let provider = endpoint.provider;
        let status = response.status;
        let retry_after = response.headers.get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(|value| value.chars().take(64).collect());
        let said = match self.whole(provider, response).await {
            Ok(body) => endpoint.quoted(&message(&body)),
            Err(_unread) => String::new(),
        };
        let said = match said.as_str() {
            "" => status.canonical_reason().unwrap_or("no reason").to_owned(),
            _ => said,
        };
        let is_about_key = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let status = status.as_u16();
        if is_about_key && endpoint.key.is_some() {
            return ModelError::Unauthorized {
                provider,
                status,
                said,
            };
        }
        ModelError::Refused {
            provider,
            status,
            retry_after,
            said,
        }
    }

    async fn whole(&self, provider: Provider, response: HttpResponse) -> Result<Bytes, ModelError> {
        match tokio::time::timeout(self.response_timeout, response.bytes()).await {
            Ok(body) => body.map_err(|cause| unreachable(provider, cause)),
            Err(_elapsed) => {
                let after = self.response_timeout;
                Err(ModelError::Silent { provider, after })
            }
        }
    }
}

fn unreachable(provider: Provider, cause: HttpError) -> ModelError {
    ModelError::Unreachable { provider, cause }
}

/// The message in the body of a refusal: that of its error object, or else the whole body.
fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: ErrorObject,
    }
    #[derive(Deserialize)]
    struct ErrorObject {
        message: String,
    }
    match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => refusal.error.message,
        Err(_other) => String::from_utf8_lossy(body).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `Debug` text of the models shows no keys.
    #[test]
    fn keys_do_not_show() {
        let models = Models::from_environment(|name| {
            name.ends_with("API_KEY").then(|| "sk-very-secret".into())
        });
        let endpoint = models.endpoint(Provider::OpenAi, None).unwrap();
        let request = endpoint.request("/x", None).unwrap();
        for text in [
            format!("{models:?}"),
            format!("{endpoint:?}"),
            format!("{request:?}"),
            endpoint.quoted("Incorrect API key provided: sk-very-secret."),
        ] {
            assert!(!text.contains("very-secret"), "{text}");
        }
    }

    /// A key is sent only to the configured origin, not to a base URL that a caller chose.
    #[test]
    fn keys_go_to_their_own_origin_only() {
        let models = Models::from_environment(|name| match name {
            "OPENAI_API_KEY" => Some("sk-secret".into()),
            "OPENAI_BASE_URL" => Some("https://models.example/v1/".into()),
            _ => None,
        });
        let key = |base_url| {
            let endpoint = models.endpoint(Provider::OpenAi, base_url).unwrap();
            endpoint.key.is_some()
        };
        assert!(key(None));
        assert!(key(Some("https://models.example/v2")));
        for elsewhere in [
            "https://evil.example/v1",
            "http://models.example/v1",
            "https://models.example:8443/v1",
            "https://models.example.evil.example/v1",
        ] {
            assert!(!key(Some(elsewhere)), "{elsewhere}");
        }
        assert_eq!(
            models.base_url(Provider::OpenAi).unwrap(),
            "https://models.example/v1"
        );
    }

    #[test]
    fn bad_addresses_are_told() {
        for url in [
            "",
            "models",
            "ftp://models.example",
            "https://user:password@models.example",
            "https://models.example/v1?key=1",
        ] {
            let error = Models::check_base_url(url).unwrap_err().to_string();
            assert!(
                error.starts_with("base_url is not a valid base url"),
                "{error}"
            );
            assert!(!error.contains("password@"), "{error}");
        }
        let models = Models::from_environment(|_| Some("nonsense".into()));
        let error = models.base_url(Provider::Anthropic).unwrap_err();
        assert!(
            error.to_string().starts_with("ANTHROPIC_BASE_URL"),
            "{error}"
        );
    }
}
