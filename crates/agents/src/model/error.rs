//! Errors of language models.

use std::error::Error;
use std::time::Duration;

use plexus_mcp_client::http::HttpError;

use super::id::Provider;

/// Why a model gave no answer, or only a part of one. The texts never contain a key.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model id does not name a known provider.
    #[error(
        "the model {0:?} has no known provider; write anthropic/NAME, openai/NAME, or sampling for \
         the model of the client"
    )]
    UnknownModel(String),
    /// No key is configured for the provider.
    #[error("there is no key for {0}: set {variable} where Plexus is started", variable = .0.key_variable())]
    NoKey(Provider),
    /// The key has characters that are not allowed in a header.
    #[error("{variable} has characters that no key can have", variable = .0.key_variable())]
    BadKey(Provider),
    /// A base URL cannot be used.
    #[error("{setting} is not a valid base url: {why}")]
    BadUrl {
        /// The name of the setting that has the URL.
        setting: &'static str,
        /// Why the URL is not valid.
        why: String,
    },
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    NoHttp(String),
    /// The provider cannot be reached, or the connection broke.
    #[error("{provider} did not answer: {}", error_text(.cause))]
    Unreachable {
        /// The provider.
        provider: Provider,
        /// The error of the HTTP client.
        cause: HttpError,
    },
    /// The provider refused the key.
    #[error(
            "{provider} refused the key in {variable} ({status}): {said}",
        variable = .provider.key_variable()
    )]
    Unauthorized {
        /// The provider.
        provider: Provider,
        /// The status of the response: 401 or 403.
        status: u16,
        /// The provider's message.
        said: String,
    },
    /// The provider refused the request, with another status.
    #[error("{provider} refused ({status}){}: {said}", retry(.retry_after.as_deref()))]
    Refused {
        /// The provider.
        provider: Provider,
        /// The status of the response.
        status: u16,
        /// When to try again, if the provider sent `Retry-After`: seconds or a date.
        retry_after: Option<String>,
        /// The provider's message.
        said: String,
    },
    /// The response is not an event stream.
    #[error(
        "{provider} answered with {kind} where an event stream was asked for; is its base url right?"
    )]
    NoStream {
        /// The provider.
        provider: Provider,
        /// The content type of the response.
        kind: String,
    },
    /// The provider sent no data for too long.
    #[error("{provider} sent no data for {after:?}")]
    Silent {
        /// The provider.
        provider: Provider,
        /// The timeout.
        after: Duration,
    },
    /// The stream ended before the answer was complete.
    #[error("the answer of {0} broke off before its end")]
    Unfinished(Provider),
    /// The response does not conform to the API.
    #[error("cannot decode the answer of {provider}: {why}")]
    Unreadable {
        /// The provider.
        provider: Provider,
        /// The error of the decoder.
        why: String,
    },
    /// The provider failed in the middle of the answer.
    #[error("{provider} failed: {said}")]
    Failed {
        /// The provider.
        provider: Provider,
        /// The provider's message.
        said: String,
    },
    /// The answer, or one event of it, exceeds the size limit.
    #[error("the answer of {provider} is longer than the {limit} bytes that are allowed")]
    TooLong {
        /// The provider.
        provider: Provider,
        /// The limit, in bytes.
        limit: usize,
    },
}

impl ModelError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::Unfinished(_)
            | Self::Failed { .. } => true,
            _ => false,
        }
    }

    /// How long the provider wants callers to wait, if it said so in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => {
                let seconds = retry_after.as_deref()?.trim().parse().ok()?;
                Some(Duration::from_secs(seconds))
            }
            _ => None,
        }
    }

    /// Whether the conversation is longer than the model's context window.
    pub fn is_about_context_length(&self) -> bool {
        const PHRASES: [&str; 5] = [
            "prompt is too long",
            "context_length_exceeded",
            "maximum context length",
            "context window",
            "exceed context limit",
        ];
        match self {
            Self::Refused {
                status: 400 | 413,
                said,
                ..
            } => {
                let said = said.to_lowercase();
                PHRASES.iter().any(|phrase| said.contains(phrase))
            }
            _ => false,
        }
    }
}

fn retry(after: Option<&str>) -> String {
    match after {
        Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("; try again after {seconds} seconds")
        }
        Some(date) => format!("; try again after {date}"),
        None => String::new(),
    }
}

/// The text of an error with its causes: the cause, such as `connection refused`, helps the user.
fn error_text(error: &HttpError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
