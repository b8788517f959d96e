//! Serves requests of 2026-07-28, which have no session.

mod headers;
mod retry;

pub(crate) use headers::VERSION as VERSION_HEADER;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use plexus_mcp_core::{Ask, AskError, Event, Fault, Peer};
use plexus_mcp_protocol::messages::{
    ClientCapabilities, InputRequest, InputRequiredResult, ListenParams, LogLevel,
};
use plexus_mcp_protocol::{Era, RequestMeta, Revision, method};
use plexus_mcp_wire::{Id, Object, Raw};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::caller::{Caller, CallerIdentity};
use crate::canonical;
use crate::edge::{Edge, admit};
use crate::encoder::{EncodedResponse, NotificationEncoder, ResponseEncoder, complete};
use crate::exchange::{Exchange, Output};
use crate::listen::Listen;
use crate::park::{ParkedCall, ParkedPosition};
use crate::parsed_request::ParsedRequest;
use crate::question;
use crate::running_call::{RunningCall, Step};
use crate::seal;

/// Serves a request that carries its own metadata. `headers` are those of its HTTP request, if it
/// came by one.
pub(crate) fn begin(
    edge: &Arc<Edge>,
    asked: ParsedRequest,
    headers: Option<&HeaderMap>,
    caller: Caller,
) -> Exchange {
    let id = asked.id.clone();
    try_begin(edge, asked, headers, caller).unwrap_or_else(|fault| {
        let encoder = edge.encoder(Revision::NEWEST_STATELESS);
        Exchange::Answered(encoder.error(&id, &fault))
    })
}

/// Checks a request in the order of docs/protocol-rules.md, "Validation order": the first check that
/// fails decides the error.
fn try_begin(
    edge: &Arc<Edge>,
    asked: ParsedRequest,
    headers: Option<&HeaderMap>,
    caller: Caller,
) -> Result<Exchange, Fault> {
    let ParsedRequest {
        id,
        method,
        raw,
        params,
        meta,
    } = asked;
    let version = required(
        meta.protocol_version.as_ref(),
        plexus_mcp_protocol::key::PROTOCOL_VERSION,
    )?;
    let capabilities = client_capabilities(meta.client_capabilities.as_ref())?;
    if let Some(headers) = headers {
        headers::check_version(headers, &version)?;
    }
    let encoder = edge.encoder(served_revision(edge, &version)?);
    if let Some(headers) = headers {
        headers::check_method(headers, &method)?;
    }
    let Caller { identity, presence } = caller;
    let CallerIdentity {
        principal,
        scopes,
        credential,
    } = identity;
    let mut peer = Peer::new(
        encoder.revision,
        capabilities,
        meta.client_info.clone(),
        principal.clone(),
    );
    peer.scopes = scopes;
    peer.presence = presence;
    if let Some(credential) = credential {
        peer.credentials.show(credential);
    }
    let catalogue = edge.catalogue_for(&peer);
    admit(&method, encoder.revision, &catalogue.capabilities)?;
    if let Some(headers) = headers {
        headers::check_params(headers, &method, &params, &catalogue)?;
    }
    let peer = Arc::new(peer);
    let request = (&id, &*method, raw.as_ref());
    if let Some(awaited) = edge.answer_when_settled(request, &peer, &encoder) {
        return Ok(awaited);
    }
    if let Some(answer) = edge.answer_directly(&catalogue, &method, raw.as_ref(), &encoder) {
        return answer.map(|result| Exchange::Answered(complete(&id, &result)));
    }

    if &*method == method::SUBSCRIPTIONS_LISTEN {
        let params: ListenParams = raw
            .unwrap_or_else(Raw::empty_object)
            .decode()
            .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?;
        let listen = Listen::new(Arc::clone(edge), encoder, id, params.notifications, peer);
        return Ok(Exchange::Listen(Box::new(listen)));
    }

    let notifications = NotificationEncoder::new(
        encoder.revision,
        meta.progress_token.clone(),
        log_level(&meta)?,
    );
    let retried = match params.get("requestState") {
        Some(state) if method::allows_input_required(&method) => {
            let binding = binding(&peer, &method, &params);
            Some(retry::resume(edge, state, &params, &binding)?)
        }
        _ => None,
    };
    let mut call = Box::new(StatelessCall {
        edge: Arc::clone(edge),
        encoder,
        notifications,
        peer: Arc::clone(&peer),
        id,
        method,
        params: raw,
        place: None,
        running: None,
        asks: Vec::new(),
        asked: 0,
        volunteered: Object::new(),
        ask_at: None,
    });
    if let Some((parked, place)) = retried {
        call.running = Some(parked.running);
        call.asked = parked.asked;
        call.place = Some(place);
        // Questions without an answer are asked again, at once.
        for (key, ask) in parked.asks {
            let capability = ask.question.needs();
            if call.peer.supports(capability) {
                call.asks.push((key, ask));
                call.ask_at = Some(Instant::now());
            } else {
                ask.answer(Err(AskError::Unsupported(capability)));
            }
        }
    } else {
        if method::allows_input_required(&call.method) {
            call.volunteered = retry::answers(&params)?;
        }
        let wants = call.notifications.wants();
        call.running =
            Some(edge.start(&call.method, params, peer, wants, CancellationToken::new()));
    }
    Ok(Exchange::Stateless(call))
}

/// A call of the stateless era. A question ends the request with `input_required`; the call itself
/// is parked, and continues when the client retries with the answers.
pub(crate) struct StatelessCall {
    edge: Arc<Edge>,
    encoder: Arc<ResponseEncoder>,
    notifications: NotificationEncoder,
    peer: Arc<Peer>,
    id: Id,
    method: Box<str>,
    /// As they arrived.
    params: Option<Raw>,
    /// The position at which the call was parked before.
    place: Option<ParkedPosition>,
    /// Gone once the call is parked or done.
    running: Option<RunningCall>,
    asks: Vec<(String, Ask)>,
    asked: u32,
    /// Answers that came with the request before anything was asked.
    volunteered: Object,
    /// When the questions collected so far are put.
    ask_at: Option<Instant>,
}

impl StatelessCall {
    pub(crate) async fn next(&mut self) -> Output {
        loop {
            let Some(running) = &mut self.running else {
                return Output::Answer(self.encoder.error(&self.id, &Fault::Cancelled));
            };
            let step = match self.ask_at {
                Some(at) => match timeout_at(at, running.next()).await {
                    Ok(step) => step,
                    Err(_elapsed) => {
                        self.asks.retain(|(_, ask)| ask.is_wanted());
                        if !self.asks.is_empty() {
                            return Output::Answer(self.park());
                        }
                        // All questions were withdrawn.
                        self.ask_at = None;
                        continue;
                    }
                },
                None => running.next().await,
            };
            match step {
                Step::Event(Event::Ask(ask)) => self.collect(ask),
                Step::Event(event) => {
                    if let Some(message) = self.notifications.encode(&event) {
                        return Output::Notification(message);
                    }
                }
                Step::Done(outcome) => {
                    self.running = None;
                    return Output::Answer(self.encoder.answer(&self.id, &self.method, outcome));
                }
            }
        }
    }

    fn collect(&mut self, ask: Ask) {
        if !method::allows_input_required(&self.method) {
            let capability = ask.question.needs();
            ask.answer(Err(AskError::Unsupported(capability)));
            return;
        }
        // `EventSender::ask` has checked the capabilities of the request that began the call; those of
        // the current request may be fewer.
        let capability = ask.question.needs();
        if !self.peer.supports(capability) {
            ask.answer(Err(AskError::Unsupported(capability)));
            return;
        }
        if let Some(answer) = self.volunteered_for(&ask) {
            ask.answer(Ok(answer));
            return;
        }
        let taken = |key: &str| self.asks.iter().any(|(other, _)| other == key);
        let key = match ask.key.clone().filter(|key| !taken(key)) {
            Some(key) => key,
            None => loop {
                self.asked += 1;
                let key = format!("q{}", self.asked);
                if !taken(&key) {
                    break key;
                }
            },
        };
        self.asks.push((key, ask));
        self.ask_at
            .get_or_insert_with(|| Instant::now() + self.edge.options.collect_window);
    }

    /// A client may answer a named question before it is asked: a server without state could not
    /// tell the difference. Each such answer is used once.
    fn volunteered_for(&mut self, ask: &Ask) -> Option<Raw> {
        let answer = self.volunteered.remove(ask.key.as_ref()?)?;
        retry::check(&ask.question, &answer).ok().map(|()| answer)
    }

    fn park(&mut self) -> EncodedResponse {
        self.try_park()
            .unwrap_or_else(|fault| self.encoder.error(&self.id, &fault))
    }

    fn try_park(&mut self) -> Result<EncodedResponse, Fault> {
        let asks = std::mem::take(&mut self.asks);
        let mut result = InputRequiredResult::default();
        for (key, ask) in &asks {
            // Every stateless revision has all fields of forms, so that no answer must be raised.
            let lowered = question::lowered(&ask.question, self.encoder.revision)
                .map_err(|error| Fault::Internal(error.to_string()))?;
            result.ask(
                key.clone(),
                &InputRequest {
                    method: ask.question.method().to_owned(),
                    params: lowered.params,
                },
            );
        }
        let running = self.running.take().ok_or(Fault::Cancelled)?;
        let questions = asks.iter().filter_map(|(_, ask)| ask.question.params());
        let bytes = questions.chain(&self.params).map(Raw::len).sum();
        let call = ParkedCall {
            running,
            bytes,
            asks,
            asked: self.asked,
            principal: self.peer.principal.clone(),
        };
        let params = self.params.as_ref().map(Object::parse);
        let params = params.transpose().ok().flatten().unwrap_or_default();
        let binding = binding(&self.peer, &self.method, &params);
        let state = self
            .edge
            .parking
            .park(&self.edge.tracker, call, binding, self.place.take())?;
        result.request_state = Some(state);
        Ok(self.encoder.complete(&self.id, result.to_raw()))
    }
}

/// The hash that binds a parked call to its request.
fn binding(peer: &Peer, method: &str, params: &Object) -> [u8; 32] {
    seal::binding(peer.principal.as_str(), method, &canonical::request(params))
}

fn required<'a>(value: Option<&'a Raw>, name: &str) -> Result<Cow<'a, str>, Fault> {
    value
        .and_then(Raw::text)
        .ok_or_else(|| Fault::MissingMeta(format!("params._meta must carry {name:?}, a string")))
}

fn client_capabilities(value: Option<&Raw>) -> Result<ClientCapabilities, Fault> {
    let name = plexus_mcp_protocol::key::CLIENT_CAPABILITIES;
    let missing =
        |why: String| Fault::MissingMeta(format!("params._meta must carry {name:?}, {why}"));
    let value = value.ok_or_else(|| missing("an object".to_owned()))?;
    ClientCapabilities::from_raw(value).map_err(|error| missing(error.to_string()))
}

fn served_revision(edge: &Edge, requested: &str) -> Result<Revision, Fault> {
    match requested.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Stateless => Ok(revision),
        _ => {
            let supported = edge.options.served.versions();
            Err(Fault::UnsupportedVersion {
                requested: requested.to_owned(),
                supported,
            })
        }
    }
}

/// LOG-02: an unknown level fails the request.
fn log_level(meta: &RequestMeta) -> Result<Option<LogLevel>, Fault> {
    let Some(level) = &meta.log_level else {
        return Ok(None);
    };
    let level = level.decode().map_err(|error| {
        Fault::InvalidParams(format!(
            "params._meta[{:?}]: {error}",
            plexus_mcp_protocol::key::LOG_LEVEL
        ))
    })?;
    Ok(Some(level))
}

#[cfg(test)]
mod tests;
