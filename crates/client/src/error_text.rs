//! Error texts with all causes.

use std::error::Error;

/// The texts of an error and of its sources, joined by colons.
pub(crate) fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A reason, and the last lines of the process's standard error, which often hold the real cause.
pub(crate) fn with_last_words(reason: &str, last_words: &[String]) -> String {
    /// How many of its last lines are shown.
    const LAST_LINES_SHOWN: usize = 5;
    if last_words.is_empty() {
        return reason.to_owned();
    }
    let first = last_words.len().saturating_sub(LAST_LINES_SHOWN);
    let words = last_words.get(first..).unwrap_or_default().join("\n  ");
    format!("{reason}; it last said:\n  {words}")
}

/// A reason without the output of the server's process, which only its operator may see.
pub(crate) fn brief(reason: &str) -> &str {
    let first = reason.lines().next().unwrap_or_default();
    first.strip_suffix("; it last said:").unwrap_or(first)
}
