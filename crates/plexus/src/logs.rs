//! Logs, which go to standard error only: standard output may carry the protocol (STDIO-02,
//! S000-06).

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::cli::{DownstreamArgs, LogFormat};

/// The log targets of Plexus itself begin with this: `plexus::…`, `plexus_mcp_hub::…`.
const OWN_TARGETS: &str = "plexus";

/// Starts logging. Text has short lines on a terminal, full lines without colours in a file.
pub(crate) fn start(arguments: &DownstreamArgs) {
    let level = LevelFilter::from(arguments.log_level);
    // The libraries below would log every frame, with secrets that are not masked.
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::INFO))
        .with_target(OWN_TARGETS, level);
    let lines = fmt::layer()
        .with_writer(io::stderr)
        // Reporting that standard error is closed would use standard error, and panic.
        .log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match arguments.log_format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text if crate::output::errors_are_at_terminal() => {
            lines.compact().with_target(false).boxed()
        }
        LogFormat::Text => lines.with_ansi(false).boxed(),
    };
    Registry::default().with(lines.with_filter(filter)).init();
}
