//! `tower-mcp-repeat stdio`, or `tower-mcp-repeat http PORT json|stream`.

use axum::serve::ListenerExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_mcp::extract::{Context, Json};
use tower_mcp::{
    BoxError, CallToolResult, HttpTransport, McpRouter, StdioTransport, ToolBuilder,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Repetition {
    /// The text to repeat.
    text: String,
    /// How often to repeat it.
    times: u32,
}

fn router() -> McpRouter {
    let repeat = ToolBuilder::new("repeat")
        .description("Repeats a text")
        .extractor_handler(
            (),
            |context: Context, Json(Repetition { text, times }): Json<Repetition>| async move {
                context.report_progress(1.0, Some(2.0), None).await;
                Ok::<_, tower_mcp::Error>(CallToolResult::text(text.repeat(times as usize)))
            },
        )
        .build();
    McpRouter::new().server_info("tower-mcp-repeat", "0").tool(repeat)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", port, mode] => {
            let transport = HttpTransport::new(router())
                .sse_responses(mode == "stream")
                .max_sessions(100_000);
            let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
            axum::serve(listener, transport.into_router_at("/mcp")).await?;
        }
        _ => StdioTransport::new(router()).run().await?,
    }
    Ok(())
}
