//! Shared helpers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_client::{
    Affinity, ConnectError, Definition, HttpTarget, Program, ServerState, Status, Supervision,
    Target, Upstream,
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

/// A short timeout, for tests that wait until it expires.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// A definition whose server gets no client capabilities, with one session for all callers.
pub(crate) fn minimal(target: Target) -> Definition {
    let mut definition = Definition::new(target);
    definition.capabilities = ClientCapabilities::none();
    definition.affinity = Affinity::Shared;
    definition
}

/// The same definition with the default capabilities and affinity.
pub(crate) fn for_clients(mut definition: Definition) -> Definition {
    let defaults = Definition::new(definition.target.clone());
    definition.capabilities = defaults.capabilities;
    definition.affinity = defaults.affinity;
    definition
}

/// A definition of a test server. The probe timeout is long, for busy machines.
pub(crate) fn stdio(server: &StdioServer) -> Definition {
    let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
    let mut definition = minimal(Target::Stdio(program));
    definition.timeouts.probe = Duration::from_secs(10);
    definition.timeouts.linger = Duration::ZERO;
    definition
}

pub(crate) fn target(url: &str) -> HttpTarget {
    HttpTarget::new(url.parse().unwrap())
}

pub(crate) fn http(server: &HttpServer) -> Definition {
    let mut definition = minimal(Target::Http(target(&server.url())));
    definition.timeouts.linger = Duration::ZERO;
    definition
}

pub(crate) async fn connected(definition: Definition) -> Upstream {
    connected_as(Upstream::new(definition)).await
}

/// The same, without automatic reconnects.
pub(crate) async fn connected_once(definition: Definition) -> Upstream {
    connected_as(Upstream::supervised(definition, Supervision::once())).await
}

async fn connected_as(upstream: Upstream) -> Upstream {
    let connected = within("the connection", upstream.connect()).await;
    connected.unwrap_or_else(|error| panic!("not connected: {error}"));
    assert_eq!(status(&upstream).state, ServerState::Connected);
    upstream
}

/// The error of a failed connect, which is also the reason in the status.
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

/// The keys of a list.
pub(crate) fn names(catalogue: &Catalogue, section: Section) -> Vec<String> {
    let entries = catalogue.list(section).entries();
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

pub(crate) fn tools(upstream: &Upstream) -> Vec<String> {
    names(&catalogue(upstream), Section::Tools)
}

/// Waits until the listed tools are `wanted`.
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

/// A client, as the upstream sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// Its declared capabilities; null for none.
    pub(crate) capabilities: Value,
    pub(crate) progress: bool,
    pub(crate) log_level: Option<LogLevel>,
    /// `None` is the anonymous principal.
    pub(crate) principal: Option<String>,
    /// The credential that the server edge accepted.
    pub(crate) credential: Option<Credential>,
    /// Identifies the client that several calls have in common.
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

/// A tool call that must fail, and its error.
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

/// Drives a call until `work` completes; the call must not end before.
pub(crate) async fn during<T>(call: &mut Boxed<Outcome>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        outcome = call => panic!("the call ended too early: {outcome:?}"),
    }
}

/// The log of the current thread, while this value exists.
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<u8>>>,
    _default: tracing::subscriber::DefaultGuard,
}

impl Log {
    pub(crate) fn capture() -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || LogWriter(Arc::clone(&written)))
            .finish();
        Self {
            lines,
            _default: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Whether a warning contains all of `parts`.
    pub(crate) fn has_warning(&self, parts: &[&str]) -> bool {
        let lines = String::from_utf8(self.lines.lock().unwrap().clone()).unwrap();
        let mut warnings = lines.lines().filter(|line| line.contains("WARN"));
        warnings.any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
