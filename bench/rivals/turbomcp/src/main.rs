//! `turbomcp-echo stdio`, or `turbomcp-echo http PORT json|stream`; it answers in JSON either way.

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use turbomcp::ServerConfig;
use turbomcp::prelude::*;

#[derive(Clone)]
struct Echo;

#[server(name = "turbomcp-echo", version = "0.0.0")]
impl Echo {
    /// Says it again.
    #[tool]
    async fn echo(&self, message: String) -> McpResult<String> {
        Ok(message)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", port, _] => {
            // Whoever has no address, as here without `ConnectInfo`, counts as a stranger otherwise.
            let config = ServerConfig::builder()
                .max_http_sessions(100_000)
                .max_message_size(16 << 20)
                .allow_any_origin(true)
                .build();
            let router = Echo.builder().with_config(config).into_axum_router();
            let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
            axum::serve(listener, router).await?;
        }
        _ => Echo.run_stdio().await?,
    }
    Ok(())
}
