//! Log messages to clients about calls of the built-in tools.

use std::sync::Arc;

use plexus_mcp_core::{Boxed, Call, Layer, Log, LogLevel, Outcome, Raw, Service};
use plexus_mcp_protocol::messages::CallToolResult;
use plexus_mcp_protocol::method;
use serde_json::json;
use tokio::time::Instant;

use crate::session::BUILTIN;

/// Sends a log message when a tool is called, and one when the call has ended, to clients that ask
/// for the level `debug`.
#[derive(Debug)]
pub(super) struct CallLog;

impl Layer for CallLog {
    fn call(&self, call: Call, next: &Arc<dyn Service>) -> Boxed<Outcome> {
        if &*call.method != method::TOOLS_CALL || !call.events.wants_log(LogLevel::Debug) {
            return next.call(call);
        }
        let tool = call.params.text("name").unwrap_or_default().into_owned();
        let events = call.events.clone();
        let next = Arc::clone(next);
        Box::pin(async move {
            events
                .log(message(&json!({"tool": tool, "state": "called"})))
                .await;
            let began = Instant::now();
            let outcome = next.call(call).await;
            let state = match &outcome {
                Ok(result) if has_failed(result) => "failed",
                Ok(_) => "finished",
                Err(_) => "refused",
            };
            let took = began.elapsed().as_secs_f64();
            let ended = json!({"tool": tool, "state": state, "seconds": took});
            events.log(message(&ended)).await;
            outcome
        })
    }
}

fn has_failed(result: &Raw) -> bool {
    let result = result.decode::<CallToolResult>();
    result.is_ok_and(|result| result.is_error)
}

fn message(data: &serde_json::Value) -> Log {
    Log {
        level: LogLevel::Debug,
        logger: Some(BUILTIN.to_owned()),
        data: Raw::encode(data).unwrap_or_else(|_| Raw::empty_object()),
    }
}
