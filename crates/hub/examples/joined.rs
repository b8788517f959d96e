//! A complete client of many MCP servers: starts a server twice, and calls each by its name.
//!
//! ```console
//! $ cargo build -p plexus-mcp-server --example greeter
//! $ cargo run -p plexus-mcp-hub --example joined -- target/debug/examples/greeter
//! ```

#![expect(clippy::print_stdout, reason = "the user reads the results")]

use std::error::Error;

use plexus_mcp_client::Program;
use plexus_mcp_hub::Hub;
use plexus_mcp_protocol::messages::Implementation;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let command = std::env::args().nth(1).ok_or("usage: joined PROGRAM")?;
    let program = Program::new(command);
    let hub = Hub::new(Implementation::new("example", "1.0.0"));
    let servers = [("left", program.clone().into()), ("right", program.into())];
    let changes = hub.set_servers(servers).await;
    for (server, error) in &changes.errors {
        println!("{server}: {error}");
    }
    for tool in hub.client().list_tools().await? {
        println!("{}", tool.name); // left__greet and so on
    }
    let result = hub
        .call_tool("right", "greet", json!({"name": "Ada"}))
        .await?;
    println!("{}", result.joined_text());
    hub.close().await;
    Ok(())
}
