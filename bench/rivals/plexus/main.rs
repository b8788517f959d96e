//! `plexus-repeat stdio`, or `plexus-repeat http PORT`: a server made with the library of Plexus, as
//! its README says, for comparison.

use std::error::Error;
use std::sync::Arc;

use plexus_mcp_core::{BuildError, Context, LocalService, Tool};
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options, stdio};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Repetition {
    /// The text to repeat.
    text: String,
    /// How often to repeat it.
    times: u32,
}

fn service() -> Result<LocalService, BuildError> {
    LocalService::builder("plexus-repeat", "0.0.0")
        .tool(Tool::new("repeat").description("Repeats a text"), repeat)
        .build()
}

async fn repeat(Repetition { text, times }: Repetition, ctx: Context) -> String {
    ctx.progress(1.0, Some(2.0), None).await;
    text.repeat(times as usize)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let edge = Edge::new(Arc::new(service()?), Options::default())?;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", port] => {
            let addresses = [format!("127.0.0.1:{port}").parse()?];
            let options = HttpOptions::default();
            let server = HttpServer::bind(Arc::clone(&edge), &addresses, options).await?;
            server.run().await;
        }
        _ => stdio::serve(&edge).await?,
    }
    Ok(())
}
