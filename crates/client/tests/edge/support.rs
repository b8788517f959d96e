//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{
    ConnectError, Definition, HttpTarget, Program, ServerState, Status, Supervision, Target,
    Upstream,
};
use plexus_mcp_core::{
    Ask, Boxed, Call, Catalogue, Credential, Event, EventReceiver, EventSender, Object, Outcome,
    Peer, Presence, Principal, Raw, Section, Service,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::{ClientCapabilities, LogLevel};
use plexus_testkit::server::{HttpServer, StdioServer};
use plexus_testkit::within;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) const LEGACY: Revision = Revision::V2025_11_25;
pub(crate) const STATELESS: Revision = Revision::V2026_07_28;

/// How long a thing may take that a test waits for to run out.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// A server of ours, with more time to answer the probe than a busy machine takes.
pub(crate) fn stdio(server: &StdioServer) -> Definition {
    let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
    let mut definition = Definition::new(Target::Stdio(program));
    definition.timeouts.probe = Duration::from_secs(10);
    definition.timeouts.linger = Duration::ZERO;
    definition
}

pub(crate) fn target(url: &str) -> HttpTarget {
    HttpTarget::new(url.parse().unwrap())
}

pub(crate) fn http(server: &HttpServer) -> Definition {
    let mut definition = Definition::new(Target::Http(target(&server.url())));
    definition.timeouts.linger = Duration::ZERO;
    definition
}

pub(crate) async fn connected(definition: Definition) -> Upstream {
    connected_as(Upstream::new(definition)).await
}

/// The same, for a server that is not brought back when it is lost.
pub(crate) async fn connected_once(definition: Definition) -> Upstream {
    connected_as(Upstream::supervised(definition, Supervision::once())).await
}

async fn connected_as(upstream: Upstream) -> Upstream {
    let connected = within("the connection", upstream.connect()).await;
    connected.unwrap_or_else(|error| panic!("not connected: {error}"));
    assert_eq!(status(&upstream).state, ServerState::Connected);
    upstream
}

/// Why a server cannot be connected, which is also what its status says.
pub(crate) async fn refused(definition: Definition) -> (Upstream, ConnectError) {
    let upstream = Upstream::new(definition);
    let error = within("the attempt to end", upstream.connect()).await;
    let error = error.expect_err("the server must not be connected");
    let status = status(&upstream);
    assert_eq!(status.reason.as_deref(), Some(error.to_string().as_str()));
    (upstream, error)
}

pub(crate) fn status(upstream: &Upstream) -> Status {
    upstream.status().borrow().clone()
}

pub(crate) async fn status_becomes(upstream: &Upstream, state: ServerState) -> Status {
    let mut statuses = upstream.status();
    let became = within(
        "the status to change",
        statuses.wait_for(|s| s.state == state),
    )
    .await;
    became.unwrap().clone()
}

pub(crate) fn revision(upstream: &Upstream) -> Revision {
    upstream.report().unwrap().facts.revision
}

pub(crate) fn catalogue(upstream: &Upstream) -> Arc<Catalogue> {
    upstream.catalogue().borrow().clone()
}

/// The names in a list.
pub(crate) fn names(catalogue: &Catalogue, section: Section) -> Vec<String> {
    let entries = catalogue.list(section).entries();
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

pub(crate) fn tools(upstream: &Upstream) -> Vec<String> {
    names(&catalogue(upstream), Section::Tools)
}

/// Waits until the tools are these.
pub(crate) async fn tools_become(upstream: &Upstream, wanted: &[&str]) {
    let mut catalogues = upstream.catalogue();
    let became = catalogues.wait_for(|catalogue| names(catalogue, Section::Tools) == wanted);
    drop(
        within(&format!("the tools {wanted:?}"), became)
            .await
            .unwrap(),
    );
}

pub(crate) fn raw(value: &Value) -> Raw {
    Raw::encode(value).unwrap()
}

pub(crate) fn value(raw: &Raw) -> Value {
    raw.decode().unwrap()
}

/// A caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// What it declares; null for nothing.
    pub(crate) capabilities: Value,
    pub(crate) progress: bool,
    pub(crate) log_level: Option<LogLevel>,
    /// Anonymous by default.
    pub(crate) principal: Option<String>,
    /// The credential that the server edge accepted.
    pub(crate) credential: Option<Credential>,
    /// What its calls have in common.
    pub(crate) presence: Option<Presence>,
}

impl Caller {
    pub(crate) fn able(capabilities: Value) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    pub(crate) fn peer(&self) -> Arc<Peer> {
        let capabilities = if self.capabilities.is_null() {
            ClientCapabilities::none()
        } else {
            ClientCapabilities::from_raw(&raw(&self.capabilities)).unwrap()
        };
        let principal = match &self.principal {
            Some(principal) => Principal::new(principal.as_str()),
            None => Principal::anonymous(),
        };
        let mut peer = Peer::new(STATELESS, capabilities, None, principal);
        peer.presence.clone_from(&self.presence);
        if let Some(credential) = &self.credential {
            peer.credentials.show(credential.clone());
        }
        Arc::new(peer)
    }

    pub(crate) fn call(
        &self,
        upstream: &Upstream,
        method: &str,
        params: &Value,
    ) -> (Boxed<Outcome>, EventReceiver) {
        let (events, receiver) = EventSender::channel(self.peer(), self.progress, self.log_level);
        let cancel = CancellationToken::new();
        let call = Call::new(method, Object::parse(&raw(params)).unwrap(), events, cancel);
        (upstream.call(call), receiver)
    }
}

/// A call by a client without capabilities.
pub(crate) fn call(upstream: &Upstream, method: &str, params: &Value) -> Boxed<Outcome> {
    Caller::default().call(upstream, method, params).0
}

/// A tool call that must succeed.
pub(crate) async fn call_tool(upstream: &Upstream, name: &str) -> Value {
    let params = serde_json::json!({"name": name, "arguments": {}});
    let outcome = within("the result", call(upstream, "tools/call", &params)).await;
    value(&outcome.unwrap_or_else(|fault| panic!("{name} failed: {fault}")))
}

/// A tool call that must fail, and how it does.
pub(crate) async fn call_fails(upstream: &Upstream, name: &str) -> String {
    let params = serde_json::json!({"name": name, "arguments": {}});
    let outcome = within("the failure", call(upstream, "tools/call", &params)).await;
    outcome.expect_err("the call must fail").to_string()
}

/// Drives a call until it asks something.
pub(crate) async fn asked(call: &mut Boxed<Outcome>, events: &mut EventReceiver) -> Ask {
    let asking = async {
        loop {
            tokio::select! {
                event = events.recv() => if let Some(Event::Ask(ask)) = event { return ask },
                outcome = &mut *call => panic!("the call ended without a question: {outcome:?}"),
            }
        }
    };
    within("a question", asking).await
}

/// Drives a call along with something else, which comes first.
pub(crate) async fn during<T>(call: &mut Boxed<Outcome>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        outcome = call => panic!("the call ended too early: {outcome:?}"),
    }
}
