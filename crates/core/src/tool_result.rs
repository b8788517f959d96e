//! The return types of tool handlers.

use std::fmt::Display;

use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::messages::{CallToolResult, ContentBlock};
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;

use crate::event::AskError;

/// The usual return type of a tool handler: a result or a [`ToolError`].
pub type ToolResult<T = CallToolResult> = Result<T, ToolError>;

/// Why a tool gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool ran and failed: an ordinary result with `isError`, for the model to read.
    #[error("{0}")]
    Failed(String),
    /// The call could not be carried out: an error of the protocol.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl ToolError {
    /// The tool ran and failed, for this reason: a text or an error.
    ///
    /// ```
    /// use plexus_mcp_core::{ToolError, ToolResult};
    ///
    /// fn parsed(number: &str) -> ToolResult<u32> {
    ///     number.parse().map_err(ToolError::failed)
    /// }
    /// ```
    pub fn failed(reason: impl Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        match error {
            answered @ (AskError::Refused(_) | AskError::Malformed(_)) => Self::failed(answered),
            other => Self::Fault(other.into()),
        }
    }
}

/// A structured result: goes out as `structuredContent` and, for older clients, as JSON text.
/// Its schema becomes the tool's `outputSchema`.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a plain wrapper")]
pub struct Json<T>(pub T);

/// Anything a tool handler may return.
pub trait IntoToolResult {
    /// The result, or why there is none.
    ///
    /// # Errors
    /// The error that the handler returned.
    fn into_tool_result(self) -> ToolResult;

    /// The JSON Schema of structured results.
    fn output_schema() -> Option<schemars::Schema>
    where
        Self: Sized,
    {
        None
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> ToolResult {
        Ok(self)
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> ToolResult {
        Ok(CallToolResult::new(self))
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> ToolResult {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolResult {
        ContentBlock::text(self).into_tool_result()
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> ToolResult {
        ContentBlock::text(self).into_tool_result()
    }
}

/// For handlers that only stream.
impl IntoToolResult for () {
    fn into_tool_result(self) -> ToolResult {
        Vec::new().into_tool_result()
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> ToolResult {
        let structured = Raw::encode(&self.0)
            .map_err(|error| Fault::Internal(format!("the result is no JSON: {error}")))?;
        let mut result = CallToolResult::new(vec![ContentBlock::text(structured.as_str())]);
        result.structured_content = Some(structured);
        Ok(result)
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(T))
    }
}

impl<T: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> ToolResult {
        self.map_err(Into::into).and_then(T::into_tool_result)
    }

    fn output_schema() -> Option<schemars::Schema> {
        T::output_schema()
    }
}
