//! What an agent says, line by line.

use plexus_wire::{Kind, Limits, Raw};
use serde::{Deserialize, Serialize};

/// Something that happens in a chat.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatEvent {
    /// The agent is at work.
    Start {
        agent_session_id: String,
        model: Option<String>,
    },
    /// A piece of what it says.
    Content { text: String },
    /// A piece of what it thinks.
    Thinking { text: String },
    /// It uses a tool.
    ToolUse {
        tool_name: String,
        tool_use_id: String,
        input: Raw,
    },
    /// What came of that.
    ToolResult {
        tool_use_id: String,
        is_error: bool,
        content: Raw,
    },
    /// It waits for a permission.
    Permission {
        approval_id: String,
        tool_name: String,
    },
    /// It failed.
    Error { message: String },
    /// It is done.
    Complete(Complete),
}

/// How a chat ended that ended well.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Complete {
    /// The session
    pub(super) session_name: String,
    /// What the agent calls the conversation
    pub(super) agent_session_id: String,
    /// How many turns it took
    pub(super) turns: Option<u64>,
    /// What it cost, in US dollars
    pub(super) cost_usd: Option<f64>,
    /// How many milliseconds it took
    pub(super) duration_ms: Option<u64>,
    /// How many lines of the agent's output could not be read
    pub(super) skipped_lines: u64,
}

/// How the agent says that it is done.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ending {
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

/// Reads the lines of one chat.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The text of the current message came piece by piece already.
    text_came: bool,
    thinking_came: bool,
    /// How the agent said that it is done.
    pub(super) ending: Option<Ending>,
    /// How many lines could not be read.
    pub(super) skipped: u64,
}

impl Reader {
    /// What a line says. A line that cannot be read is counted.
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
        let Typed { kind, subtype } = line.decode()?;
        Ok(match (kind.as_str(), subtype.as_deref()) {
            ("system", Some("init")) => {
                let Init { session_id, model } = line.decode()?;
                vec![ChatEvent::Start {
                    agent_session_id: session_id,
                    model,
                }]
            }
            ("stream_event", _) => {
                let Partial { event } = line.decode()?;
                self.piece(event.delta).into_iter().collect()
            }
            ("assistant" | "user", _) => {
                let Spoken { message } = line.decode()?;
                // What is only text is what the user said.
                let blocks = match message.content.kind() {
                    Kind::Array => message.content.decode::<Vec<Block>>()?,
                    _ => Vec::new(),
                };
                let said = blocks.into_iter();
                said.filter_map(|block| self.block(block)).collect()
            }
            ("result", _) => {
                self.ending = Some(line.decode()?);
                Vec::new()
            }
            _ => Vec::new(),
        })
    }

    fn piece(&mut self, delta: Option<Delta>) -> Option<ChatEvent> {
        match delta? {
            Delta {
                text: Some(text), ..
            } => {
                self.text_came = true;
                Some(ChatEvent::Content { text })
            }
            Delta {
                thinking: Some(text),
                ..
            } => {
                self.thinking_came = true;
                Some(ChatEvent::Thinking { text })
            }
            _ => None,
        }
    }

    fn block(&mut self, block: Block) -> Option<ChatEvent> {
        match &*block.kind {
            "text" => {
                let came = std::mem::take(&mut self.text_came);
                let text = block.text.filter(|_| !came)?;
                Some(ChatEvent::Content { text })
            }
            "thinking" => {
                let came = std::mem::take(&mut self.thinking_came);
                let text = block.thinking.filter(|_| !came)?;
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
struct Typed {
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
struct Partial {
    event: PartialEvent,
}

#[derive(Deserialize)]
struct PartialEvent {
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct Spoken {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Raw,
}

/// Raw values cannot be told apart by a tag, so all kinds are one.
#[derive(Deserialize)]
struct Block {
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
