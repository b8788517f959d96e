//! The native view: a tool is a method of its own, and its events are streamed (S003-05…07).
//!
//! A call is answered at once with the number of its stream; its events follow as notifications of
//! the called method, from `start` to `complete` or `error` (S003-43). Output is not collected for
//! the client, so memory does not grow with it.

mod arguments;
mod event;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::FutureExt;
use plexus_mcp_core::{Event, Fault, Peer, Presence, Principal};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::{Revision, method};
use plexus_mcp_wire::{Id, Object, Raw};
use tokio_util::sync::CancellationToken;

use self::event::NativeEventEncoder;
use super::client_requests::{self, RepeatedQuestions};
use super::{Negotiated, Session};
use crate::edge::{Edge, Wants};
use crate::encoder::{EncodedResponse, ResponseEncoder, complete, json};
use crate::exchange::{Exchange, Output};
use crate::lock::lock;
use crate::parsed_request::ParsedRequest;
use crate::running_call::{RunningCall, Step};

/// Ends a stream before its time.
const UNSUBSCRIBE: &str = "unsubscribe";

/// The revision for a client that sent no `initialize`: that of the document that describes the
/// native view.
const REVISION_WITHOUT_HANDSHAKE: Revision = Revision::V2025_03_26;

/// The assumed peer without a handshake: a client without capabilities.
pub(super) fn presumed(edge: &Edge, principal: &Principal, presence: &Presence) -> Negotiated {
    let peer = Peer::new(
        REVISION_WITHOUT_HANDSHAKE,
        ClientCapabilities::none(),
        None,
        principal.clone(),
    );
    Negotiated {
        peer: Arc::new(peer.present(presence.clone())),
        encoder: edge.encoder(REVISION_WITHOUT_HANDSHAKE),
    }
}

/// The streams of one session.
#[derive(Default)]
pub(super) struct Streams {
    last: AtomicU64,
    open: Mutex<HashMap<u64, CancellationToken>>,
}

impl Streams {
    fn open(self: &Arc<Self>) -> NativeStream {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let stop = CancellationToken::new();
        lock(&self.open).insert(number, stop.clone());
        NativeStream {
            number,
            stop,
            streams: Arc::clone(self),
        }
    }

    /// Whether there was one to stop.
    fn stop(&self, number: u64) -> bool {
        let stop = lock(&self.open).get(&number).cloned();
        stop.is_some_and(|stop| {
            stop.cancel();
            true
        })
    }
}

/// One stream, open until it is dropped.
struct NativeStream {
    number: u64,
    stop: CancellationToken,
    streams: Arc<Streams>,
}

impl Drop for NativeStream {
    fn drop(&mut self) {
        lock(&self.streams.open).remove(&self.number);
    }
}

impl Session {
    /// Prepares the session of one native call over HTTP. The client can be asked what it declares
    /// in the `_meta` of the call, in the forms of the newest revision with a handshake.
    ///
    /// # Errors
    /// The method is not a tool's, or the capabilities are malformed.
    pub(crate) fn prepare_native_call(&self, asked: &ParsedRequest) -> Result<(), Fault> {
        let encoder = self.edge.encoder(Revision::NEWEST_HANDSHAKE);
        let is_of_mcp = method::defined_in(&asked.method, encoder.revision).is_some();
        if is_of_mcp || &*asked.method == UNSUBSCRIBE {
            return Err(Fault::MethodNotFound(asked.method.clone().into()));
        }
        let invalid = |error| Fault::InvalidParams(format!("params._meta: {error}"));
        let capabilities = match &asked.meta.client_capabilities {
            Some(declared) => {
                ClientCapabilities::from_raw(&declared.detached()).map_err(invalid)?
            }
            None => ClientCapabilities::none(),
        };
        let client_info = asked.meta.client_info.as_ref().map(Raw::detached);
        let principal = self.principal.clone();
        let peer = Peer::new(encoder.revision, capabilities, client_info, principal);
        let peer = Arc::new(peer.present(self.presence.clone()));
        self.state().negotiated = Some(Negotiated { peer, encoder });
        Ok(())
    }

    /// Serves a method that MCP does not have.
    pub(super) fn begin_native(
        self: &Arc<Self>,
        streams: &Arc<Streams>,
        peer: Arc<Peer>,
        encoder: Arc<ResponseEncoder>,
        (id, method, params): (Id, Box<str>, Option<Raw>),
        cancel: &CancellationToken,
    ) -> Result<Exchange, Fault> {
        if &*method == UNSUBSCRIBE {
            let stopped = streams.stop(arguments::subscription(params.as_ref())?);
            return Ok(Exchange::Answered(complete(&id, &json(&stopped))));
        }
        let catalogue = self.edge.catalogue_for(&peer);
        let tool = arguments::tool(&catalogue, &method)
            .ok_or_else(|| Fault::MethodNotFound(method.clone().into()))?;
        let mut call = Object::new();
        call.set("name", json(&*tool.key));
        call.set("arguments", arguments::named(&tool.definition, params)?);
        let wants = Wants {
            progress: true,
            log_level: Some(self.state().log_level),
        };
        let running = self
            .edge
            .start(method::TOOLS_CALL, call, peer, wants, cancel.clone());
        let stream = streams.open();
        Ok(Exchange::Native(Box::new(NativeCall {
            session: Arc::clone(self),
            encoder,
            id,
            event_encoder: NativeEventEncoder::new(method, stream.number),
            stream,
            running,
            repeated: RepeatedQuestions::default(),
            said: VecDeque::new(),
            answered: false,
            over: false,
        })))
    }
}

/// A native call and its stream.
pub(crate) struct NativeCall {
    session: Arc<Session>,
    encoder: Arc<ResponseEncoder>,
    id: Id,
    event_encoder: NativeEventEncoder,
    stream: NativeStream,
    running: RunningCall,
    repeated: RepeatedQuestions,
    /// Messages to send before the call is polled again.
    said: VecDeque<Bytes>,
    answered: bool,
    over: bool,
}

impl NativeCall {
    /// The next message: the answer, then the events, of which the last one ends the exchange.
    pub(crate) async fn next(&mut self) -> Output {
        loop {
            if let Some(message) = self.said.pop_front() {
                return if self.over && self.said.is_empty() {
                    let status = 200;
                    Output::Answer(EncodedResponse::new(status, message))
                } else {
                    Output::Question(message)
                };
            }
            if !self.answered {
                match self.running.next().now_or_never() {
                    // A call that fails at once gets an error response and no stream.
                    Some(Step::Done(Err(fault))) => {
                        return Output::Answer(self.encoder.error(&self.id, &fault));
                    }
                    step => {
                        self.answered = true;
                        let number = json(&self.stream.number);
                        self.said.push_back(complete(&self.id, &number).message);
                        self.said.push_back(self.event_encoder.start());
                        if let Some(step) = step {
                            self.tell(step);
                        }
                        continue;
                    }
                }
            }
            tokio::select! {
                biased;
                () = self.stream.stop.cancelled() => {
                    self.tell(Step::Done(Err(Fault::Cancelled)));
                }
                step = self.running.next() => self.tell(step),
                question = self.repeated.next() => self.said.push_back(question),
            }
        }
    }

    fn tell(&mut self, step: Step) {
        match step {
            Step::Event(Event::Ask(ask)) => {
                let revision = self.encoder.revision;
                let question =
                    client_requests::put(&self.session, revision, ask, &mut self.repeated);
                self.said.extend(question);
            }
            Step::Event(event) => self.said.extend(self.event_encoder.event(&event)),
            Step::Done(outcome) => {
                let error = |fault: &Fault| fault.to_error(self.encoder.revision);
                self.said.extend(self.event_encoder.end(outcome, error));
                self.over = true;
            }
        }
    }
}
