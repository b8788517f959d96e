//! Sampling: questions of a server to the client's model.

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Deserializer, Serialize};

use super::annotations::Role;
use super::codec::{
    decode, encodes, is_false, null_as_default, number, one_or_many, present, type_of,
};
use super::content::{ContentBlock, MediaContent, TextContent};
use super::tool::Tool;

/// The params of `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The part of the client's context to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The temperature.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature: Option<f64>,
    /// The most tokens that the model may generate.
    pub max_tokens: u64,
    /// The stop sequences.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub stop_sequences: Vec<String>,
    /// Metadata for the provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Raw>,
    /// The tools the model may use; from 2025-11-25.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tools: Vec<Tool>,
    /// Whether the model must use them; from 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
}

impl CreateMessageParams {
    /// A conversation to continue.
    pub fn new(messages: impl IntoIterator<Item = SamplingMessage>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            max_tokens,
            stop_sequences: Vec::new(),
            metadata: None,
            tools: Vec::new(),
            tool_choice: None,
        }
    }

    /// The system prompt.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The content: one block, or from 2025-11-25 several.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// `_meta`; from 2025-11-25.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl SamplingMessage {
    /// A message of the user.
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::User,
            content: vec![content.into()],
            meta: None,
        }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![content.into()],
            meta: None,
        }
    }
}

/// One block of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// A recording, from 2025-03-26.
    Audio(MediaContent),
    /// The model uses a tool, from 2025-11-25.
    ToolUse(ToolUseContent),
    /// The result of a tool, from 2025-11-25.
    ToolResult(ToolResultContent),
    /// A block of a type this crate does not know, kept as it came.
    #[serde(untagged)]
    Other(Raw),
}

impl SamplingContent {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Ok(match type_of(&raw)?.as_str() {
            "text" => Self::Text(decode(&raw)?),
            "image" => Self::Image(decode(&raw)?),
            "audio" => Self::Audio(decode(&raw)?),
            "tool_use" => Self::ToolUse(decode(&raw)?),
            "tool_result" => Self::ToolResult(decode(&raw)?),
            _ => Self::Other(raw),
        })
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// The model uses a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUseContent {
    /// The id that the tool result refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, an object.
    pub input: Raw,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The result of a tool that the model used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The [`ToolUseContent`] this answers.
    pub tool_use_id: String,
    /// The result, for the model.
    pub content: Vec<ContentBlock>,
    /// The result as data. `None` is an absent member; `null` is a value.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Raw>,
    /// The tool failed.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_false"
    )]
    pub is_error: bool,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Which model to take. The three priorities go from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Names, best first.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hints: Vec<ModelHint>,
    /// How much the price matters.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost_priority: Option<f64>,
    /// How much speed matters.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub speed_priority: Option<f64>,
    /// How much ability matters.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub intelligence_priority: Option<f64>,
}

/// A preferred model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHint {
    /// Part of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The part of the client's context to add to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every revision has exactly these three"
)]
pub enum IncludeContext {
    /// Nothing.
    None,
    /// Context from this server.
    ThisServer,
    /// Context from all servers.
    AllServers,
}

/// Whether the model must use tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// `None` is `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// How free the model is to use tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the specification closes this set")]
pub enum ToolChoiceMode {
    /// It may.
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// The answer to `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// The role of the speaker: the model.
    pub role: Role,
    /// The content: one block, or from 2025-11-25 several.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// The name of the model.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a provider's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

impl CreateMessageResult {
    /// The text of all text blocks, joined.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            SamplingContent::Text(block) => Some(block.text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

encodes!(CreateMessageParams, CreateMessageResult);
