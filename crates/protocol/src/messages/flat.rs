//! A flat view of content: every kind of block as one struct (C41).

use serde::Serialize;

use super::call::CallToolResult;
use super::content::{ContentBlock, ResourceContents};
use super::resource::ReadResourceResult;

/// A content block without nesting: the members of an embedded resource are members of the block
/// (C41, S004-59). On the wire they stay nested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlatContent {
    /// `text`, `image`, `audio`, `resource`, `resource_link`, or a type that is not known here.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of a text block, or of an embedded resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Base64 of an image, of audio, or of an embedded resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The URI of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

impl From<&ContentBlock> for FlatContent {
    fn from(block: &ContentBlock) -> Self {
        let flat = |kind: &str| Self {
            kind: kind.to_owned(),
            ..Self::default()
        };
        match block {
            ContentBlock::Text(content) => Self {
                text: Some(content.text.clone()),
                ..flat("text")
            },
            ContentBlock::Image(media) => Self {
                data: Some(media.data.clone()),
                mime_type: Some(media.mime_type.clone()),
                ..flat("image")
            },
            ContentBlock::Audio(media) => Self {
                data: Some(media.data.clone()),
                mime_type: Some(media.mime_type.clone()),
                ..flat("audio")
            },
            ContentBlock::ResourceLink(resource) => Self {
                uri: Some(resource.uri.clone()),
                mime_type: resource.mime_type.clone(),
                ..flat("resource_link")
            },
            ContentBlock::Resource(embedded) => Self::from(&embedded.resource),
            ContentBlock::Other(raw) => {
                let kind = super::codec::type_of::<serde_json::Error>(raw);
                flat(kind.as_deref().unwrap_or_default())
            }
        }
    }
}

impl From<&ResourceContents> for FlatContent {
    fn from(contents: &ResourceContents) -> Self {
        let (uri, mime_type, text, data) = match contents {
            ResourceContents::Text {
                uri,
                mime_type,
                text,
                ..
            } => (uri, mime_type, Some(text.clone()), None),
            ResourceContents::Blob {
                uri,
                mime_type,
                blob,
                ..
            } => (uri, mime_type, None, Some(blob.clone())),
        };
        Self {
            kind: "resource".to_owned(),
            text,
            mime_type: mime_type.clone(),
            data,
            uri: Some(uri.clone()),
        }
    }
}

impl CallToolResult {
    /// Every block in its flat form.
    pub fn flat(&self) -> Vec<FlatContent> {
        self.content.iter().map(FlatContent::from).collect()
    }

    /// The text of all text blocks, one below the other.
    pub fn joined_text(&self) -> String {
        let texts: Vec<_> = self
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect();
        texts.join("\n")
    }
}

impl ReadResourceResult {
    /// Every content in its flat form, with the kind `resource`.
    pub fn flat(&self) -> Vec<FlatContent> {
        self.contents.iter().map(FlatContent::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// C41, S004-59: the members of an embedded resource are members of the flat block.
    #[test]
    fn every_kind_of_block_has_a_flat_form() {
        let blocks = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AQ==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///l", "name": "l", "mimeType": "text/x-l"},
            {"type": "resource", "resource": {"uri": "file:///t", "mimeType": "text/plain", "text": "b"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "Ag=="}},
            {"type": "hologram", "beam": 1},
            {"type": "text", "text": "c"},
        ]});
        let result: CallToolResult = serde_json::from_str(&blocks.to_string()).unwrap();
        let flat: Vec<_> = result.flat();
        let expected = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "audio", "mimeType": "audio/wav", "data": "AQ=="},
            {"type": "resource_link", "mimeType": "text/x-l", "uri": "file:///l"},
            {"type": "resource", "text": "b", "mimeType": "text/plain", "uri": "file:///t"},
            {"type": "resource", "data": "Ag==", "uri": "file:///b"},
            {"type": "hologram"},
            {"type": "text", "text": "c"},
        ]);
        let flat: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&flat).unwrap()).unwrap();
        assert_eq!(flat, expected);
        assert_eq!(result.joined_text(), "a\nc");
    }

    /// C41, S004-59: the contents of a resource have the flat form of an embedded resource.
    #[test]
    fn contents_of_a_resource_have_a_flat_form() {
        let result = ReadResourceResult::new([
            ResourceContents::text("file:///t", "b"),
            serde_json::from_str(r#"{"uri": "file:///b", "blob": "Ag=="}"#).unwrap(),
        ]);
        let flat: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&result.flat()).unwrap()).unwrap();
        let expected = json!([
            {"type": "resource", "text": "b", "uri": "file:///t"},
            {"type": "resource", "data": "Ag==", "uri": "file:///b"},
        ]);
        assert_eq!(flat, expected);
    }
}
