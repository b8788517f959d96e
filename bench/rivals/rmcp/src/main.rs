//! `rmcp-echo stdio`, or `rmcp-echo http PORT json|stream`.
//!
//! JSON comes from the mode without sessions, which is its fastest; streams from the mode with
//! sessions, which is its default.

use std::error::Error;

use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Said {
    message: String,
}

#[derive(Clone)]
struct Echo;

#[tool_router]
impl Echo {
    #[tool(description = "Says it again")]
    async fn echo(&self, Parameters(Said { message }): Parameters<Said>) -> String {
        message
    }
}

#[tool_handler]
impl ServerHandler for Echo {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", port, mode] => {
            let is_stream = mode == "stream";
            let config = StreamableHttpServerConfig::default()
                .with_legacy_session_mode(is_stream)
                .with_json_response(!is_stream);
            let sessions = LocalSessionManager::default().into();
            let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
            let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            // Without this, every event waits for the client's acknowledgement.
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
            axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
        }
        _ => {
            Echo.serve(stdio()).await?.waiting().await?;
        }
    }
    Ok(())
}
