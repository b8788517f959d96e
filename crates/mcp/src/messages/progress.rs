//! Progress of a running request.

use plexus_wire::Id;
use serde::{Deserialize, Serialize};

use super::codec::{encodes, number};

/// The params of `notifications/progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token the request gave.
    pub progress_token: Id,
    /// How far it has come; always more than the last time.
    #[serde(serialize_with = "number::serialize")]
    pub progress: f64,
    /// How far it has to go.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<f64>,
    /// What is happening; from 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

encodes!(ProgressParams);
