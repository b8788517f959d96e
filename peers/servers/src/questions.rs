//! Fixed answers to the questions of servers during a call.

use plexus_mcp_core::{Ask, AskError, Event, EventReceiver, Question, Raw, Root};
use plexus_mcp_protocol::messages::{ElicitResult, ListRootsResult};
use serde_json::json;

/// Answers until the call is over.
pub(crate) async fn answer_all(mut events: EventReceiver) {
    while let Some(event) = events.recv().await {
        if let Event::Ask(ask) = event {
            answer(ask);
        }
    }
}

fn answer(ask: Ask) {
    let answer = match &ask.question {
        Question::Elicit(_) => Ok(ElicitResult::decline().to_raw()),
        Question::Sample(_) => sampled(),
        Question::Roots => {
            let roots = vec![Root::new("file:///visited/root")];
            Ok(ListRootsResult { roots }.to_raw())
        }
    };
    ask.answer(answer);
}

fn sampled() -> Result<Raw, AskError> {
    let message = json!({
        "role": "assistant",
        "content": { "type": "text", "text": "the visitor's model says hello" },
        "model": "visitor",
    });
    Raw::encode(&message).map_err(|error| AskError::Malformed(error.to_string()))
}
