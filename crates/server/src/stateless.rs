//! Requests of 2026-07-28: each stands alone.

mod headers;
mod retry;

pub(crate) use headers::VERSION as VERSION_HEADER;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use plexus_mcp::messages::{
    ClientCapabilities, InputRequest, InputRequiredResult, ListenParams, LogLevel,
};
use plexus_mcp::{Era, RequestMeta, Revision, method};
use plexus_service::{Ask, AskError, Event, Fault, Peer, Presence};
use plexus_wire::{Id, Object, Raw};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::asked::Asked;
use crate::canonical;
use crate::edge::{Edge, admit};
use crate::exchange::{Exchange, Output};
use crate::http::Admitted;
use crate::listen::Listen;
use crate::park::{ParkedCall, Place};
use crate::question;
use crate::render::{Answer, Narrator, Voice, complete};
use crate::running::{Running, Step};
use crate::seal;

/// Who sends a request, as far as its transport knows.
pub(crate) struct Caller {
    pub(crate) admitted: Admitted,
    /// That it stays there between its requests, where that is known.
    pub(crate) presence: Option<Presence>,
}

/// Serves a request that carries its own metadata. `headers` are those of its HTTP request, if it
/// came by one.
pub(crate) fn begin(
    edge: &Arc<Edge>,
    asked: Asked,
    headers: Option<&HeaderMap>,
    caller: Caller,
) -> Exchange {
    let id = asked.id.clone();
    try_begin(edge, asked, headers, caller).unwrap_or_else(|fault| {
        let voice = edge.voice(Revision::NEWEST_STATELESS);
        Exchange::Answered(voice.error(&id, &fault))
    })
}

/// The checks stand in the order in which their answers must win (OBLIGATIONS, "Suggested server
/// validation order").
fn try_begin(
    edge: &Arc<Edge>,
    asked: Asked,
    headers: Option<&HeaderMap>,
    caller: Caller,
) -> Result<Exchange, Fault> {
    let Asked {
        id,
        method,
        raw,
        params,
        meta,
    } = asked;
    let version = required(
        meta.protocol_version.as_ref(),
        plexus_mcp::key::PROTOCOL_VERSION,
    )?;
    let capabilities = client_capabilities(meta.client_capabilities.as_ref())?;
    if let Some(headers) = headers {
        headers::check_version(headers, &version)?;
    }
    let voice = edge.voice(served_revision(edge, &version)?);
    if let Some(headers) = headers {
        headers::check_method(headers, &method)?;
    }
    let Caller { admitted, presence } = caller;
    let Admitted {
        principal,
        scopes,
        credential,
    } = admitted;
    let mut peer = Peer::new(
        voice.revision,
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
    admit(&method, voice.revision, &catalogue.capabilities)?;
    if let Some(headers) = headers {
        headers::check_params(headers, &method, &params, &catalogue)?;
    }
    if let Some(answer) = edge.answer_directly(&catalogue, &method, raw.as_ref(), &voice) {
        return answer.map(|result| Exchange::Answered(complete(&id, &result)));
    }

    let peer = Arc::new(peer);
    if &*method == method::SUBSCRIPTIONS_LISTEN {
        let params: ListenParams = raw
            .unwrap_or_else(Raw::empty_object)
            .decode()
            .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?;
        let listen = Listen::new(Arc::clone(edge), voice, id, params.notifications, peer);
        return Ok(Exchange::Listen(Box::new(listen)));
    }

    let narrator = Narrator::new(
        voice.revision,
        meta.progress_token.clone(),
        log_level(&meta)?,
    );
    let retried = match params.get("requestState") {
        Some(state) if method::may_ask(&method) => {
            let binding = binding(&peer, &method, &params);
            Some(retry::resume(edge, state, &params, &binding)?)
        }
        _ => None,
    };
    let mut call = Box::new(StatelessCall {
        edge: Arc::clone(edge),
        voice,
        narrator,
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
        // What was not answered is asked again, at once.
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
        if method::may_ask(&call.method) {
            call.volunteered = retry::answers(&params)?;
        }
        let wants = call.narrator.wants(meta.trace_parent);
        call.running =
            Some(edge.start(&call.method, params, peer, wants, CancellationToken::new()));
    }
    Ok(Exchange::Stateless(call))
}

/// A call of the stateless era. A question ends it with `input_required`; the call itself is
/// parked, and goes on when the client retries with the answers.
pub(crate) struct StatelessCall {
    edge: Arc<Edge>,
    voice: Arc<Voice>,
    narrator: Narrator,
    peer: Arc<Peer>,
    id: Id,
    method: Cow<'static, str>,
    /// As they arrived.
    params: Option<Raw>,
    /// Where the call was parked before.
    place: Option<Place>,
    /// Gone once the call is parked or done.
    running: Option<Running>,
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
                return Output::Answer(self.voice.error(&self.id, &Fault::Cancelled));
            };
            let step = match self.ask_at {
                Some(at) => match timeout_at(at, running.next()).await {
                    Ok(step) => step,
                    Err(_elapsed) => {
                        self.asks.retain(|(_, ask)| ask.is_wanted());
                        if !self.asks.is_empty() {
                            return Output::Answer(self.park());
                        }
                        // All was withdrawn; there is nothing to wait for.
                        self.ask_at = None;
                        continue;
                    }
                },
                None => running.next().await,
            };
            match step {
                Step::Event(Event::Ask(ask)) => self.collect(ask),
                Step::Event(event) => {
                    if let Some(message) = self.narrator.tell(&event) {
                        return Output::Notification(message);
                    }
                }
                Step::Done(outcome) => {
                    self.running = None;
                    return Output::Answer(self.voice.answer(&self.id, &self.method, outcome));
                }
            }
        }
    }

    fn collect(&mut self, ask: Ask) {
        if !method::may_ask(&self.method) {
            let capability = ask.question.needs();
            ask.answer(Err(AskError::Unsupported(capability)));
            return;
        }
        // What counts is what the request at hand declares, not the one that began the call.
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

    /// A client may answer a question that has a name without being asked first: a server without
    /// state could not tell the difference. Each answer is good for one question.
    fn volunteered_for(&mut self, ask: &Ask) -> Option<Raw> {
        let answer = self.volunteered.remove(ask.key.as_ref()?)?;
        retry::check(&ask.question, &answer).ok().map(|()| answer)
    }

    fn park(&mut self) -> Answer {
        self.try_park()
            .unwrap_or_else(|fault| self.voice.error(&self.id, &fault))
    }

    fn try_park(&mut self) -> Result<Answer, Fault> {
        let asks = std::mem::take(&mut self.asks);
        let mut result = InputRequiredResult::default();
        for (key, ask) in &asks {
            let params = question::params(&ask.question, self.voice.revision)
                .map_err(|error| Fault::Internal(error.to_string()))?;
            result.ask(
                key.clone(),
                &InputRequest {
                    method: ask.question.method().to_owned(),
                    params,
                },
            );
        }
        let running = self.running.take().ok_or(Fault::Cancelled)?;
        let call = ParkedCall {
            running,
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
        Ok(self.voice.complete(&self.id, &result.to_raw()))
    }
}

/// What binds a parked call to its request.
fn binding(peer: &Peer, method: &str, params: &Object) -> [u8; 32] {
    seal::binding(peer.principal.as_str(), method, &canonical::request(params))
}

fn required<'a>(value: Option<&'a Raw>, name: &str) -> Result<Cow<'a, str>, Fault> {
    value
        .and_then(Raw::text)
        .ok_or_else(|| Fault::MissingMeta(format!("params._meta must carry {name:?}, a string")))
}

fn client_capabilities(value: Option<&Raw>) -> Result<ClientCapabilities, Fault> {
    let name = plexus_mcp::key::CLIENT_CAPABILITIES;
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
            plexus_mcp::key::LOG_LEVEL
        ))
    })?;
    Ok(Some(level))
}

#[cfg(test)]
mod tests;
