//! Elicitation: questions of a server to the user of a client.

use std::fmt;

use plexus_mcp_wire::Raw;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::codec::{decode, encodes};

/// The params of `elicitation/create` (ELIC-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "an unknown mode cannot be answered, and is refused"
)]
pub enum ElicitParams {
    /// A form to fill in.
    Form(ElicitFormParams),
    /// A page to visit.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// A form to fill in; `requested_schema` is a flat object schema of primitive members.
    pub fn form(message: impl Into<String>, requested_schema: Raw) -> Self {
        Self::Form(ElicitFormParams {
            message: message.into(),
            requested_schema,
        })
    }

    /// A page to visit.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams {
            message: message.into(),
            url: url.into(),
            elicitation_id: None,
        })
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct DeclaredMode {
            mode: Option<String>,
        }
        let raw = Raw::deserialize(deserializer)?;
        match decode::<DeclaredMode, _>(&raw)?.mode.as_deref() {
            None | Some("form") => decode(&raw).map(Self::Form),
            Some("url") => decode(&raw).map(Self::Url),
            Some(other) => Err(D::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}

/// The members of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitFormParams {
    /// The text that the user sees.
    pub message: String,
    /// The fields: a flat object schema of primitive members.
    pub requested_schema: Raw,
}

/// The params of a question that sends the user to a web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitUrlParams {
    /// The reason to visit the page, for the user.
    pub message: String,
    /// The URL of the page.
    pub url: String,
    /// The id that the completion notification refers to; in 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
}

/// The result of `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// The choice.
    pub action: ElicitAction,
    /// The form as filled in, an object; only with [`ElicitAction::Accept`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw>,
}

impl ElicitResult {
    /// The form was sent off.
    pub fn accept(content: Raw) -> Self {
        Self {
            action: ElicitAction::Accept,
            content: Some(content),
        }
    }

    /// The user agreed to visit the page. The client does not see the rest.
    pub fn accept_url() -> Self {
        Self {
            action: ElicitAction::Accept,
            content: None,
        }
    }

    /// The user declined.
    pub fn decline() -> Self {
        Self {
            action: ElicitAction::Decline,
            content: None,
        }
    }

    /// The user closed the question without a choice.
    pub fn cancel() -> Self {
        Self {
            action: ElicitAction::Cancel,
            content: None,
        }
    }
}

/// The user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every revision has exactly these three"
)]
pub enum ElicitAction {
    /// Say yes.
    Accept,
    /// Say no.
    Decline,
    /// Close it without a choice.
    Cancel,
}

impl ElicitAction {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

impl fmt::Display for ElicitAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

encodes!(ElicitParams, ElicitResult);
