//! The model as the agent loop sees it, and retries with exponential backoff.

use std::time::Duration;

use plexus_mcp_agents::model::{AnswerPart, Finish, ModelError, Models, Question};
use plexus_mcp_client::backoff::{Backoff, random};
use plexus_mcp_core::Boxed;

/// How often a request is sent again before its error is reported.
const MAX_RETRIES: u32 = 5;
/// The delay before the first retry; it doubles with each further one.
const RETRY_BACKOFF_MIN: Duration = Duration::from_millis(500);
/// The longest delay before a retry, also if the provider asks for a longer one.
const RETRY_BACKOFF_MAX: Duration = Duration::from_mins(1);

/// Answers questions. [`Models`] is the implementation for the providers' APIs.
pub trait ModelClient: Send + Sync + 'static {
    /// Asks; the future resolves when the answer begins. Dropping it, or the answer, ends the
    /// request.
    fn ask(&self, question: Question) -> Boxed<Result<Box<dyn Answer>, ModelError>>;
}

/// A streamed answer.
pub trait Answer: Send {
    /// The next part; `None` when the answer is complete.
    fn next(&mut self) -> Part<'_>;

    /// The metadata of the answer so far.
    fn finish(&self) -> Finish;
}

/// The future of [`Answer::next`].
pub type Part<'a> =
    std::pin::Pin<Box<dyn Future<Output = Result<Option<AnswerPart>, ModelError>> + Send + 'a>>;

impl ModelClient for Models {
    fn ask(&self, question: Question) -> Boxed<Result<Box<dyn Answer>, ModelError>> {
        let models = self.clone();
        Box::pin(async move {
            let answer = Models::ask(&models, &question).await?;
            Ok(Box::new(answer) as Box<dyn Answer>)
        })
    }
}

impl Answer for plexus_mcp_agents::model::AnswerStream {
    fn next(&mut self) -> Part<'_> {
        Box::pin(plexus_mcp_agents::model::AnswerStream::next(self))
    }

    fn finish(&self) -> Finish {
        self.finish().clone()
    }
}

/// The delays before a request is sent again.
pub(crate) struct Retries {
    left: u32,
    backoff: Backoff,
}

impl Retries {
    pub(crate) fn new() -> Self {
        Self {
            left: MAX_RETRIES,
            backoff: Backoff::new(RETRY_BACKOFF_MIN, RETRY_BACKOFF_MAX),
        }
    }

    /// The delay before the next attempt; `None` if the error is final.
    pub(crate) fn delay_after(&mut self, error: &ModelError) -> Option<Duration> {
        if !error.is_transient() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let delay = self.backoff.next_delay(random());
        let wanted = error.retry_after().unwrap_or_default();
        Some(delay.max(wanted).min(RETRY_BACKOFF_MAX))
    }
}

#[cfg(test)]
mod tests {
    use plexus_mcp_agents::model::Provider;

    use super::*;

    fn refused(status: u16, retry_after: Option<&str>) -> ModelError {
        ModelError::Refused {
            provider: Provider::Anthropic,
            status,
            retry_after: retry_after.map(str::to_owned),
            said: "no".to_owned(),
        }
    }

    #[test]
    fn delays_grow_and_end() {
        let mut retries = Retries::new();
        let busy = refused(529, None);
        let delays: Vec<_> = std::iter::from_fn(|| retries.delay_after(&busy)).collect();
        assert_eq!(delays.len(), 5);
        assert!(delays.last() > delays.first());
        assert!(delays.iter().all(|delay| *delay <= RETRY_BACKOFF_MAX));
    }

    #[test]
    fn the_provider_says_when_to_try_again() {
        let delay = Retries::new()
            .delay_after(&refused(429, Some("7")))
            .unwrap();
        assert!(delay >= Duration::from_secs(7));
        let hour = Retries::new().delay_after(&refused(429, Some("3600")));
        assert_eq!(hour, Some(RETRY_BACKOFF_MAX));
    }

    #[test]
    fn a_wrong_request_is_not_sent_again() {
        for status in [400, 401, 404] {
            assert_eq!(Retries::new().delay_after(&refused(status, None)), None);
        }
        let no_key = ModelError::NoKey(Provider::OpenAi);
        assert_eq!(Retries::new().delay_after(&no_key), None);
    }
}
