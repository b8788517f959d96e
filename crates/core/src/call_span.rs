//! A tracing span for every call, on both edges.

use std::borrow::Cow;
use std::sync::Arc;

use plexus_mcp_protocol::{Fault, Revision, key, method};
use plexus_mcp_wire::Object;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Level, Span};

use crate::call::{Boxed, Call, Outcome, Service};
use crate::layer::Layer;

/// Target of the spans, so that a log filter can select them.
const TARGET: &str = "plexus::call";

/// The [`Layer`] of the server edge: a span for every call, with the caller's side of it.
///
/// The spans have the level `DEBUG`. Where that is not logged, the layer only passes the call on.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing to set")]
pub struct TraceCalls;

impl Layer for TraceCalls {
    fn call(&self, call: Call, next: &Arc<dyn Service>) -> Boxed<Outcome> {
        let span = CallSpan::of_client(&call);
        span.run(call, |call| next.call(call))
    }
}

/// The span of one call on one edge. It ends with the outcome of the call, or as cancelled.
#[derive(Debug)]
pub struct CallSpan {
    span: Span,
    began: Instant,
    /// The outcome was recorded.
    is_over: bool,
}

impl CallSpan {
    /// The call as the client made it: the caller, its revision, and the tool, prompt or resource.
    pub fn of_client(call: &Call) -> Self {
        let span = tracing::span!(
            target: TARGET, Level::DEBUG, "call",
            method = %call.method, tool = Empty, prompt = Empty, uri = Empty,
            principal = Empty, client = Empty, client_era = Empty, client_revision = Empty,
            trace_id = Empty, outcome = Empty,
        );
        if !span.is_disabled() {
            let peer = call.peer();
            record_subject(&span, call);
            span.record("principal", peer.principal.as_str());
            span.record("client_era", tracing::field::display(peer.revision.era()));
            span.record("client_revision", peer.revision.as_str());
            let info = peer.client_info.as_ref();
            if let Some(name) =
                info.and_then(|info| Some(Object::parse(info).ok()?.text("name")?.into_owned()))
            {
                span.record("client", name);
            }
            if let Some(trace_id) = trace_id(call) {
                span.record("trace_id", trace_id);
            }
        }
        Self::new(span)
    }

    /// The call as it is sent to `server`, a child of the span at hand.
    pub fn of_server(call: &Call, server: &str) -> Self {
        let span = tracing::span!(
            target: TARGET, Level::DEBUG, "upstream",
            server, method = %call.method, tool = Empty, prompt = Empty, uri = Empty,
            server_era = Empty, server_revision = Empty, outcome = Empty,
        );
        if !span.is_disabled() {
            record_subject(&span, call);
        }
        Self::new(span)
    }

    fn new(span: Span) -> Self {
        Self {
            span,
            began: Instant::now(),
            is_over: false,
        }
    }

    /// Runs a call inside the span. Events of the call, such as questions to the caller, are
    /// logged inside it as well, whichever task they come from.
    pub fn run(self, mut call: Call, run: impl FnOnce(Call) -> Boxed<Outcome>) -> Boxed<Outcome> {
        if self.span.is_disabled() {
            return run(call);
        }
        call.events = call.events.in_span(self.span.clone());
        let is_tool = &*call.method == method::TOOLS_CALL;
        let span = self.span.clone();
        let running = span.in_scope(|| run(call));
        let ended = async move {
            let outcome = running.await;
            self.end(&word_for(&outcome, is_tool));
            outcome
        };
        Box::pin(ended.instrument(span))
    }

    fn end(mut self, outcome: &str) {
        self.is_over = true;
        self.record_outcome(outcome);
    }

    fn record_outcome(&self, outcome: &str) {
        self.span.record("outcome", outcome);
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(target: TARGET, parent: &self.span, outcome, elapsed_ms, "call ended");
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.is_over && !self.span.is_disabled() {
            self.record_outcome("cancelled");
        }
    }
}

/// Records on the span of the call at hand which revision its server speaks.
pub fn record_server_revision(revision: Revision) {
    let span = Span::current();
    if !span.is_disabled() {
        span.record("server_era", tracing::field::display(revision.era()));
        span.record("server_revision", revision.as_str());
    }
}

/// Records what the call is about: the tool, the prompt, or the resource.
fn record_subject(span: &Span, call: &Call) {
    let (field, member) = match &*call.method {
        method::TOOLS_CALL => ("tool", "name"),
        method::PROMPTS_GET => ("prompt", "name"),
        method::RESOURCES_READ => ("uri", "uri"),
        _ => return,
    };
    if let Some(subject) = call.params.text(member) {
        span.record(field, &*subject);
    }
}

/// The trace id in the caller's W3C `traceparent`: `VERSION-TRACE_ID-PARENT_ID-FLAGS`.
fn trace_id(call: &Call) -> Option<String> {
    let meta = Object::parse(call.params.get("_meta")?).ok()?;
    let trace_parent = meta.text(key::TRACE_PARENT)?;
    let trace_id = trace_parent.split('-').nth(1)?;
    let is_valid = trace_id.len() == 32 && trace_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then(|| trace_id.to_owned())
}

/// The outcome in one word, or the kind of the error.
fn word_for(outcome: &Outcome, is_tool: bool) -> Cow<'static, str> {
    match outcome {
        Ok(result) if is_tool && is_error(result) => "tool_error".into(),
        Ok(_) => "ok".into(),
        Err(Fault::Cancelled) => "cancelled".into(),
        Err(fault) => fault.code(Revision::NEWEST_STATELESS).to_string().into(),
    }
}

fn is_error(result: &plexus_mcp_wire::Raw) -> bool {
    let object = Object::parse(result).ok();
    let is_error = object.as_ref().and_then(|object| object.get("isError"));
    is_error.is_some_and(|raw| raw.as_str() == "true")
}
