//! Compaction: a conversation that fills most of the context window is replaced by a summary.

use std::fmt::Write;

use plexus_mcp_agents::model::{
    AnswerPart, ChatMessage, MessagePart, ModelError, Question, Speaker,
};
use tokio_util::sync::CancellationToken;

use super::{Agent, AgentError};
use crate::observer::AgentEvent;

/// The part of the context window, in percent, from which on a conversation is summarised.
const COMPACT_FROM_PERCENT: u64 = 80;
/// The part of the window, in percent, that the text to summarise may take.
const SUMMARISED_PERCENT: u64 = 60;
/// How many bytes of text make a token, on average.
const BYTES_PER_TOKEN: u64 = 4;
/// The longest part of one result that is summarised, in characters.
const MAX_RESULT_CHARS: usize = 2000;

const INSTRUCTIONS: &str = "\
You summarise a conversation between a user and an agent that calls tools, so that the agent can go on \
with the summary alone. Write down: what the user wants, word for word where it matters; what was done \
and found, with names of files, values and decisions; what failed and why; what is left to do. Do not \
call tools and do not address the user.";

impl Agent {
    /// Replaces the conversation by a summary if it fills most of the context window.
    pub(super) async fn compact_if_long(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let window = self.parts.model.context_window_tokens;
        if self.context_tokens.saturating_mul(100) >= window.saturating_mul(COMPACT_FROM_PERCENT) {
            self.compact(cancel).await?;
        }
        Ok(())
    }

    /// Replaces the conversation by a summary that the model writes. The last prompt of the user is
    /// kept word for word. After an interruption the conversation is as it was.
    ///
    /// # Errors
    /// The model gave no summary, or it cannot be stored.
    pub async fn compact(&mut self, cancel: &CancellationToken) -> Result<(), AgentError> {
        let model = &self.parts.model;
        let window = model.context_window_tokens;
        let most_bytes = window.saturating_mul(BYTES_PER_TOKEN) / 100 * SUMMARISED_PERCENT;
        let text = rendered(
            &self.messages,
            usize::try_from(most_bytes).unwrap_or(usize::MAX),
        );
        let question = Question {
            provider: model.provider,
            model: model.name.clone(),
            base_url: model.base_url.clone(),
            system: Some(INSTRUCTIONS.to_owned()),
            tools: Vec::new(),
            messages: vec![ChatMessage::text(Speaker::User, text)],
            max_tokens: model.max_tokens,
        };
        let summarising = async {
            let mut answer = self.parts.client.ask(question).await?;
            let mut text = String::new();
            while let Some(part) = answer.next().await? {
                if let AnswerPart::Text(piece) = part {
                    text.push_str(&piece);
                }
            }
            // Without a summary the conversation would be lost.
            let is_empty = text.trim().is_empty();
            if is_empty {
                return Err(ModelError::Unfinished(model.provider));
            }
            Ok(text)
        };
        let summary = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(()),
            summary = summarising => summary?,
        };
        let mut text = format!("Summary of the conversation so far:\n{summary}");
        if !self.prompt.is_empty() {
            let written = write!(text, "\n\nThe user's last prompt was:\n{}", self.prompt);
            debug_assert!(written.is_ok(), "writing to a string does not fail");
        }
        text.push_str("\n\nGo on from there.");
        let message = ChatMessage::text(Speaker::User, text);
        self.transcript.replace_by(&message).await?;
        self.messages = vec![message];
        self.context_tokens = 0;
        self.event(&AgentEvent::Compacted);
        Ok(())
    }
}

/// The conversation as text. If it is too long, the beginning is left out.
fn rendered(messages: &[ChatMessage], most_bytes: usize) -> String {
    let mut pieces = Vec::new();
    let mut bytes = 0;
    for part in messages.iter().rev().flat_map(|message| {
        let speaker = message.speaker.as_str();
        message
            .parts
            .iter()
            .rev()
            .map(move |part| render(speaker, part))
    }) {
        bytes += part.len();
        if bytes > most_bytes && !pieces.is_empty() {
            pieces.push("[the beginning is left out]".to_owned());
            break;
        }
        pieces.push(part);
    }
    pieces.reverse();
    pieces.join("\n\n")
}

fn render(speaker: &str, part: &MessagePart) -> String {
    match part {
        MessagePart::Text(text) => format!("{speaker}: {text}"),
        MessagePart::ToolCall(call) => format!("call of {}: {}", call.name, call.input),
        MessagePart::ToolOutcome(outcome) => {
            let kind = if outcome.is_error { "error" } else { "result" };
            let shown: String = outcome.text.chars().take(MAX_RESULT_CHARS).collect();
            format!("{kind}: {shown}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_conversation_is_kept() {
        let messages: Vec<_> = (0..10)
            .map(|n| ChatMessage::text(Speaker::User, format!("message {n}")))
            .collect();
        let all = rendered(&messages, 10_000);
        assert!(
            all.starts_with("user: message 0") && all.ends_with("user: message 9"),
            "{all}"
        );
        let some = rendered(&messages, 50);
        assert!(some.starts_with("[the beginning is left out]"), "{some}");
        assert!(some.ends_with("user: message 9"), "{some}");
    }
}
