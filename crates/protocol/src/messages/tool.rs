//! Tools and how they are shown.

use plexus_mcp_wire::{Object, Raw};
use serde::{Deserialize, Serialize};

use super::codec::{self, null_as_default};

/// The definition of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name, by which it is called.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Raw,
    /// The JSON Schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// Hints about its behaviour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Pictures of it.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub icons: Vec<Icon>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl Tool {
    /// A tool that takes no arguments, until [`input_schema`](Self::input_schema) says otherwise.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: Raw::from_static(r#"{"type":"object","additionalProperties":false}"#),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }

    /// The display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The description, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The JSON Schema of the arguments; its root must be an object schema.
    #[must_use]
    pub fn input_schema(mut self, schema: Raw) -> Self {
        self.input_schema = schema;
        self
    }

    /// The JSON Schema of the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: Raw) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Hints about the behaviour of the tool.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// `_meta`, an object.
    #[must_use]
    pub fn meta(mut self, meta: Raw) -> Self {
        self.meta = Some(meta);
        self
    }

    /// This message as JSON. The same as serialising it, but schemas are not read again.
    pub fn to_raw(&self) -> Raw {
        let Self {
            name,
            title,
            description,
            input_schema,
            output_schema,
            annotations,
            icons,
            meta,
        } = self;
        let string = |text: &String| Raw::string(text);
        let members = [
            ("name", Some(Raw::string(name))),
            ("title", title.as_ref().map(string)),
            ("description", description.as_ref().map(string)),
            ("inputSchema", Some(input_schema.clone())),
            ("outputSchema", output_schema.clone()),
            ("annotations", annotations.as_ref().map(codec::to_raw)),
            ("icons", (!icons.is_empty()).then(|| codec::to_raw(icons))),
            ("_meta", meta.clone()),
        ];
        let mut tool = Object::new();
        for (key, value) in members {
            if let Some(value) = value {
                tool.set(key, value);
            }
        }
        tool.to_raw()
    }
}

/// Hints about what a tool does. They are hints: a client trusts them as far as it trusts the
/// server.
///
/// The names some older systems use, `readOnly`, `destructive`, `idempotent` and `openWorld`, are
/// read as well (C40), and never written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "AnnotationsAsWritten")]
pub struct ToolAnnotations {
    /// The display name in 2025-03-26; later, the title of the tool takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing; taken as false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something; taken as true when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more; taken as false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond a closed domain; taken as true when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// The display name for clients of 2025-03-26.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `readOnlyHint`: the tool modifies nothing.
    #[must_use]
    pub fn read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Sets `destructiveHint`: the tool may delete or overwrite data.
    #[must_use]
    pub fn destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Sets `idempotentHint`: another call with the same arguments has no further effect.
    #[must_use]
    pub fn idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Sets `openWorldHint`: the tool uses entities outside of a closed domain, such as the web.
    #[must_use]
    pub fn open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }
}

/// A picture of a tool, resource, prompt or implementation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// The `https:` or `data:` URI of the picture.
    pub src: String,
    /// The MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it suits, as `48x48` or `any`.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sizes: Vec<String>,
    /// The background it suits, `light` or `dark`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}

impl Icon {
    /// A picture that suits every size and background.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
            theme: None,
        }
    }

    /// The MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size it suits.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }
}

/// Tool annotations with both spellings of each hint.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnotationsAsWritten {
    title: Option<String>,
    read_only_hint: Option<bool>,
    read_only: Option<bool>,
    destructive_hint: Option<bool>,
    destructive: Option<bool>,
    idempotent_hint: Option<bool>,
    idempotent: Option<bool>,
    open_world_hint: Option<bool>,
    open_world: Option<bool>,
}

impl From<AnnotationsAsWritten> for ToolAnnotations {
    fn from(written: AnnotationsAsWritten) -> Self {
        Self {
            title: written.title,
            read_only_hint: written.read_only_hint.or(written.read_only),
            destructive_hint: written.destructive_hint.or(written.destructive),
            idempotent_hint: written.idempotent_hint.or(written.idempotent),
            open_world_hint: written.open_world_hint.or(written.open_world),
        }
    }
}
