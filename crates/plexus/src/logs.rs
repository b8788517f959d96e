//! Logs, which go to standard error only: standard output may be the protocol's (STDIO-02, S000-06).

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

use crate::cli::LogLevel;

/// Starts logging: briefly to a person at a terminal, in full and without colours to a file.
pub(crate) fn start(level: LogLevel) {
    let logs = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::from(level))
        .with_writer(io::stderr)
        // Reporting that standard error is closed would use standard error, and panic.
        .log_internal_errors(false);
    if io::stderr().is_terminal() {
        logs.compact().with_target(false).init();
    } else {
        logs.with_ansi(false).init();
    }
}
