//! A complete MCP server, for clients of every revision.
//!
//! Agents start it like this, and speak with it over standard input and output:
//!
//! ```console
//! $ cargo run -p plexus-mcp-server --example greeter
//! ```
//!
//! With `-- --http` behind that, it serves <http://127.0.0.1:4445/mcp> instead.

#![expect(clippy::print_stderr, reason = "the user needs the address")]

use std::error::Error;
use std::sync::Arc;

use plexus_mcp_core::{
    BuildError, Context, LocalService, NoArguments, Tool, ToolError, ToolResult,
};
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options, stdio};
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `greet` and form of `meet`. The doc comments of the fields become descriptions in
/// the JSON Schema.
#[derive(Deserialize, JsonSchema)]
struct Person {
    /// The name of the person.
    name: String,
}

fn greeter() -> Result<LocalService, BuildError> {
    LocalService::builder("greeter", "1.0.0")
        .tool(
            Tool::new("greet").description("Greets a person"),
            async |Person { name }: Person, _: Context| format!("Hello, {name}!"),
        )
        .tool(
            Tool::new("meet").description("Asks who the user is, and greets them"),
            meet,
        )
        .build()
}

/// `Context` sends progress, log messages and questions to the caller.
async fn meet(_: NoArguments, ctx: Context) -> ToolResult<String> {
    match ctx.fill_in("Who are you?").await? {
        Some(Person { name }) => Ok(format!("Hello, {name}!")),
        None => Err(ToolError::failed("the user declined")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // An edge shows one service to any number of clients, over one transport or several.
    let edge = Edge::new(Arc::new(greeter()?), Options::default())?;
    if std::env::args().any(|argument| argument == "--http") {
        let addresses = ["127.0.0.1:4445".parse()?];
        let options = HttpOptions::default();
        let server = HttpServer::bind(Arc::clone(&edge), &addresses, options).await?;
        eprintln!("listening on http://127.0.0.1:4445{}", server.path());
        server.run().await;
    } else {
        stdio::serve(&edge).await?;
    }
    Ok(())
}
