//! A complete MCP client: starts a server, lists its tools, calls them, and answers a question.
//!
//! ```console
//! $ cargo build -p plexus-mcp-server --example greeter
//! $ cargo run -p plexus-mcp-client --example caller -- target/debug/examples/greeter
//! ```

#![expect(clippy::print_stdout, reason = "the user reads the results")]

use std::error::Error;

use plexus_mcp_client::{ClientCapabilities, Program, connect};
use plexus_mcp_core::{Boxed, ElicitParams, ElicitResult, Limits, QuestionHandler, Raw, RpcError};
use serde_json::json;

/// Answers every form in the same way.
struct FormFiller {
    capabilities: ClientCapabilities,
    answer: Raw,
}

impl FormFiller {
    fn new(name: &str) -> Result<Self, Box<dyn Error>> {
        let forms = Raw::parse(r#"{"elicitation":{"form":{}}}"#.into(), &Limits::default())?;
        Ok(Self {
            capabilities: ClientCapabilities::from_raw(&forms)?,
            answer: Raw::encode(&json!({ "name": name }))?,
        })
    }
}

impl QuestionHandler for FormFiller {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn elicit(&self, params: ElicitParams) -> Boxed<Result<ElicitResult, RpcError>> {
        let answer = match params {
            ElicitParams::Form(_) => ElicitResult::accept(self.answer.clone()),
            ElicitParams::Url(_) => ElicitResult::decline(),
        };
        Box::pin(async { Ok(answer) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let command = std::env::args().nth(1).ok_or("usage: caller PROGRAM")?;
    let client = connect(Program::new(command)).await?;
    for tool in client.list_tools().await? {
        println!("{}", tool.name);
    }
    let greeted = client.call_tool("greet", json!({"name": "Ada"})).await?;
    println!("{}", greeted.joined_text());

    let client = client.with_handler(FormFiller::new("Grace")?);
    let met = client.call_tool("meet", ()).await?;
    println!("{}", met.joined_text());
    Ok(())
}
