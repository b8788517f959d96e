//! A legacy session: what a client of 2024-11-05 to 2025-11-25 has with us after `initialize`,
//! whatever the transport.

mod asks;
mod call;
mod handshake;
mod in_flight;
mod native;
mod subscriptions;

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use plexus_mcp::lifecycle::{Lifecycle, Rules, State};
use plexus_mcp::messages::{CancelledParams, LogLevel, SetLevelParams};
use plexus_mcp::{Era, Revision, method};
use plexus_service::{Catalogue, Changes, Fault, Peer, Presence, Principal};
use plexus_wire::{Id, Kind, Malformed, Notification, Params, Raw, Request, Response};
use tokio_util::sync::CancellationToken;

pub(crate) use call::SessionCall;
pub(crate) use native::NativeCall;

use crate::asked::Asked;
use crate::edge::{Edge, admit};
use crate::exchange::Exchange;
use crate::http::Admitted;
use crate::lock::lock;
use crate::outlet::Outlet;
use crate::render::{Answer, Narrator, Voice, anonymous_error, complete, notification};
use asks::Asks;
use in_flight::InFlight;
use native::Streams;
use subscriptions::Subscriptions;

/// Log messages below this are not sent to a client that never said which it wants.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// One legacy session.
pub(crate) struct Session {
    edge: Arc<Edge>,
    /// Whose it is.
    principal: Principal,
    /// Where messages go that belong to no request.
    outlet: Outlet,
    state: Mutex<SessionState>,
    asks: Asks,
    subscriptions: Subscriptions,
    /// What native calls stream; `None` where there are none.
    streams: Option<Arc<Streams>>,
    calls: Mutex<InFlight>,
    /// Lasts as long as the client does.
    presence: Presence,
}

struct SessionState {
    lifecycle: Lifecycle,
    log_level: LogLevel,
    agreed: Option<Agreed>,
    /// The lists as the client knows them.
    known: Option<Arc<Catalogue>>,
}

/// What `initialize` settled.
#[derive(Clone)]
struct Agreed {
    peer: Arc<Peer>,
    voice: Arc<Voice>,
}

impl Session {
    pub(crate) fn new(
        edge: Arc<Edge>,
        outlet: Outlet,
        rules: Rules,
        principal: Principal,
    ) -> Arc<Self> {
        let rules = edge.options.rules(rules);
        let presence = Presence::new();
        let agreed = rules
            .ungated
            .then(|| native::presumed(&edge, &principal, &presence));
        Arc::new(Self {
            state: Mutex::new(SessionState {
                lifecycle: Lifecycle::new(rules),
                log_level: DEFAULT_LOG_LEVEL,
                known: agreed
                    .as_ref()
                    .map(|agreed| edge.catalogue_for(&agreed.peer)),
                agreed,
            }),
            edge,
            principal,
            outlet,
            asks: Asks::default(),
            subscriptions: Subscriptions::default(),
            streams: rules.ungated.then(Arc::default),
            calls: Mutex::default(),
            presence,
        })
    }

    /// The revision agreed on, once there is one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.state()
            .agreed
            .as_ref()
            .map(|agreed| agreed.voice.revision)
    }

    /// The revision in which errors are told: the one agreed on, else the oldest that is served.
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

    /// Whose it is.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(crate) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Takes a request apart.
    ///
    /// # Errors
    /// The answer to one that is malformed.
    pub(crate) fn read(&self, request: Request) -> Result<Asked, Answer> {
        let is_positional = |params: &Params| params.kind() == Kind::Array;
        if self.is_native() && request.params.as_ref().is_some_and(is_positional) {
            return Ok(Asked::positional(request));
        }
        Asked::read(request).map_err(|(id, fault)| self.refuse(&id, &fault))
    }

    /// Serves a request of `caller`, where somebody asked who that is. The returned ticket takes it
    /// off the list of requests in flight when it is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        asked: Asked,
        caller: Option<&Admitted>,
    ) -> (Exchange, Ticket) {
        let id = asked.id.clone();
        let ticket = match self.ticket(&id) {
            Ok(ticket) => ticket,
            Err(fault) => {
                let answer = self.voice().error(&id, &fault);
                return (Exchange::Answered(answer), Ticket::detached());
            }
        };
        let exchange = self
            .try_begin(asked, caller, &ticket.cancel)
            .unwrap_or_else(|fault| Exchange::Answered(self.voice().error(&id, &fault)));
        (exchange, ticket)
    }

    /// Takes note of a notification.
    pub(crate) fn notified(&self, notification: &Notification) {
        match &*notification.method {
            method::INITIALIZED | method::INITIALIZED_ALIAS => self.state().lifecycle.initialized(),
            method::CANCELLED => self.cancel(notification.params.as_ref()),
            // Roots are asked for when they are needed, so their change needs no action here.
            method::ROOTS_CHANGED => {}
            other => tracing::debug!(method = other, "ignored a notification"),
        }
    }

    /// Takes the client's answer to a question of ours.
    pub(crate) fn answered(&self, response: Response) {
        self.asks.answered(response);
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Tells the client which of the lists that it is shown changed, if it is ready to hear it.
    pub(crate) fn announce(&self) {
        let Some(Agreed { peer, .. }) = self.agreed() else {
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
        let lists = |list: &Option<plexus_mcp::messages::ListCapability>| {
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
            self.outlet.offer(notification(method, None));
        }
    }

    /// The answer to something that is no message.
    pub(crate) fn malformed(&self, malformed: &Malformed) -> Answer {
        self.malformed_in(self.spoken(), malformed)
    }

    /// The same, told in the words of `revision` where nothing says which request is meant.
    pub(crate) fn malformed_in(&self, revision: Revision, malformed: &Malformed) -> Answer {
        let fault = Fault::InvalidRequest(malformed.reason.to_string());
        match &malformed.id {
            Some(id) => self.refuse(id, &fault),
            None => anonymous_error(revision, &fault),
        }
    }

    /// An error in answer to request `id`.
    pub(crate) fn refuse(&self, id: &Id, fault: &Fault) -> Answer {
        self.voice().error(id, fault)
    }

    /// Whether anything is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.calls).is_empty()
    }

    /// The client is gone: nobody will answer, and nobody wants answers after this.
    pub(crate) fn end(&self) {
        self.presence.end();
        self.state().lifecycle.shut_down();
        self.asks.abandon();
        self.subscriptions.clear();
    }

    /// Cancels everything in flight.
    pub(crate) fn cancel_all(&self) {
        for cancel in lock(&self.calls).drain() {
            cancel.cancel();
        }
    }

    fn try_begin(
        self: &Arc<Self>,
        asked: Asked,
        caller: Option<&Admitted>,
        cancel: &CancellationToken,
    ) -> Result<Exchange, Fault> {
        if &*asked.method == method::INITIALIZE {
            return self.initialize(&asked, caller);
        }
        self.state().lifecycle.admit(&asked.method)?;
        let Some(Agreed { peer, voice }) = self.agreed() else {
            // Only `ping` is admitted before there is an agreement.
            return Ok(Exchange::Answered(complete(
                &asked.id,
                &Raw::empty_object(),
            )));
        };
        let peer = shown(peer, caller);
        let Asked {
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
        admit(&method, voice.revision, &catalogue.capabilities)?;
        if let Some(streams) = &self.streams
            && method::defined_in(&method, voice.revision).is_none()
        {
            return self.begin_native(streams, peer, voice, (id, method, raw), cancel);
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
                let call = SessionCall::subscribing(Arc::clone(self), voice, id, subscribing);
                Ok(Exchange::Session(Box::new(call)))
            }
            _ => {
                let directly = self
                    .edge
                    .answer_directly(&catalogue, &method, raw.as_ref(), &voice);
                if let Some(answer) = directly {
                    return answer.map(|result| Exchange::Answered(complete(&id, &result)));
                }
                let logs = catalogue.capabilities.logging;
                let level = logs.then(|| self.state().log_level);
                let narrator = Narrator::new(voice.revision, meta.progress_token, level);
                let wants = narrator.wants(meta.trace_parent);
                let running = self
                    .edge
                    .start(&method, params, peer, wants, cancel.clone());
                let call = SessionCall::new(Arc::clone(self), voice, id, method, narrator, running);
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
        match lock(&self.calls).get(&request_id) {
            Some(cancel) => {
                tracing::debug!(id = %request_id, ?reason, "cancelled by the client");
                cancel.cancel();
            }
            None => {
                tracing::debug!(id = %request_id, "ignored a cancellation of nothing in flight");
            }
        }
    }

    fn ticket(self: &Arc<Self>, id: &Id) -> Result<Ticket, Fault> {
        let mut calls = lock(&self.calls);
        if calls.get(id).is_some() {
            return Err(Fault::InvalidRequest(format!("request id {id} is in use")));
        }
        if calls.len() >= self.edge.options.max_in_flight {
            return Err(Fault::Busy(
                "too many requests in flight; try again later".to_owned(),
            ));
        }
        let cancel = CancellationToken::new();
        calls.insert(id.clone(), cancel.clone());
        Ok(Ticket {
            cancel,
            entry: Some((Arc::clone(self), id.clone())),
        })
    }

    fn agreed(&self) -> Option<Agreed> {
        self.state().agreed.clone()
    }

    fn voice(&self) -> Arc<Voice> {
        match self.agreed() {
            Some(agreed) => agreed.voice,
            None => self.edge.voice(self.spoken()),
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

/// A request's place among those in flight.
pub(crate) struct Ticket {
    pub(crate) cancel: CancellationToken,
    entry: Option<(Arc<Session>, Id)>,
}

impl Ticket {
    /// For an exchange that is answered already.
    fn detached() -> Self {
        Self {
            cancel: CancellationToken::new(),
            entry: None,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((session, id)) = &self.entry {
            lock(&session.calls).remove(id);
        }
    }
}

/// The peer with what the credentials of the request at hand allow. Those of a session may change:
/// they expire, and are renewed with more or less.
fn shown(peer: Arc<Peer>, caller: Option<&Admitted>) -> Arc<Peer> {
    let Some(caller) = caller else { return peer };
    if let Some(credential) = &caller.credential {
        peer.credentials.show(credential.clone());
    }
    if peer.scopes == caller.scopes {
        return peer;
    }
    Arc::new(Arc::unwrap_or_clone(peer).holding(caller.scopes.clone()))
}

/// A message for the client that a lost connection may lose.
pub(crate) fn cancelled(id: &Id) -> Bytes {
    let params = CancelledParams {
        request_id: id.clone(),
        reason: None,
    };
    notification(method::CANCELLED, Some(&params.to_raw()))
}
