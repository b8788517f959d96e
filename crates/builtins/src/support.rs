//! Helpers that built-in services share, for this crate and for `plexus-mcp-agents`.

pub use crate::catalogue_diff::{CatalogueDiff, catalogue_diff};
pub use crate::json::to_json;
pub use crate::notifying_store::{WriteTransaction, timestamp_text};
pub use crate::store_errors::{log_store_error, store_fault};
pub use crate::tool_annotations::{destructive, idempotent, non_destructive, read_only};
pub use crate::tool_set::{ToolData, ToolSet};
