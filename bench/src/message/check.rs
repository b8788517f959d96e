//! The checks of the responses.

use anyhow::ensure;
use memchr::memmem;
use serde_json::{Value, json};

use super::{BEFORE_ID, FIRST_ID, ID_DIGITS, id};
use crate::http_response::BodyEnds;

/// The method of a progress notification.
const PROGRESS: &str = "notifications/progress";

/// The expected response.
#[derive(Debug, Clone)]
pub(super) enum Expected {
    /// The response to the request, with this text.
    Text(String),
    /// The response to the request, with one of these lengths.
    Page(Vec<usize>),
    /// The same bytes as the first response.
    Same,
    /// The request itself.
    Mirror,
}

/// Checks responses.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    expected: Expected,
    /// The first correct response.
    first: Vec<u8>,
}

impl Check {
    pub(super) fn new(expected: Expected) -> Self {
        Self {
            expected,
            first: Vec::new(),
        }
    }

    /// For programs that echo every message.
    pub(crate) fn mirror() -> Self {
        Self::new(Expected::Mirror)
    }

    /// Checks the response to request `number`.
    pub(crate) fn check(&mut self, number: u64, answer: &[u8]) -> anyhow::Result<()> {
        let right = match &self.expected {
            Expected::Same => !answer.is_empty() && (self.first.is_empty() || self.first == answer),
            Expected::Mirror => has_id(answer, number),
            Expected::Text(text) => {
                (has_id(answer, number) && has_text(answer, text))
                    || is_answer(answer, number, text).is_ok()
            }
            Expected::Page(lengths) => lengths.contains(&answer.len()) && has_id(answer, number),
        };
        ensure!(
            right,
            "a wrong answer to request {number}: {}",
            excerpt(answer)
        );
        if self.first.is_empty() {
            self.first.extend_from_slice(answer);
        }
        Ok(())
    }

    /// Like `check`, for a long response of which only the ends are known. Since all ids have the
    /// same length, its length must be that of the first response, which was checked as a whole.
    pub(crate) fn check_ends(&self, number: u64, answer: BodyEnds<'_>) -> anyhow::Result<()> {
        let BodyEnds { start, end, length } = answer;
        let right = match &self.expected {
            Expected::Same => self.first.starts_with(start) && self.first.ends_with(end),
            _ => has_id(start, number) || has_id(end, number),
        };
        ensure!(
            right && length == self.first.len(),
            "a wrong answer to request {number}, of {length} bytes: {}",
            excerpt(start)
        );
        Ok(())
    }

    /// Checks that the tool reported its progress in an event stream, whose last message is checked
    /// by `check`: otherwise the subjects did not do the same work.
    pub(crate) fn check_progress(body: &[u8]) -> anyhow::Result<()> {
        ensure!(
            memmem::find(body, PROGRESS.as_bytes()).is_some(),
            "no progress in the event stream: {}",
            excerpt(body)
        );
        Ok(())
    }
}

/// A progress notification, for servers with fixed responses.
pub(crate) fn fixed_progress() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"{PROGRESS}","params":{{"progressToken":1,"progress":1,"total":2}}}}"#
    )
}

/// A response with a text of `bytes` bytes, for servers with fixed responses.
pub(crate) fn fixed_answer(bytes: usize) -> String {
    let text = super::job::text(bytes);
    format!(
        r#"{BEFORE_ID}{FIRST_ID},"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// The number of the request that a message answers, if its id is near one of its ends.
pub(crate) fn answered(message: &[u8]) -> Option<u64> {
    // Most servers write the members in this order; other responses are searched.
    let digits = message
        .strip_prefix(BEFORE_ID.as_bytes())
        .and_then(|rest| rest.get(..ID_DIGITS));
    if let Some(number) = digits.and_then(number) {
        return Some(number);
    }
    let near = 200.min(message.len());
    let parts = [message.get(..near), message.get(message.len() - near..)];
    parts.into_iter().flatten().find_map(|part| {
        let key = br#""id":"#;
        let at = memmem::find(part, key)? + key.len();
        number(part.get(at..)?.trim_ascii_start().get(..ID_DIGITS)?)
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut id = 0;
    for digit in digits {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        id = id * 10 + u64::from(value);
    }
    id.checked_sub(FIRST_ID)
}

fn has_id(answer: &[u8], number: u64) -> bool {
    let leading = answer
        .strip_prefix(BEFORE_ID.as_bytes())
        .and_then(|rest| rest.get(..ID_DIGITS));
    if leading.is_some_and(|digits| digits == id(number)) {
        return true;
    }
    // The id is near the beginning or near the end, and long texts are not searched for it.
    let near = 200.min(answer.len());
    let id = id(number);
    let has = |part: &[u8]| memmem::find(part, &id).is_some();
    has(answer.get(..near).unwrap_or_default())
        || has(answer.get(answer.len() - near..).unwrap_or_default())
}

fn has_text(answer: &[u8], text: &str) -> bool {
    let key = br#""text":""#;
    memmem::find(answer, key).is_some_and(|at| {
        let rest = answer.get(at + key.len()..).unwrap_or_default();
        rest.starts_with(text.as_bytes()) && rest.get(text.len()) == Some(&b'"')
    })
}

/// Decodes the response, for servers that write JSON with spaces.
fn is_answer(answer: &[u8], number: u64, text: &str) -> anyhow::Result<()> {
    let answer: Value = serde_json::from_slice(answer)?;
    ensure!(answer.get("id") == Some(&json!(FIRST_ID + number)));
    ensure!(answer.pointer("/result/content/0/text") == Some(&json!(text)));
    Ok(())
}

/// The beginning of a response, for errors.
pub(crate) fn excerpt(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.chars().take(400).collect()
}
