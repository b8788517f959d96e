//! A server with a configurable number of tools, for long lists.

use std::net::SocketAddr;
use std::sync::Arc;

use plexus_mcp_core::{Context, LocalService, Tool};
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Repetition {
    /// The text to repeat.
    text: String,
    /// How often to repeat it.
    #[serde(default)]
    times: Option<u32>,
}

/// The name of a tool.
pub(crate) fn tool_name(number: usize) -> String {
    format!("repeat_text_{number:04}")
}

/// Serves tools whose names, descriptions and schemas are as long as those of real tools.
pub(crate) fn serve(address: SocketAddr, tools: usize) -> anyhow::Result<()> {
    let mut builder = LocalService::builder("many-tools", "1.0.0");
    for number in 0..tools {
        let description = format!(
            "Number {number} of many tools that repeat the text which they are given, described in \
             about as many words as tools that do something"
        );
        let tool = Tool::new(tool_name(number)).description(description);
        builder = builder.tool(
            tool,
            async |Repetition { text, times }: Repetition, _: Context| {
                text.repeat(times.unwrap_or(1) as usize)
            },
        );
    }
    let service = Arc::new(builder.build()?);
    tokio::runtime::Runtime::new()?.block_on(async {
        let edge = Edge::new(service, Options::default())?;
        let server = HttpServer::bind(edge, &[address], HttpOptions::default()).await?;
        server.run().await;
        Ok(())
    })
}
