//! The calls of an answer: run, in order or in parallel, and answered.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use plexus_mcp_agents::model::{ChatMessage, MessagePart, Speaker, ToolCall, ToolOutcome};
use plexus_mcp_wire::Raw;
use tokio_util::sync::CancellationToken;

use super::{Agent, AgentError, AgentParts};
use crate::observer::AgentEvent;
use crate::tool::{ToolContext, ToolOutput};

/// The longest result that is shown to the model, in characters. Of a server's result, the transcript
/// has all.
const MAX_RESULT_CHARS: usize = 100_000;

impl Agent {
    /// Runs the calls of an answer, and adds each result to the conversation as soon as it is there.
    /// Neighbours that change nothing run at the same time, the others one after the other. After an
    /// interruption, the remaining calls are not made.
    pub(super) async fn run_calls(
        &mut self,
        calls: Vec<ToolCall>,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let parts = self.parts.clone();
        let mut waiting = calls.into_iter().peekable();
        while let Some(call) = waiting.next() {
            let mut group = vec![call];
            while group.iter().all(|call| parts.runs_in_parallel(call))
                && let Some(next) = waiting.next_if(|next| parts.runs_in_parallel(next))
            {
                group.push(next);
            }
            let running = group.iter();
            let mut running: FuturesUnordered<_> = running
                .map(async |call| (call, parts.run_call(call, cancel).await))
                .collect();
            while let Some((call, output)) = running.next().await {
                self.answer_call(call, output).await?;
            }
        }
        Ok(())
    }

    async fn answer_call(&mut self, call: &ToolCall, output: ToolOutput) -> Result<(), AgentError> {
        if let Some(raw) = &output.raw {
            self.transcript.keep_result(&call.id, raw).await?;
        }
        let outcome = ToolOutcome {
            id: call.id.clone(),
            text: shortened(output.text),
            images: output.images,
            is_error: output.is_error,
        };
        let parts = vec![MessagePart::ToolOutcome(outcome)];
        let speaker = Speaker::User;
        self.say(ChatMessage { speaker, parts }).await
    }
}

impl AgentParts {
    fn runs_in_parallel(&self, call: &ToolCall) -> bool {
        let tool = self.registry.find(&call.name);
        tool.is_some_and(|tool| tool.runs_in_parallel())
    }

    async fn run_call(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolOutput {
        if cancel.is_cancelled() {
            return ToolOutput::error("not called: the user interrupted before");
        }
        self.event(&AgentEvent::CallBegan(call.clone()));
        let output = match call.parsed_input() {
            Ok(input) => self.execute(call, input, cancel).await,
            Err(wrong) => ToolOutput::error(format!("{} was not called: {wrong}", call.name)),
        };
        self.event(&AgentEvent::CallEnded {
            id: call.id.clone(),
            output: output.clone(),
        });
        output
    }

    async fn execute(&self, call: &ToolCall, input: Raw, cancel: &CancellationToken) -> ToolOutput {
        let cancel = cancel.child_token();
        let observer = Arc::clone(&self.observer);
        let context = ToolContext::new(self.id.clone(), &call.id, observer, cancel.clone());
        tokio::select! {
            biased;
            output = self.registry.execute(context, &call.name, input) => output,
            // The future of the call is dropped, which cancels it at its server.
            () = cancel.cancelled() => ToolOutput::error("interrupted by the user"),
        }
    }
}

/// The beginning of a result that is too long for the model, which is told so.
fn shortened(text: String) -> String {
    let Some((cut, _)) = text.char_indices().nth(MAX_RESULT_CHARS) else {
        return text;
    };
    let (kept, rest) = text.split_at(cut);
    let left_out = rest.chars().count();
    format!("{kept}\n[{left_out} characters more were left out]")
}

/// Adds a message. Consecutive messages of the user become one.
pub(super) fn push(messages: &mut Vec<ChatMessage>, message: ChatMessage) {
    match messages.last_mut() {
        Some(last) if last.speaker == message.speaker => last.parts.extend(message.parts),
        _ => messages.push(message),
    }
}

/// A conversation that models accept: every call has a result, and results are first in their
/// message. After a crash the last answer may have calls without one; whether they were carried out is
/// not known.
pub(super) fn completed(stored: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut merged: Vec<ChatMessage> = Vec::new();
    for message in stored {
        push(&mut merged, message);
    }
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut merged = merged.into_iter().peekable();
    while let Some(message) = merged.next() {
        let calls = calls_of(&message);
        let is_answer = message.speaker == Speaker::Assistant;
        messages.push(message);
        if is_answer && !calls.is_empty() {
            let reply = merged.next_if(|next| next.speaker == Speaker::User);
            let parts = reply.map(|reply| reply.parts).unwrap_or_default();
            messages.push(ChatMessage {
                speaker: Speaker::User,
                parts: with_results(&calls, parts),
            });
        }
    }
    messages
}

fn calls_of(message: &ChatMessage) -> Vec<String> {
    let calls = message.parts.iter().filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    calls.collect()
}

/// The parts with a result for each of these calls, and the results first.
fn with_results(calls: &[String], parts: Vec<MessagePart>) -> Vec<MessagePart> {
    let (mut results, others): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .partition(|part| matches!(part, MessagePart::ToolOutcome(_)));
    for id in calls {
        let is_of_it = |part: &MessagePart| matches!(part, MessagePart::ToolOutcome(outcome) if outcome.id == *id);
        if !results.iter().any(is_of_it) {
            results.push(MessagePart::ToolOutcome(ToolOutcome {
                id: id.clone(),
                text: "the program ended during this call; it may have been carried out".to_owned(),
                images: Vec::new(),
                is_error: true,
            }));
        }
    }
    results.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(ids: &[&str]) -> ChatMessage {
        let call = |id: &&str| {
            MessagePart::ToolCall(ToolCall {
                id: (*id).to_owned(),
                name: "t".to_owned(),
                input: String::new(),
            })
        };
        ChatMessage {
            speaker: Speaker::Assistant,
            parts: ids.iter().map(call).collect(),
        }
    }

    fn outcome(id: &str) -> MessagePart {
        MessagePart::ToolOutcome(ToolOutcome {
            id: id.to_owned(),
            ..ToolOutcome::default()
        })
    }

    fn answered_ids(message: &ChatMessage) -> Vec<(&str, bool)> {
        let ids = message.parts.iter().filter_map(|part| match part {
            MessagePart::ToolOutcome(outcome) => Some((outcome.id.as_str(), outcome.is_error)),
            _ => None,
        });
        ids.collect()
    }

    /// A conversation that ended during two calls of three goes on with results for all of them.
    #[test]
    fn calls_without_a_result_get_one() {
        let hello = ChatMessage::text(Speaker::User, "Hello");
        let one = ChatMessage {
            speaker: Speaker::User,
            parts: vec![outcome("1")],
        };
        let messages = completed(vec![hello, called(&["1", "2", "3"]), one]);
        assert_eq!(messages.len(), 3);
        let ids = answered_ids(&messages[2]);
        assert_eq!(ids, [("1", false), ("2", true), ("3", true)]);
        let unanswered = completed(vec![called(&["1"])]);
        assert_eq!(answered_ids(&unanswered[1]), [("1", true)]);
        // After a second crash, the new prompt is behind the results.
        let resumed = ChatMessage::text(Speaker::User, "Go on");
        let messages = completed(vec![called(&["1"]), resumed]);
        assert_eq!(answered_ids(&messages[1]), [("1", true)]);
        assert_eq!(
            messages[1].parts.last(),
            Some(&MessagePart::Text("Go on".to_owned()))
        );
        assert_eq!(completed(messages.clone()), messages);
    }

    #[test]
    fn long_results_are_cut_between_characters() {
        let short = "ü".repeat(MAX_RESULT_CHARS);
        assert_eq!(shortened(short.clone()), short);
        let cut = shortened(short + "äöü");
        assert!(
            cut.ends_with("[3 characters more were left out]"),
            "{}",
            cut.len()
        );
    }
}
