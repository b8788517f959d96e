//! Answers questions of servers when there is no user to ask.

use plexus_mcp_client::ClientCapabilities;
use plexus_mcp_core::{Boxed, QuestionHandler, Raw, Root};
use plexus_mcp_wire::RpcError;

use crate::terminal_prompts::project_root;

/// Tells servers the project, and nothing else.
pub(super) struct NoUser;

impl QuestionHandler for NoUser {
    fn capabilities(&self) -> ClientCapabilities {
        let declared = Raw::from_static(r#"{"roots":{}}"#);
        ClientCapabilities::from_raw(&declared).unwrap_or_else(|_| ClientCapabilities::none())
    }

    fn list_roots(&self) -> Boxed<Result<Vec<Root>, RpcError>> {
        let roots = project_root().into_iter().collect();
        Box::pin(std::future::ready(Ok(roots)))
    }
}
