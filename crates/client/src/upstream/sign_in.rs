//! The `sign_in` tool: the only tool of a server that cannot be connected before its user signs in.
//! Calling it offers the sign-in page.

use std::sync::{Arc, Weak};

use plexus_mcp_core::{
    Boxed, Call, Catalogue, Context, LocalService, NoArguments, Outcome, Service, Tool,
    ToolAnnotations, ToolError, ToolResult,
};
use plexus_mcp_protocol::method;

use super::{Handle, Upstream};

/// The tool's name.
const SIGN_IN_TOOL: &str = "sign_in";

pub(super) struct SignIn(LocalService);

impl SignIn {
    /// `None` if the tool cannot be offered; this would be a mistake in this module.
    pub(super) fn of(upstream: Weak<Handle>) -> Option<Self> {
        let description = "This server wants its user to sign in. Call this to have the user be \
                           shown the page; after that, the server's own tools are there.";
        let annotations = ToolAnnotations {
            read_only_hint: Some(false),
            destructive_hint: Some(false),
            idempotent_hint: Some(true),
            ..ToolAnnotations::default()
        };
        let tool = Tool::new(SIGN_IN_TOOL)
            .description(description)
            .annotations(annotations);
        let service = LocalService::builder("sign-in", env!("CARGO_PKG_VERSION"))
            .tool(tool, move |_: NoArguments, context: Context| {
                sign_in(Weak::clone(&upstream), context)
            })
            .build();
        service.ok().map(Self)
    }

    pub(super) fn catalogue() -> Option<Arc<Catalogue>> {
        let offer = Self::of(Weak::new())?;
        let catalogue = Arc::clone(&offer.0.catalogue().borrow());
        Some(catalogue)
    }

    pub(super) fn call(&self, call: Call) -> Boxed<Outcome> {
        self.0.call(call)
    }
}

/// Whether a call is of this tool.
pub(super) fn is_call(call: &Call) -> bool {
    &*call.method == method::TOOLS_CALL && call.params.text("name").as_deref() == Some(SIGN_IN_TOOL)
}

async fn sign_in(upstream: Weak<Handle>, context: Context) -> ToolResult<String> {
    let gone = || ToolError::Failed("the server was taken out of the configuration".to_owned());
    let handle = upstream.upgrade().ok_or_else(gone)?;
    let connected = (Upstream { handle }).connect_for(context.events()).await;
    connected.map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok("signed in; the server's tools are there now".to_owned())
}
