//! Where an agent asks for permissions.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use plexus_server::http::{HttpOptions, HttpServer};
use plexus_server::{Edge, Options};
use plexus_service::{Context, LocalService, Tool, ToolResult};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::ClaudeCodeError;
use super::event::ChatEvent;
use crate::loopback::{Decision, PATIENCE, Permissions, Permit, Request, answer};

/// What the agent calls the tool, as it names tools of servers.
pub(super) const TOOL: &str = "mcp__plexus__loopback_permit";

/// An endpoint for the agent of one chat, on this machine, under a path that only the agent is
/// told. It has one tool.
pub(super) struct Endpoint {
    server: HttpServer,
    edge: Arc<Edge>,
    over: CancellationToken,
    /// Readable by nobody else; what an agent is told on its command line is not.
    config: NamedTempFile,
}

/// Whom a permission is asked of.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) permissions: Permissions,
    pub(super) session_id: String,
    /// Whose user is asked first.
    pub(super) caller: Option<Context>,
    /// Who is told that the agent waits.
    pub(super) events: mpsc::WeakSender<ChatEvent>,
    /// Fires when the chat is over, and nobody waits for a permission any more.
    pub(super) over: CancellationToken,
}

impl Endpoint {
    pub(super) async fn open(asking: Asking) -> Result<Self, ClaudeCodeError> {
        let prepare = |error: &dyn std::fmt::Display| ClaudeCodeError::Prepare(error.to_string());
        let over = asking.over.clone();
        let tool = Tool::new("loopback_permit").description("Asks the user for permission");
        let service = LocalService::builder("plexus", env!("CARGO_PKG_VERSION"))
            .unchanging()
            .tool(tool, move |asked, _: Context| permit(asking.clone(), asked))
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
        let config = written(&config.to_string()).map_err(|error| prepare(&error))?;
        Ok(Self {
            server,
            edge,
            over,
            config,
        })
    }

    /// The file that the agent is to read its servers from.
    pub(super) fn config(&self) -> &Path {
        self.config.path()
    }

    /// Serves until it is dropped.
    pub(super) async fn run(self) {
        let _over = self.over.drop_guard();
        let _ending = Ending(self.edge);
        let _read_later = self.config;
        self.server.run().await;
        std::future::pending::<()>().await;
    }
}

/// Ends what is left of the endpoint's connections.
struct Ending(Arc<Edge>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

async fn permit(asking: Asking, asked: Permit) -> ToolResult<String> {
    let Permit {
        tool_name,
        input,
        tool_use_id,
    } = asked;
    let request = Request {
        session_id: Some(asking.session_id),
        tool_name,
        tool_use_id,
        input: input.clone(),
    };
    let events = asking.events;
    let decided = asking
        .permissions
        .permit(request, PATIENCE, asking.caller.as_ref(), |pending| {
            let event = ChatEvent::Permission {
                approval_id: pending.approval_id.clone(),
                tool_name: pending.tool_name.clone(),
            };
            // Who is behind with reading need not be told.
            drop(events.upgrade().map(|events| events.try_send(event)));
        });
    let decision = tokio::select! {
        decision = decided => decision?,
        () = asking.over.cancelled() => Decision::Deny {
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

fn written(text: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("plexus-")
        .suffix(".json")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}
