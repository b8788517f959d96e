//! Tools with events or a long running time: they log, report progress, stream, or wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plexus_mcp_core::{Builder, Context, LogLevel, NoArguments, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

/// The delay between two events, so that a client receives them one by one.
const EVENT_INTERVAL: Duration = Duration::from_millis(50);

/// How many calls of `test_wait_for_cancel` were cancelled.
static CANCELLED: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_tool_with_logging").description("Logs three messages"),
            async |_: NoArguments, ctx: Context| {
                ctx.log(LogLevel::Info, "Tool execution started").await;
                sleep(EVENT_INTERVAL).await;
                ctx.log(LogLevel::Info, "Tool processing data").await;
                sleep(EVENT_INTERVAL).await;
                ctx.log(LogLevel::Info, "Tool execution completed").await;
                "Tool with logging executed successfully"
            },
        )
        .tool(
            Tool::new("test_logging_tool").description("Logs, if the caller asks for it"),
            async |_: NoArguments, ctx: Context| {
                for level in LogLevel::ALL {
                    let message = format!("A message of level {level}");
                    ctx.log_as("test_logging_tool", level, message).await;
                }
                "Logged at every level"
            },
        )
        .tool(
            Tool::new("test_tool_with_progress").description("Reports progress three times"),
            async |_: NoArguments, ctx: Context| {
                ctx.progress(0.0, Some(100.0), "Started").await;
                sleep(EVENT_INTERVAL).await;
                ctx.progress(50.0, Some(100.0), "Half done").await;
                sleep(EVENT_INTERVAL).await;
                ctx.progress(100.0, Some(100.0), "Done").await;
                "Tool with progress executed successfully"
            },
        )
        .tool(
            Tool::new("test_streaming").description("Streams its text in three pieces"),
            async |_: NoArguments, ctx: Context| {
                for piece in ["Hello", " ", "world"] {
                    ctx.stream(piece).await;
                    sleep(EVENT_INTERVAL).await;
                }
            },
        )
        .tool(
            Tool::new("test_reconnection")
                .description("Stays silent for so long that its client is let go and comes back"),
            async |_: NoArguments, _: Context| {
                sleep(Duration::from_secs(1)).await;
                "Reconnection test completed"
            },
        )
        .tool(
            Tool::new("test_slow").description("Sleeps, then returns"),
            async |Slow { ms }: Slow, _: Context| {
                sleep(Duration::from_millis(ms)).await;
                format!("Slept for {ms} ms")
            },
        )
        .tool(
            Tool::new("test_wait_for_cancel").description("Runs until it is cancelled"),
            async |_: NoArguments, ctx: Context| {
                let _counter = CountsItsEnd;
                ctx.progress(0.0, None, "Waiting").await;
                std::future::pending::<()>().await;
            },
        )
        .tool(
            Tool::new("test_cancelled_count")
                .description("Returns how many calls of test_wait_for_cancel were cancelled"),
            async |_: NoArguments, _: Context| CANCELLED.load(Ordering::Relaxed).to_string(),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Slow {
    /// For how many milliseconds.
    ms: u64,
}

/// Increments [`CANCELLED`] when it is dropped, which happens when its call is cancelled.
struct CountsItsEnd;

impl Drop for CountsItsEnd {
    fn drop(&mut self) {
        CANCELLED.fetch_add(1, Ordering::Relaxed);
    }
}
