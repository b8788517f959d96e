//! A server that wants its user to sign in, before anything is known of it.
//!
//! It offers one tool, by which whoever uses the client finds out, and is offered the page.

use std::sync::{Arc, Weak};

use plexus_client::Upstream;
use plexus_mcp::method;
use plexus_service::{
    Boxed, Call, Catalogue, Context, Fault, LocalService, NoArguments, Outcome, Peer, Service,
    Tool, ToolAnnotations, ToolError, ToolResult, Updates,
};
use tokio::sync::watch;

use super::connection::Connection;

/// The tool's name.
const SIGN_IN: &str = "sign_in";

/// The tool, and the server behind it.
#[derive(Clone)]
pub(super) struct SignIn {
    tool: LocalService,
    upstream: Upstream,
}

impl SignIn {
    /// `None` if the tool cannot be offered; this would be a mistake in this module.
    pub(super) fn new(connection: &Weak<Connection>, upstream: Upstream) -> Option<Self> {
        let description = "This server wants its user to sign in. Call this to have the user be \
                           shown the page; after that, the server's own tools are there.";
        let annotations = ToolAnnotations {
            read_only_hint: Some(false),
            destructive_hint: Some(false),
            idempotent_hint: Some(true),
            ..ToolAnnotations::default()
        };
        let tool = Tool::new(SIGN_IN)
            .description(description)
            .annotations(annotations);
        let connection = Weak::clone(connection);
        let service = LocalService::builder("sign-in", env!("CARGO_PKG_VERSION"))
            .tool(tool, move |_: NoArguments, context: Context| {
                sign_in(Weak::clone(&connection), context)
            })
            .build();
        let tool = service.ok()?;
        Some(Self { tool, upstream })
    }

    pub(super) fn offer(&self) -> Arc<Catalogue> {
        Arc::clone(&self.tool.catalogue().borrow())
    }
}

async fn sign_in(connection: Weak<Connection>, context: Context) -> ToolResult<String> {
    let gone = || ToolError::Failed("the server was taken out of the configuration".to_owned());
    let connection = connection.upgrade().ok_or_else(gone)?;
    let connected = connection.connect_for(context.events()).await;
    connected.map_err(ToolError::Failed)?;
    Ok("signed in; the server's tools are there now".to_owned())
}

impl Service for SignIn {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.tool.catalogue()
    }

    /// Whatever else is wanted of it, the server itself answers, and also has the user sign in.
    fn call(&self, call: Call) -> Boxed<Outcome> {
        let is_tool = &*call.method == method::TOOLS_CALL
            && call.params.text("name").as_deref() == Some(SIGN_IN);
        if is_tool {
            self.tool.call(call)
        } else {
            self.upstream.call(call)
        }
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.upstream.subscribe(peer, uri)
    }
}
