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
pub(crate) fn with_stderr_tail(reason: &str, stderr_tail: &[String]) -> String {
    /// How many of its last lines are shown.
    const LAST_LINES_SHOWN: usize = 12;
    let lines = stderr_tail.iter().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.map(String::as_str).collect();
    if lines.is_empty() {
        return reason.to_owned();
    }
    let first = lines.len().saturating_sub(LAST_LINES_SHOWN);
    let lines = lines.get(first..).unwrap_or_default().join("\n  ");
    format!("{reason}; last lines of its standard error:\n  {lines}")
}

/// A reason with a remark of Plexus, which comes before the output of the server's process.
pub(crate) fn with_remark(reason: &str, remark: &str) -> String {
    let brief = brief(reason);
    let output = reason.strip_prefix(brief).unwrap_or_default();
    format!("{brief}; {remark}{output}")
}

/// A reason without the output of the server's process, which only its operator may see.
pub(crate) fn brief(reason: &str) -> &str {
    let first = reason.lines().next().unwrap_or_default();
    first
        .strip_suffix("; last lines of its standard error:")
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_come_before_the_output_of_the_process() {
        let output = ["first", "", "  ", "last"].map(str::to_owned);
        let reason = with_stderr_tail("it ended", &output);
        assert_eq!(
            with_remark(&reason, "it is not restarted"),
            "it ended; it is not restarted; last lines of its standard error:\n  first\n  last"
        );
        assert_eq!(brief(&reason), "it ended");
        assert_eq!(with_remark("it ended", "so"), "it ended; so");
        assert_eq!(with_stderr_tail("it ended", &[String::new()]), "it ended");
    }
}
