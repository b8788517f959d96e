//! `turbomcp-repeat stdio`, or `turbomcp-repeat http PORT json|stream`; it streams if the client
//! asks for progress, in either mode.

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use turbomcp::prelude::*;
use turbomcp::{RequestContext, ServerConfig};

#[derive(Clone)]
struct Repeat;

#[server(name = "turbomcp-repeat", version = "0.0.0")]
impl Repeat {
    /// Repeats a text.
    #[tool]
    async fn repeat(&self, text: String, times: u32, ctx: &RequestContext) -> McpResult<String> {
        ctx.report_progress(1.0, Some(2.0), None).await?;
        Ok(text.repeat(times as usize))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", port, _] => {
            // Requests without an address, as here without `ConnectInfo`, are refused otherwise.
            let config = ServerConfig::builder()
                .max_http_sessions(100_000)
                .max_message_size(16 << 20)
                .allow_any_origin(true)
                .build();
            let router = Repeat.builder().with_config(config).into_axum_router();
            let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
            axum::serve(listener, router).await?;
        }
        _ => Repeat.run_stdio().await?,
    }
    Ok(())
}
