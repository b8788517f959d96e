//! A session of the handshake era (2024-11-05 to 2025-11-25), on any transport.

mod call;
mod client_requests;
mod handshake;
mod native;
mod subscriptions;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use plexus_mcp_core::{Catalogue, Changes, Fault, Peer, Presence, Principal};
use plexus_mcp_protocol::lifecycle::{Lifecycle, LifecycleRules, State};
use plexus_mcp_protocol::messages::{CancelledParams, LogLevel, SetLevelParams};
use plexus_mcp_protocol::{Era, Revision, method};
use plexus_mcp_wire::{Id, Kind, Malformed, Notification, Raw, Request, Response};
use tokio_util::sync::CancellationToken;

pub(crate) use call::SessionCall;
pub(crate) use native::NativeCall;

use crate::caller::CallerIdentity;
use crate::edge::{Edge, admit};
use crate::encoder::{
    EncodedResponse, NotificationEncoder, ResponseEncoder, anonymous_error, complete, notification,
};
use crate::exchange::Exchange;
use crate::lock::lock;
use crate::parsed_request::ParsedRequest;
use crate::session_sink::SessionSink;
use client_requests::ClientRequests;
use native::Streams;
use subscriptions::Subscriptions;

/// The least severe log messages that are sent to a client that has not set a level.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// One legacy session.
pub(crate) struct Session {
    edge: Arc<Edge>,
    /// The principal that the session belongs to.
    principal: Principal,
    /// The channel for messages that belong to no request.
    sink: SessionSink,
    state: Mutex<SessionState>,
    asks: ClientRequests,
    subscriptions: Subscriptions,
    /// The streams of native calls; `None` without the native view.
    streams: Option<Arc<Streams>>,
    /// The requests in flight, by the client's ids.
    in_flight: Mutex<HashMap<Id, CancellationToken>>,
    /// Lasts as long as the client does.
    presence: Presence,
}

struct SessionState {
    lifecycle: Lifecycle,
    log_level: LogLevel,
    negotiated: Option<Negotiated>,
    /// The catalogue that the client was last notified of.
    known: Option<Arc<Catalogue>>,
}

/// The peer and the encoder that `initialize` negotiated.
#[derive(Clone)]
struct Negotiated {
    peer: Arc<Peer>,
    encoder: Arc<ResponseEncoder>,
}

impl Session {
    pub(crate) fn new(
        edge: Arc<Edge>,
        sink: SessionSink,
        rules: LifecycleRules,
        principal: Principal,
    ) -> Arc<Self> {
        let rules = edge.options.rules(rules);
        let presence = Presence::new();
        let negotiated = rules
            .ungated
            .then(|| native::presumed(&edge, &principal, &presence));
        Arc::new(Self {
            state: Mutex::new(SessionState {
                lifecycle: Lifecycle::new(rules),
                log_level: DEFAULT_LOG_LEVEL,
                known: negotiated
                    .as_ref()
                    .map(|negotiated| edge.catalogue_for(&negotiated.peer)),
                negotiated,
            }),
            edge,
            principal,
            sink,
            asks: ClientRequests::default(),
            subscriptions: Subscriptions::default(),
            streams: rules.ungated.then(Arc::default),
            in_flight: Mutex::default(),
            presence,
        })
    }

    /// The revision negotiated on, once there is one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.state()
            .negotiated
            .as_ref()
            .map(|negotiated| negotiated.encoder.revision)
    }

    /// The revision of error responses: the negotiated one, else the oldest that is served.
    pub(crate) fn spoken(&self) -> Revision {
        let oldest = if self.edge.options.served.includes(Era::Handshake) {
            Revision::V2024_11_05
        } else {
            Revision::NEWEST_STATELESS
        };
        self.revision().unwrap_or(oldest)
    }

    /// Whether tools are methods here.
    pub(crate) fn is_native(&self) -> bool {
        self.streams.is_some()
    }

    /// The principal that the session belongs to.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(crate) fn sink(&self) -> &SessionSink {
        &self.sink
    }

    /// Takes a request apart.
    ///
    /// # Errors
    /// The answer to one that is malformed.
    pub(crate) fn read(&self, request: Request) -> Result<ParsedRequest, EncodedResponse> {
        let is_positional = |params: &Raw| params.kind() == Kind::Array;
        if self.is_native() && request.params.as_ref().is_some_and(is_positional) {
            return Ok(ParsedRequest::positional(request));
        }
        ParsedRequest::read(request).map_err(|(id, fault)| self.refuse(&id, &fault))
    }

    /// Serves a request of `caller`, if callers are authenticated. The returned guard removes the request
    /// from the in-flight requests when it is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        asked: ParsedRequest,
        caller: Option<&CallerIdentity>,
    ) -> (Exchange, InFlightGuard) {
        let id = asked.id.clone();
        let ticket = match self.ticket(&id) {
            Ok(ticket) => ticket,
            Err(fault) => {
                let answer = self.encoder().error(&id, &fault);
                return (Exchange::Answered(answer), InFlightGuard::detached());
            }
        };
        let exchange = self
            .try_begin(asked, caller, &ticket.cancel)
            .unwrap_or_else(|fault| Exchange::Answered(self.encoder().error(&id, &fault)));
        (exchange, ticket)
    }

    /// Handles a notification.
    pub(crate) fn notified(&self, notification: &Notification) {
        match &*notification.method {
            method::INITIALIZED | method::INITIALIZED_ALIAS => self.state().lifecycle.initialized(),
            method::CANCELLED => self.cancel(notification.params.as_ref()),
            // Roots are asked for when they are needed, so their change needs no action here.
            method::ROOTS_CHANGED => {}
            other => tracing::debug!(method = other, "ignored a notification"),
        }
    }

    /// Handles the client's answer to a question.
    pub(crate) fn answered(&self, response: Response) {
        self.asks.answered(response);
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Notifies the client of the lists that changed for it, if the handshake is complete.
    pub(crate) fn announce(&self) {
        let Some(Negotiated { peer, .. }) = self.negotiated() else {
            return;
        };
        let now = self.edge.catalogue_for(&peer);
        let changes = {
            let mut state = self.state();
            let known = state.known.replace(Arc::clone(&now));
            if state.lifecycle.state() != State::Operating {
                return;
            }
            known.map_or_else(Changes::default, |known| now.changes_since(&known))
        };
        let capabilities = &now.capabilities;
        let lists = |list: &Option<plexus_mcp_protocol::messages::ListCapability>| {
            list.as_ref().is_some_and(|list| list.list_changed)
        };
        let resources = capabilities
            .resources
            .as_ref()
            .is_some_and(|list| list.list_changed);
        let told = [
            (
                changes.tools && lists(&capabilities.tools),
                method::TOOLS_CHANGED,
            ),
            (changes.resources && resources, method::RESOURCES_CHANGED),
            (
                changes.prompts && lists(&capabilities.prompts),
                method::PROMPTS_CHANGED,
            ),
        ];
        for (_, method) in told.into_iter().filter(|(told, _)| *told) {
            self.sink.offer_change(notification(method, None));
        }
    }

    /// The answer to something that is no message.
    pub(crate) fn malformed(&self, malformed: &Malformed) -> EncodedResponse {
        self.malformed_in(self.spoken(), malformed)
    }

    /// The same, in the form of `revision` if the id of the request is unknown.
    pub(crate) fn malformed_in(
        &self,
        revision: Revision,
        malformed: &Malformed,
    ) -> EncodedResponse {
        let fault = Fault::InvalidRequest(malformed.reason.to_string());
        match &malformed.id {
            Some(id) => self.refuse(id, &fault),
            None => anonymous_error(revision, &fault),
        }
    }

    /// An error in answer to request `id`.
    pub(crate) fn refuse(&self, id: &Id, fault: &Fault) -> EncodedResponse {
        self.encoder().error(id, fault)
    }

    /// The most bytes of an answer.
    pub(crate) fn max_answer(&self) -> usize {
        self.edge.options.max_answer
    }

    /// Whether anything is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.in_flight).is_empty()
    }

    /// The client is gone: fails requests to it and ends its subscriptions.
    pub(crate) fn end(&self) {
        self.presence.end();
        self.state().lifecycle.shut_down();
        self.asks.abandon();
        self.subscriptions.clear();
    }

    /// Cancels everything in flight.
    pub(crate) fn cancel_all(&self) {
        for (_, cancel) in lock(&self.in_flight).drain() {
            cancel.cancel();
        }
    }

    fn try_begin(
        self: &Arc<Self>,
        asked: ParsedRequest,
        caller: Option<&CallerIdentity>,
        cancel: &CancellationToken,
    ) -> Result<Exchange, Fault> {
        if &*asked.method == method::INITIALIZE {
            return self.initialize(&asked, caller);
        }
        self.state().lifecycle.admit(&asked.method)?;
        let Some(Negotiated { peer, encoder }) = self.negotiated() else {
            // Only `ping` is admitted before there is an agreement.
            return Ok(Exchange::Answered(complete(
                &asked.id,
                &Raw::empty_object(),
            )));
        };
        let peer = shown(peer, caller);
        let ParsedRequest {
            id,
            method,
            raw,
            params,
            meta,
        } = asked;
        if let Some(result) = self.compatibility(&method) {
            return Ok(Exchange::Answered(complete(&id, &result)));
        }
        let catalogue = self.edge.catalogue_for(&peer);
        admit(&method, encoder.revision, &catalogue.capabilities)?;
        if let Some(streams) = &self.streams
            && method::defined_in(&method, encoder.revision).is_none()
        {
            return self.begin_native(streams, peer, encoder, (id, method, raw), cancel);
        }
        match &*method {
            method::PING => Ok(Exchange::Answered(complete(&id, &Raw::empty_object()))),
            method::SET_LEVEL => {
                self.set_level(raw.as_ref())?;
                Ok(Exchange::Answered(complete(&id, &Raw::empty_object())))
            }
            method::RESOURCES_UNSUBSCRIBE => {
                self.subscriptions
                    .remove(&subscriptions::uri(raw.as_ref())?);
                Ok(Exchange::Answered(complete(&id, &Raw::empty_object())))
            }
            method::RESOURCES_SUBSCRIBE => {
                let uri = subscriptions::uri(raw.as_ref())?;
                let subscribing = subscriptions::subscribe(Arc::clone(self), peer, uri);
                let call = SessionCall::subscribing(Arc::clone(self), encoder, id, subscribing);
                Ok(Exchange::Session(Box::new(call)))
            }
            _ => {
                let request = (&id, &*method, raw.as_ref());
                if let Some(awaited) = self.edge.answer_when_settled(request, &peer, &encoder) {
                    return Ok(awaited);
                }
                let directly =
                    self.edge
                        .answer_directly(&catalogue, &method, raw.as_ref(), &encoder);
                if let Some(answer) = directly {
                    return answer.map(|result| Exchange::Answered(complete(&id, &result)));
                }
                let logs = catalogue.capabilities.logging;
                let level = logs.then(|| self.state().log_level);
                let notifications =
                    NotificationEncoder::new(encoder.revision, meta.progress_token, level);
                let wants = notifications.wants();
                let running = self
                    .edge
                    .start(&method, params, peer, wants, cancel.clone());
                let call = SessionCall::new(
                    Arc::clone(self),
                    encoder,
                    id,
                    method,
                    notifications,
                    running,
                );
                Ok(Exchange::Session(Box::new(call)))
            }
        }
    }

    fn set_level(&self, params: Option<&Raw>) -> Result<(), Fault> {
        let params = params.ok_or_else(|| Fault::InvalidParams("level is missing".to_owned()))?;
        let SetLevelParams { level, .. } = params
            .decode()
            .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?;
        self.state().log_level = level;
        Ok(())
    }

    /// C34: only an id of the same type and value is meant; anything else is ignored.
    fn cancel(&self, params: Option<&Raw>) {
        let Some(Ok(CancelledParams {
            request_id, reason, ..
        })) = params.map(Raw::decode)
        else {
            tracing::debug!("ignored a malformed cancellation");
            return;
        };
        match lock(&self.in_flight).get(&request_id) {
            Some(cancel) => {
                tracing::debug!(id = %request_id, ?reason, "cancelled by the client");
                cancel.cancel();
            }
            None => {
                tracing::debug!(id = %request_id, "ignored a cancellation of nothing in flight");
            }
        }
    }

    fn ticket(self: &Arc<Self>, id: &Id) -> Result<InFlightGuard, Fault> {
        let mut in_flight = lock(&self.in_flight);
        if in_flight.contains_key(id) {
            return Err(Fault::InvalidRequest(format!("request id {id} is in use")));
        }
        if in_flight.len() >= self.edge.options.max_in_flight {
            return Err(Fault::Busy(
                "too many requests in flight; try again later".to_owned(),
            ));
        }
        let cancel = CancellationToken::new();
        in_flight.insert(id.clone(), cancel.clone());
        Ok(InFlightGuard {
            cancel,
            entry: Some((Arc::clone(self), id.clone())),
        })
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.state().negotiated.clone()
    }

    fn encoder(&self) -> Arc<ResponseEncoder> {
        match self.negotiated() {
            Some(negotiated) => negotiated.encoder,
            None => self.edge.encoder(self.spoken()),
        }
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.presence.end();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// Keeps a request in the table of in-flight requests until it is dropped.
pub(crate) struct InFlightGuard {
    pub(crate) cancel: CancellationToken,
    entry: Option<(Arc<Session>, Id)>,
}

impl InFlightGuard {
    /// For an exchange that is answered already.
    fn detached() -> Self {
        Self {
            cancel: CancellationToken::new(),
            entry: None,
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if let Some((session, id)) = &self.entry {
            lock(&session.in_flight).remove(id);
        }
    }
}

/// The peer with the scopes and the credential of this request. The credentials of a session may
/// change: they expire, and may be renewed with other scopes.
fn shown(peer: Arc<Peer>, caller: Option<&CallerIdentity>) -> Arc<Peer> {
    let Some(caller) = caller else { return peer };
    if let Some(credential) = &caller.credential {
        peer.credentials.show(credential.clone());
    }
    if peer.scopes == caller.scopes {
        return peer;
    }
    Arc::new(Arc::unwrap_or_clone(peer).holding(caller.scopes.clone()))
}

/// The notification that cancels the request `id` of this server.
pub(crate) fn cancelled(id: &Id) -> Bytes {
    let params = CancelledParams {
        request_id: id.clone(),
        reason: None,
    };
    notification(method::CANCELLED, Some(&params.to_raw()))
}
