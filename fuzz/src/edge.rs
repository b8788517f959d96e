//! A server edge for targets that read what clients send.

use std::sync::Arc;

use plexus_mcp_core::{
    Context, ElicitParams, Limits, LocalService, NoArguments, Raw, Tool, ToolResult,
};
use plexus_mcp_server::{Edge, Options, SealKey};
use tokio::runtime::{Builder, Runtime};

/// The form that the tool `ask` shows.
const FORM: &str = r#"{"type":"object","properties":{}}"#;

/// The edge of a service with a tool that answers and one that asks first. Its key is fixed, so that
/// runs can be repeated.
///
/// # Panics
/// The service cannot be built.
#[must_use]
pub fn edge() -> Arc<Edge> {
    let answer = async |_: NoArguments, _: Context| -> ToolResult<String> { Ok("done".to_owned()) };
    let ask = async |_: NoArguments, ctx: Context| -> ToolResult<String> {
        let schema = Raw::parse(FORM.into(), &Limits::default()).expect("it is JSON");
        let answer = ctx.elicit(ElicitParams::form("Sure?", schema)).await?;
        Ok(format!("{:?}", answer.action))
    };
    let service = LocalService::builder("fuzz", "1.0.0")
        .tool(Tool::new("answer"), answer)
        .tool(Tool::new("ask"), ask)
        .build()
        .expect("the definitions are valid");
    Edge::with_key(
        Arc::new(service),
        Options::default(),
        &SealKey::new([7; 32]),
    )
}

/// A runtime of one thread. A stopped clock moves on when every task waits for it.
///
/// # Panics
/// The system has no resources for it.
#[must_use]
pub fn runtime(stopped_clock: bool) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(stopped_clock);
    builder.build().expect("a runtime can be built")
}
