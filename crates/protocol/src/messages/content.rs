//! Content blocks of results and prompts: text, media and resources.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use plexus_mcp_wire::Raw;
use serde::{Deserialize, Deserializer, Serialize};

use super::annotations::Annotations;
use super::codec::{decode, encodes, type_of};
use super::resource::Resource;

/// One block of a tool result or prompt message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// A recording, from 2025-03-26.
    Audio(MediaContent),
    /// A resource the client may read, from 2025-06-18.
    ResourceLink(Box<Resource>),
    /// A resource with its contents.
    Resource(EmbeddedResource),
    /// A block that is kept as it came, mostly of a type this crate does not know.
    #[serde(untagged)]
    Other(Raw),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(bytes, mime_type))
    }

    /// A recording.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(bytes, mime_type))
    }

    /// A link to a resource.
    pub fn link(resource: Resource) -> Self {
        Self::ResourceLink(Box::new(resource))
    }

    /// A resource with its contents.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource {
            resource: contents,
            annotations: None,
            meta: None,
        })
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Sets the annotations of the block: audience and priority. A block of an unknown type stays as
    /// it is.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        match &mut self {
            Self::Text(content) => content.annotations = Some(annotations),
            Self::Image(content) | Self::Audio(content) => content.annotations = Some(annotations),
            Self::ResourceLink(resource) => resource.annotations = Some(annotations),
            Self::Resource(embedded) => embedded.annotations = Some(annotations),
            Self::Other(_) => {}
        }
        self
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Ok(match type_of(&raw)?.as_str() {
            "text" => Self::Text(decode(&raw)?),
            "image" => Self::Image(decode(&raw)?),
            "audio" => Self::Audio(decode(&raw)?),
            "resource_link" => Self::ResourceLink(decode(&raw)?),
            "resource" => Self::Resource(decode(&raw)?),
            _ => Self::Other(raw),
        })
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// The members of a text block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Annotations: audience, priority and time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl TextContent {
    /// Text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            annotations: None,
            meta: None,
        }
    }
}

/// The members of an image or audio block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// The bytes in base64.
    pub data: String,
    /// The MIME type.
    pub mime_type: String,
    /// Annotations: audience, priority and time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl MediaContent {
    /// Encodes `bytes`.
    pub fn new(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self {
            data: BASE64_STANDARD.encode(bytes),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
        }
    }
}

/// A resource inside a message. On the wire its contents are nested in `resource` (C41).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Annotations: audience, priority and time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The contents of a resource: text, or bytes in base64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "UncheckedContents")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every revision has exactly these two"
)]
pub enum ResourceContents {
    /// Text.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The resource they are the contents of.
        uri: String,
        /// The MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The text.
        text: String,
        /// `_meta`.
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Raw>,
    },
    /// Bytes.
    #[serde(rename_all = "camelCase")]
    Blob {
        /// The resource they are the contents of.
        uri: String,
        /// The MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The bytes in base64.
        blob: String,
        /// `_meta`.
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Raw>,
    },
}

impl ResourceContents {
    /// Text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text {
            uri: uri.into(),
            mime_type: None,
            text: text.into(),
            meta: None,
        }
    }

    /// Binary contents.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        let blob = BASE64_STANDARD.encode(bytes);
        Self::Blob {
            uri: uri.into(),
            mime_type: None,
            blob,
            meta: None,
        }
    }

    /// The MIME type.
    #[must_use]
    pub fn mime_type(mut self, value: impl Into<String>) -> Self {
        let (Self::Text { mime_type, .. } | Self::Blob { mime_type, .. }) = &mut self;
        *mime_type = Some(value.into());
        self
    }

    /// The resource they are the contents of.
    pub fn uri(&self) -> &str {
        let (Self::Text { uri, .. } | Self::Blob { uri, .. }) = self;
        uri
    }
}

encodes!(ContentBlock, ResourceContents);

/// Both kinds of contents as they are read, before it is known which they are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UncheckedContents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Raw>,
}

impl TryFrom<UncheckedContents> for ResourceContents {
    type Error = &'static str;

    fn try_from(unchecked: UncheckedContents) -> Result<Self, Self::Error> {
        let UncheckedContents {
            uri,
            mime_type,
            text,
            blob,
            meta,
        } = unchecked;
        match (text, blob) {
            (Some(text), None) => Ok(Self::Text {
                uri,
                mime_type,
                text,
                meta,
            }),
            (None, Some(blob)) => Ok(Self::Blob {
                uri,
                mime_type,
                blob,
                meta,
            }),
            (Some(_), Some(_)) => Err("resource contents with both text and blob"),
            (None, None) => Err("resource contents with neither text nor blob"),
        }
    }
}
