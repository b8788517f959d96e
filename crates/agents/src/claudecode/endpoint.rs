//! The MCP endpoint at which an agent asks for permissions.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use plexus_mcp_core::{Context, LocalService, Tool, ToolResult};
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::ClaudeCodeError;
use super::event::ChatEvent;
use crate::loopback::{ANSWER_TIMEOUT, Decision, Permissions, Permit, Request, answer};

/// The name by which the agent calls the tool `loopback_permit` of this endpoint.
pub(super) const PERMIT_TOOL: &str = "mcp__plexus__loopback_permit";

/// An endpoint for the agent of one chat, on a loopback address and under a secret path. It has one
/// tool.
pub(super) struct LoopbackEndpoint {
    server: HttpServer,
    edge: Arc<Edge>,
    over: CancellationToken,
    /// The configuration file of the agent, with the secret path. Only this user can read it,
    /// unlike a command line.
    config: NamedTempFile,
}

/// Forwards the permission requests of the agent of one chat.
#[derive(Clone)]
pub(super) struct PermissionForwarder {
    pub(super) permissions: Permissions,
    pub(super) session_id: String,
    /// The caller of the chat, whose user is asked first.
    pub(super) caller: Option<Context>,
    /// The queue that gets an event for each permission request.
    pub(super) events: mpsc::WeakSender<ChatEvent>,
    /// Cancelled when the chat has ended: pending permission requests are withdrawn then.
    pub(super) over: CancellationToken,
}

impl LoopbackEndpoint {
    pub(super) async fn open(forwarder: PermissionForwarder) -> Result<Self, ClaudeCodeError> {
        let prepare = |error: &dyn std::fmt::Display| ClaudeCodeError::Prepare(error.to_string());
        let over = forwarder.over.clone();
        let tool = Tool::new("loopback_permit").description("Asks the user for permission");
        let service = LocalService::builder("plexus", env!("CARGO_PKG_VERSION"))
            .unchanging()
            .tool(tool, move |asked, _: Context| {
                permit(forwarder.clone(), asked)
            })
            .build()
            .map_err(|error| prepare(&error))?;
        let edge = Edge::new(Arc::new(service), Options::default());
        let edge = edge.map_err(|error| prepare(&error))?;
        let mut options = HttpOptions::default();
        options.path = secret_path().map_err(|error| prepare(&error))?;
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = HttpServer::bind(Arc::clone(&edge), &[anywhere], options.clone()).await;
        let server = server.map_err(|error| prepare(&error))?;
        let address = server.addresses().first().copied().unwrap_or(anywhere);
        let url = format!("http://{address}{}", options.path);
        let config = json!({ "mcpServers": { "plexus": { "type": "http", "url": url } } });
        let config = config_file(&config.to_string()).map_err(|error| prepare(&error))?;
        Ok(Self {
            server,
            edge,
            over,
            config,
        })
    }

    /// The file from which the agent reads its servers.
    pub(super) fn config(&self) -> &Path {
        self.config.path()
    }

    /// Serves until the future is dropped.
    pub(super) async fn run(self) {
        let _over = self.over.drop_guard();
        let _shutdown = ShutdownOnDrop(self.edge);
        let _read_later = self.config;
        self.server.run().await;
        std::future::pending::<()>().await;
    }
}

/// Closes the remaining connections of the endpoint when dropped.
struct ShutdownOnDrop(Arc<Edge>);

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

async fn permit(forwarder: PermissionForwarder, arguments: Permit) -> ToolResult<String> {
    let Permit {
        tool_name,
        input,
        tool_use_id,
    } = arguments;
    let request = Request {
        session_id: Some(forwarder.session_id),
        tool_name,
        tool_use_id,
        input: input.clone(),
    };
    let events = forwarder.events;
    let decided = forwarder.permissions.permit(
        request,
        ANSWER_TIMEOUT,
        forwarder.caller.as_ref(),
        |pending| {
            let event = ChatEvent::Permission {
                approval_id: pending.approval_id.clone(),
                tool_name: pending.tool_name.clone(),
            };
            // If the queue is full, because the receiver is slow, this event is dropped.
            drop(events.upgrade().map(|events| events.try_send(event)));
        },
    );
    let decision = tokio::select! {
        decision = decided => decision?,
        () = forwarder.over.cancelled() => Decision::Deny {
            message: "the chat is over".to_owned(),
        },
    };
    answer(decision, input)
}

fn secret_path() -> Result<String, getrandom::Error> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret)?;
    let digits = secret.iter().map(|byte| format!("{byte:02x}"));
    Ok(format!("/{}", digits.collect::<String>()))
}

fn config_file(text: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("plexus-")
        .suffix(".json")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}
