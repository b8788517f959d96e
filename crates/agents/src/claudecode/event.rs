//! Parses the agent's output, one JSON message per line.

use plexus_mcp_wire::{Kind, Limits, Raw};
use serde::{Deserialize, Serialize};

/// An event of a chat.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatEvent {
    /// The agent has started.
    Start {
        agent_session_id: String,
        model: Option<String>,
    },
    /// A part of the agent's text.
    Content { text: String },
    /// A part of the agent's thinking.
    Thinking { text: String },
    /// The agent calls a tool.
    ToolUse {
        tool_name: String,
        tool_use_id: String,
        input: Raw,
    },
    /// The result of a tool call.
    ToolResult {
        tool_use_id: String,
        is_error: bool,
        content: Raw,
    },
    /// The agent waits for a permission.
    Permission {
        approval_id: String,
        tool_name: String,
    },
    /// The chat failed.
    Error { message: String },
    /// The chat is complete.
    Complete(Complete),
}

/// The result of a successful chat.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Complete {
    /// The name of the session
    pub(super) session_name: String,
    /// The agent's own id of the conversation
    pub(super) agent_session_id: String,
    /// Number of turns
    pub(super) turns: Option<u64>,
    /// Cost, in US dollars
    pub(super) cost_usd: Option<f64>,
    /// Duration, in milliseconds
    pub(super) duration_ms: Option<u64>,
    /// Number of lines of the agent's output that could not be decoded
    pub(super) skipped_lines: u64,
}

/// The final message of the agent.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FinalMessage {
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) is_error: bool,
    pub(super) session_id: String,
    pub(super) result: Option<String>,
    pub(super) num_turns: Option<u64>,
    pub(super) total_cost_usd: Option<f64>,
    pub(super) duration_ms: Option<u64>,
}

/// Decodes the output lines of one chat.
#[derive(Debug, Default)]
pub(super) struct OutputDecoder {
    /// Whether the text of the current message was already streamed in parts.
    text_streamed: bool,
    thinking_streamed: bool,
    /// The final message of the agent.
    pub(super) ending: Option<FinalMessage>,
    /// Number of lines that could not be decoded.
    pub(super) skipped: u64,
}

impl OutputDecoder {
    /// Decodes a line to events. A line that cannot be decoded is counted and skipped.
    pub(super) fn read(&mut self, line: &[u8]) -> Vec<ChatEvent> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        self.decoded(line).unwrap_or_else(|error| {
            self.skipped += 1;
            tracing::debug!(%error, "skipped a line of the agent's output");
            Vec::new()
        })
    }

    fn decoded(&mut self, line: &[u8]) -> Result<Vec<ChatEvent>, Box<dyn std::error::Error>> {
        let line = Raw::parse(line.to_vec().into(), &Limits::default())?;
        let LineType { kind, subtype } = line.decode()?;
        Ok(match (kind.as_str(), subtype.as_deref()) {
            ("system", Some("init")) => {
                let Init { session_id, model } = line.decode()?;
                vec![ChatEvent::Start {
                    agent_session_id: session_id,
                    model,
                }]
            }
            ("stream_event", _) => {
                let PartialLine { event } = line.decode()?;
                self.delta_event(event.delta).into_iter().collect()
            }
            ("assistant" | "user", _) => {
                let MessageLine { message } = line.decode()?;
                // Content that is a plain string is the prompt of the user.
                let blocks = match message.content.kind() {
                    Kind::Array => message.content.decode::<Vec<ClaudeBlock>>()?,
                    _ => Vec::new(),
                };
                let blocks = blocks.into_iter();
                blocks.filter_map(|block| self.block_event(block)).collect()
            }
            ("result", _) => {
                self.ending = Some(line.decode()?);
                Vec::new()
            }
            _ => Vec::new(),
        })
    }

    fn delta_event(&mut self, delta: Option<ClaudeDelta>) -> Option<ChatEvent> {
        match delta? {
            ClaudeDelta {
                text: Some(text), ..
            } => {
                self.text_streamed = true;
                Some(ChatEvent::Content { text })
            }
            ClaudeDelta {
                thinking: Some(text),
                ..
            } => {
                self.thinking_streamed = true;
                Some(ChatEvent::Thinking { text })
            }
            _ => None,
        }
    }

    fn block_event(&mut self, block: ClaudeBlock) -> Option<ChatEvent> {
        match &*block.kind {
            "text" => {
                let streamed = std::mem::take(&mut self.text_streamed);
                let text = block.text.filter(|_| !streamed)?;
                Some(ChatEvent::Content { text })
            }
            "thinking" => {
                let streamed = std::mem::take(&mut self.thinking_streamed);
                let text = block.thinking.filter(|_| !streamed)?;
                Some(ChatEvent::Thinking { text })
            }
            "tool_use" => Some(ChatEvent::ToolUse {
                tool_name: block.name?,
                tool_use_id: block.id?,
                input: block.input.unwrap_or_else(Raw::empty_object),
            }),
            "tool_result" => Some(ChatEvent::ToolResult {
                tool_use_id: block.tool_use_id?,
                is_error: block.is_error.unwrap_or(false),
                content: block.content.unwrap_or_else(Raw::null),
            }),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct LineType {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
}

#[derive(Deserialize)]
struct Init {
    session_id: String,
    model: Option<String>,
}

#[derive(Deserialize)]
struct PartialLine {
    event: PartialEvent,
}

#[derive(Deserialize)]
struct PartialEvent {
    delta: Option<ClaudeDelta>,
}

#[derive(Deserialize)]
struct ClaudeDelta {
    text: Option<String>,
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct MessageLine {
    message: ClaudeMessage,
}

#[derive(Deserialize)]
struct ClaudeMessage {
    content: Raw,
}

/// A content block of any kind: serde cannot decode raw values in a tagged enum.
#[derive(Deserialize)]
struct ClaudeBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Raw>,
    tool_use_id: Option<String>,
    content: Option<Raw>,
    is_error: Option<bool>,
}
