//! Why a model gave no answer.

use std::error::Error;
use std::time::Duration;

use plexus_client::http::HttpError;

use super::id::Provider;

/// Why a model gave no answer, or only a part of one. No text holds a key.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model's name does not tell who serves it.
    #[error(
        "cannot tell who serves the model {0:?}; say anthropic/NAME, openai/NAME, or sampling for \
         the model of the client"
    )]
    UnknownModel(String),
    /// There is no key for the provider.
    #[error("there is no key for {0}: set {variable} where Plexus is started", variable = .0.key_variable())]
    NoKey(Provider),
    /// The key cannot be sent.
    #[error("{variable} has characters that no key has", variable = .0.key_variable())]
    BadKey(Provider),
    /// An address cannot be used.
    #[error("{whose} is not a base url that can be used: {why}")]
    BadUrl {
        /// What has the address.
        whose: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// HTTP cannot be spoken at all.
    #[error("no request can be made: {0}")]
    NoHttp(String),
    /// The provider cannot be reached, or the connection broke.
    #[error("{provider} did not answer: {}", chain(.source))]
    Unreachable {
        /// Who did not.
        provider: Provider,
        /// What HTTP said.
        source: HttpError,
    },
    /// The provider does not take the key.
    #[error(
        "{provider} does not take the key in {variable} ({status}): {said}",
        variable = .provider.key_variable()
    )]
    Unauthorized {
        /// Who does not.
        provider: Provider,
        /// 401 or 403.
        status: u16,
        /// In its own words.
        said: String,
    },
    /// The provider refused, with another status.
    #[error("{provider} refused ({status}){}: {said}", retry(.retry_after.as_deref()))]
    Refused {
        /// Who did.
        provider: Provider,
        /// The status of the answer.
        status: u16,
        /// When to try again, if it said so: seconds or a date.
        retry_after: Option<String>,
        /// In its own words.
        said: String,
    },
    /// The answer is of another kind.
    #[error(
        "{provider} answered with {kind} where an event stream was asked for; is its base url right?"
    )]
    NoStream {
        /// Who did.
        provider: Provider,
        /// What the answer says that it is.
        kind: String,
    },
    /// Nothing came for too long.
    #[error("{provider} was silent for {after:?}")]
    Silent {
        /// Who was.
        provider: Provider,
        /// How long it was waited for.
        after: Duration,
    },
    /// The stream ended too early.
    #[error("the answer of {0} broke off before its end")]
    Unfinished(Provider),
    /// What came is not what the API says.
    #[error("the answer of {provider} cannot be read: {why}")]
    Unreadable {
        /// Whose answer.
        provider: Provider,
        /// What is wrong with it.
        why: String,
    },
    /// The model's server failed on the way.
    #[error("{provider} failed: {said}")]
    Failed {
        /// Who did.
        provider: Provider,
        /// In its own words.
        said: String,
    },
    /// The answer, or one event of it, has no end, or might as well.
    #[error("the answer of {provider} is longer than the {limit} bytes that are taken")]
    TooLong {
        /// Whose answer.
        provider: Provider,
        /// The most that is taken.
        limit: usize,
    },
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

/// The error with what lies beneath it: for a person, `connection refused` is what matters.
fn chain(error: &HttpError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
