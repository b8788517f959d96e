//! Calls of tools.

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Serialize};

use super::codec::{encodes, null_as_default, present};
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
    /// The result, for the model.
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

    /// A failure, with a text for the model.
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
}

encodes!(CallToolParams, CallToolResult);
