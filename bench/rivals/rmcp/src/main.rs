//! `rmcp-repeat stdio`, or `rmcp-repeat http PORT json|stream`.
//!
//! JSON comes from the mode without sessions, which is its fastest; streams from the mode with
//! sessions, which is its default.

use std::error::Error;

use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ProgressNotificationParam, RequestMetaObject};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt, schemars, tool, tool_handler,
    tool_router,
};
use tokio::net::TcpListener;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Repetition {
    /// The text to repeat.
    text: String,
    /// How often to repeat it.
    times: u32,
}

#[derive(Clone)]
struct Repeat;

#[tool_router]
impl Repeat {
    #[tool(description = "Repeats a text")]
    async fn repeat(
        &self,
        Parameters(Repetition { text, times }): Parameters<Repetition>,
        meta: RequestMetaObject,
        peer: Peer<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            peer.notify_progress(progress)
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(text.repeat(times as usize))
    }
}

#[tool_handler]
impl ServerHandler for Repeat {}

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
            let service = StreamableHttpService::new(|| Ok(Repeat), sessions, config);
            let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            // Without this, every event waits for the client's acknowledgement.
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
            axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
        }
        _ => {
            Repeat.serve(stdio()).await?.waiting().await?;
        }
    }
    Ok(())
}
