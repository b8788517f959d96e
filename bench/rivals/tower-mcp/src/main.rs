//! `tower-mcp-echo stdio`, or `tower-mcp-echo http PORT json|stream`.

use axum::serve::ListenerExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_mcp::{
    BoxError, CallToolResult, HttpTransport, McpRouter, StdioTransport, ToolBuilder,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Said {
    message: String,
}

fn router() -> McpRouter {
    let echo = ToolBuilder::new("echo")
        .description("Says it again")
        .handler(|Said { message }: Said| async move { Ok(CallToolResult::text(message)) })
        .build();
    McpRouter::new().server_info("tower-mcp-echo", "0").tool(echo)
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
