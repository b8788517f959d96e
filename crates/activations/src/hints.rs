//! What tools do to what is kept here, for clients that ask their users before some of it.

use plexus_service::{Tool, ToolAnnotations};

/// It changes nothing.
pub(crate) fn reading(tool: Tool) -> Tool {
    tool.annotations(here().read_only(true))
}

/// It adds or changes something, and once more whenever it is called again.
pub(crate) fn changing(tool: Tool) -> Tool {
    tool.annotations(changes().idempotent(false))
}

/// It changes something, and nothing more if it is called again.
pub(crate) fn idempotent(tool: Tool) -> Tool {
    tool.annotations(changes().idempotent(true))
}

/// It takes something away.
pub(crate) fn destructive(tool: Tool) -> Tool {
    tool.annotations(changes().destructive(true).idempotent(true))
}

fn changes() -> ToolAnnotations {
    here().read_only(false).destructive(false)
}

fn here() -> ToolAnnotations {
    ToolAnnotations::new().open_world(false)
}
