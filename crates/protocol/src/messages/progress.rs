//! Progress of a running request.

use plexus_mcp_wire::Id;
use serde::{Deserialize, Serialize};

use super::codec::{encodes, number};

/// The params of `notifications/progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token the request gave.
    pub progress_token: Id,
    /// The progress so far. It increases with every notification.
    #[serde(serialize_with = "number::serialize")]
    pub progress: f64,
    /// The value of `progress` at the end.
    #[serde(
        serialize_with = "number::optional::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<f64>,
    /// A description of the current step; from 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

encodes!(ProgressParams);
