//! Annotations of tools (`readOnlyHint`, `destructiveHint`, `idempotentHint`), by which clients
//! decide whether to ask their users before a call. All these tools work on local data only
//! (`openWorldHint` is false).

use plexus_mcp_core::{Tool, ToolAnnotations};

/// The tool changes nothing.
pub fn read_only(tool: Tool) -> Tool {
    tool.annotations(local().read_only(true))
}

/// The tool adds or changes data; each further call does so again.
pub fn non_destructive(tool: Tool) -> Tool {
    tool.annotations(writing().idempotent(false))
}

/// The tool changes data; the same call again changes nothing more.
pub fn idempotent(tool: Tool) -> Tool {
    tool.annotations(writing().idempotent(true))
}

/// The tool deletes data; the same call again changes nothing more.
pub fn destructive(tool: Tool) -> Tool {
    tool.annotations(writing().destructive(true).idempotent(true))
}

fn writing() -> ToolAnnotations {
    local().read_only(false).destructive(false)
}

fn local() -> ToolAnnotations {
    ToolAnnotations::new().open_world(false)
}
