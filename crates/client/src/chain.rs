//! Errors with all their causes, for people.

use std::error::Error;

/// What went wrong, and why, and why that.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A reason, and what the server's process last said, which often is the real one.
pub(crate) fn with_last_words(reason: &str, last_words: &[String]) -> String {
    /// How many of its last lines are shown.
    const SHOWN: usize = 5;
    if last_words.is_empty() {
        return reason.to_owned();
    }
    let first = last_words.len().saturating_sub(SHOWN);
    let words = last_words.get(first..).unwrap_or_default().join("\n  ");
    format!("{reason}; it last said:\n  {words}")
}

/// A reason without what a server's process said, which is nobody's business but its operator's.
pub(crate) fn brief(reason: &str) -> &str {
    let first = reason.lines().next().unwrap_or_default();
    first.strip_suffix("; it last said:").unwrap_or(first)
}
