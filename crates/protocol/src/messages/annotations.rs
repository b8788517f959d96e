//! Hints for how content is used.

use serde::{Deserialize, Serialize};

use super::codec::{null_as_default, number};

/// The role of a speaker, or of an audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every revision has exactly these two"
)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Hints for how a client uses a block or resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub audience: Vec<Role>,
    /// The priority, from 0 to 1.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub priority: Option<f64>,
    /// When it last changed, in ISO 8601; from 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// The intended audience.
    #[must_use]
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = audience.into_iter().collect();
        self
    }

    /// The priority, clamped to the range from 0 to 1.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority.clamp(0.0, 1.0));
        self
    }

    /// When it last changed, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }
}
