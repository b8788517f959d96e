//! Calls of tools.

use plexus_wire::{Raw, Writer};
use serde::{Deserialize, Serialize};

use super::codec::{encodes, null_as_default, present, to_raw};
use super::content::ContentBlock;

/// The params of `tools/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// Its arguments, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw>,
}

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// What the model is shown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<ContentBlock>,
    /// The result as data. `None` is an absent member; `null` is a value.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Raw>,
    /// The tool failed. Always written, so that no reader has to know the default (S002-21).
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_error: bool,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl CallToolResult {
    /// A success that shows `content`.
    pub fn new(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self {
            content: content.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A success that shows one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// A failure that the model is told about.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// A success with data, and the same data as text for clients that read only text (TOOL-08).
    pub fn structured(value: Raw) -> Self {
        Self {
            content: vec![ContentBlock::text(value.as_str())],
            ..Self::default()
        }
        .structured_content(value)
    }

    /// Adds the result as data.
    #[must_use]
    pub fn structured_content(mut self, value: Raw) -> Self {
        self.structured_content = Some(value);
        self
    }

    /// `_meta`, an object.
    #[must_use]
    pub fn meta(mut self, meta: Raw) -> Self {
        self.meta = Some(meta);
        self
    }

    /// This message as JSON.
    pub fn to_raw(&self) -> Raw {
        match self.only_block() {
            Some(ContentBlock::Text(content)) if let Some(text) = content.alone() => {
                self.write_with(text)
            }
            Some(ContentBlock::Other(block)) if !self.is_error => {
                Raw::framed(r#"{"content":["#, block, r#"],"isError":false}"#)
            }
            _ => to_raw(self),
        }
    }

    /// The block that is all there is, as in most results.
    fn only_block(&self) -> Option<&ContentBlock> {
        match self {
            Self {
                content,
                structured_content: None,
                meta: None,
                ..
            } => match content.as_slice() {
                [block] => Some(block),
                _ => None,
            },
            _ => None,
        }
    }

    /// Texts may be long, and are copied once only.
    fn write_with(&self, text: &str) -> Raw {
        const FRAME: usize = 64;
        let mut writer = Writer::with_capacity(text.len() + FRAME);
        writer.json(r#"{"content":[{"type":"text","text":"#);
        writer.string(text);
        writer.json(r#"}],"isError":"#);
        writer.json(if self.is_error { "true" } else { "false" });
        writer.json("}");
        writer.finish()
    }
}

encodes!(CallToolParams);
