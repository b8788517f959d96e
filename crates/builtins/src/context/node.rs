//! The nodes of the context graph.

use jiff::Timestamp;
use plexus_mcp_store::rusqlite::types::{
    FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef,
};
use plexus_mcp_store::rusqlite::{self, Row, ToSql};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::GraphError;

/// The namespace of nodes that are stored without one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// The maximum size of a node's content, in bytes.
const MAX_CONTENT_BYTES: usize = 10 * 1024 * 1024;

/// The kind of a node's content. Content of every kind is stored as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the modalities are fixed by the specification"
)]
pub enum Modality {
    /// Prose.
    #[default]
    Text,
    /// Source code.
    Code,
    /// An image: its description or its location.
    Image,
    /// A recording: its transcript or its location.
    Audio,
    /// Data, such as JSON.
    Structured,
    /// Several kinds.
    Mixed,
}

impl Modality {
    const ALL: [Self; 6] = [
        Self::Text,
        Self::Code,
        Self::Image,
        Self::Audio,
        Self::Structured,
        Self::Mixed,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Code => "code",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Structured => "structured",
            Self::Mixed => "mixed",
        }
    }
}

impl ToSql for Modality {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for Modality {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.ok_or(FromSqlError::InvalidType)
    }
}

/// A node to be stored.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NewNode {
    /// The text to remember.
    pub content: String,
    /// The namespace of the node.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1, max = 256))]
    pub namespace: String,
    /// A name for the node within its namespace. It replaces a node that has the same key.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    pub key: Option<String>,
    /// Tags, by which searches can be restricted.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    pub tags: Vec<String>,
    /// The kind of content.
    #[serde(default)]
    pub modality: Modality,
    /// The importance of the node, from 0 to 1.
    #[serde(default = "default_importance")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance: f64,
    /// Why the text is worth remembering.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024))]
    pub rationale: Option<String>,
}

impl NewNode {
    /// A node with this content, in the default namespace, without a key.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            namespace: default_namespace(),
            key: None,
            tags: Vec::new(),
            modality: Modality::default(),
            importance: default_importance(),
            rationale: None,
        }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The id of the node. It is derived from the key or, without a key, from the content, so the
    /// same arguments make the same node.
    pub(super) fn id(&self) -> String {
        let (kind, name) = match &self.key {
            Some(key) => ("key", key),
            None => ("content", &self.content),
        };
        format!("ctx_{}", hash(&[&self.namespace, kind, name]))
    }

    /// Checks the rules that a schema cannot express, and values that do not come from a tool call.
    pub(super) fn check(&self) -> Result<(), GraphError> {
        let short = |text: &str, max| (1..=max).contains(&text.chars().count());
        let optional = |text: &Option<String>, max| text.as_deref().is_none_or(|it| short(it, max));
        let checks = [
            (
                "content",
                self.content.len() <= MAX_CONTENT_BYTES,
                "at most 10 MiB",
            ),
            (
                "namespace",
                short(&self.namespace, 256),
                "1 to 256 characters",
            ),
            ("key", optional(&self.key, 256), "1 to 256 characters"),
            (
                "rationale",
                optional(&self.rationale, 1024),
                "1 to 1024 characters",
            ),
            (
                "importance",
                (0.0..=1.0).contains(&self.importance),
                "from 0 to 1",
            ),
            (
                "tags",
                self.tags.len() <= 32 && self.tags.iter().all(|tag| short(tag, 64)),
                "at most 32, of 1 to 64 characters each",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _)| !holds) {
            Some((member, _, rule)) => Err(GraphError::Invalid { member, rule }),
            None => Ok(()),
        }
    }
}

/// A stored node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// The id of the node.
    pub id: String,
    /// The namespace of the node.
    pub namespace: String,
    /// The name of the node within its namespace, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The text that is remembered.
    pub content: String,
    /// The kind of content.
    pub modality: Modality,
    /// The importance of the node, from 0 to 1.
    pub importance: f64,
    /// Tags, by which searches can be restricted.
    pub tags: Vec<String>,
    /// Why the text is worth remembering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// When the node was first stored, in UTC, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When the content was last stored, in UTC, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
}

impl Node {
    /// The columns that [`Node::read`] reads.
    pub(super) const COLUMNS: &str = "id, namespace, key, content, modality, importance, tags, \
        rationale, created_at, updated_at";

    /// The same columns, with the beginning of the content: one character more than searches show, to
    /// detect that the content was cut.
    pub(super) const EXCERPT_COLUMNS: &str = "id, namespace, key, substr(content, 1, 2001) AS content, \
        modality, importance, tags, rationale, created_at, updated_at";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            namespace: row.get("namespace")?,
            key: row.get("key")?,
            content: row.get("content")?,
            modality: row.get("modality")?,
            importance: row.get("importance")?,
            tags: row.get::<_, Strings>("tags")?.0,
            rationale: row.get("rationale")?,
            created_at: rfc3339(row.get("created_at")?),
            updated_at: rfc3339(row.get("updated_at")?),
        })
    }
}

/// A list of strings, stored in one column as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strings(pub(super) Vec<String>);

impl ToSql for Strings {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let failed = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        Ok(serde_json::to_string(&self.0).map_err(failed)?.into())
    }
}

impl FromSql for Strings {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let strings = serde_json::from_str(value.as_str()?);
        strings.map(Self).map_err(FromSqlError::other)
    }
}

/// The text of a node that is indexed: its key, tags and content.
pub(super) fn searchable(key: Option<&str>, tags: &[String], content: &str) -> String {
    let mut text = String::with_capacity(content.len() + 64);
    let names = key.into_iter().chain(tags.iter().map(String::as_str));
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    text.push_str(content);
    text
}

/// The beginning of a text, of at most `max` bytes.
pub(super) fn excerpt(content: &str, max: usize) -> String {
    let end = content.floor_char_boundary(max);
    match content.split_at_checked(end) {
        Some((beginning, rest)) if !rest.is_empty() => format!("{beginning}…"),
        _ => content.to_owned(),
    }
}

/// A time in milliseconds since the Unix epoch, in RFC 3339.
pub(super) fn rfc3339(milliseconds: i64) -> String {
    let timestamp = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    format!("{timestamp:.3}")
}

/// 128 bits of the SHA-256 of these parts, in hexadecimal. The length of each part is hashed too, so
/// that different lists of parts differ.
pub(super) fn hash(parts: &[&str]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    let mut half = [0; 16];
    for (kept, byte) in half.iter_mut().zip(sha.finalize()) {
        *kept = byte;
    }
    format!("{:032x}", u128::from_be_bytes(half))
}

fn default_namespace() -> String {
    DEFAULT_NAMESPACE.to_owned()
}

fn default_importance() -> f64 {
    0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are derived from the content, so the same call makes the same node.
    #[test]
    fn ids_come_from_key_or_content() {
        let plain = NewNode::new("tokens rotate");
        assert_eq!(plain.id(), NewNode::new("tokens rotate").id());
        assert_eq!(plain.id().len(), "ctx_".len() + 32);
        let keyed = |content: &str| NewNode::new(content).key("tokens").id();
        assert_eq!(keyed("tokens rotate"), keyed("tokens expire"));
        let others = [
            NewNode::new("tokens rotate ").id(),
            plain.clone().namespace("other").id(),
            keyed("tokens rotate"),
            NewNode::new("x").key("tokens rotate").id(),
        ];
        assert!(!others.contains(&plain.id()));
    }

    /// The error names the invalid member.
    #[test]
    fn invalid_nodes_are_refused_with_the_member_named() {
        let mut node = NewNode::new("x".repeat(MAX_CONTENT_BYTES));
        assert!(node.check().is_ok());
        node.content.push('x');
        let error = node.check().unwrap_err().to_string();
        assert_eq!(error, "content must be at most 10 MiB");
        for importance in [-0.1, 1.1, f64::NAN] {
            let node = NewNode {
                importance,
                ..NewNode::new("x")
            };
            assert!(node.check().is_err(), "{importance}");
        }
        assert!(NewNode::new("").check().is_ok());
        assert!(NewNode::new("").namespace("").check().is_err());
        assert!(NewNode::new("").key("").check().is_err());
        let tags = vec![String::new()];
        let node = NewNode {
            tags,
            ..NewNode::new("x")
        };
        assert!(node.check().is_err());
    }

    #[test]
    fn excerpts_end_between_letters() {
        assert_eq!(excerpt("Größe", 3), "Gr…");
        assert_eq!(excerpt("Größe", 7), "Größe");
    }

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(rfc3339(1_700_000_000_120), "2023-11-14T22:13:20.120Z");
    }
}
