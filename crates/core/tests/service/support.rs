//! Helpers of these tests.

use std::sync::Arc;

use plexus_mcp_core::{
    AskError, Builder, Call, Catalogue, Event, EventSender, Fault, LocalService, LogLevel, Object,
    Peer, Principal, Question, Raw, Service,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A builder of a service with nothing in it.
pub(crate) fn builder() -> Builder {
    LocalService::builder("test", "1.0.0")
}

/// Stands in for an edge: calls a service and receives its events.
pub(crate) struct Caller {
    pub(crate) service: LocalService,
    peer: Arc<Peer>,
    progress: bool,
    log_level: Option<LogLevel>,
}

impl Caller {
    /// A caller of the service of `builder`, which declares no capabilities and wants no events.
    pub(crate) fn of(builder: Builder) -> Self {
        Self {
            service: builder.build().unwrap(),
            peer: peer(ClientCapabilities::none()),
            progress: false,
            log_level: None,
        }
    }

    /// Declares client capabilities.
    pub(crate) fn declaring(mut self, capabilities: &Value) -> Self {
        self.peer = peer(ClientCapabilities::from_raw(&raw(capabilities)).unwrap());
        self
    }

    pub(crate) fn wanting_progress(mut self) -> Self {
        self.progress = true;
        self
    }

    pub(crate) fn wanting_logs(mut self, from: LogLevel) -> Self {
        self.log_level = Some(from);
        self
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.service.catalogue().borrow())
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Calls a method that must send no events.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Fault> {
        let silent = |event| panic!("unexpected event {event:?}");
        self.hear(method, params, silent).await
    }

    /// Calls a tool that must send no events.
    pub(crate) async fn call_tool(&self, name: &str, arguments: Value) -> Result<Value, Fault> {
        let params = json!({ "name": name, "arguments": arguments });
        self.call("tools/call", params).await
    }

    /// Calls a method, and passes its events to `hears`.
    pub(crate) async fn hear(
        &self,
        method: &str,
        params: Value,
        mut hears: impl FnMut(Event),
    ) -> Result<Value, Fault> {
        let (sender, mut events) =
            EventSender::channel(Arc::clone(&self.peer), self.progress, self.log_level);
        let params = Object::parse(&raw(&params)).unwrap();
        let call = Call::new(method, params, sender, CancellationToken::new());
        let mut outcome = self.service.call(call);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => hears(event),
                outcome = &mut outcome => {
                    while let Some(event) = events.try_recv() {
                        hears(event);
                    }
                    return outcome.map(|result| value(&result));
                }
            }
        }
    }

    /// Calls a tool without arguments, and passes its events to `hears`.
    pub(crate) async fn hear_tool(
        &self,
        name: &str,
        hears: impl FnMut(Event),
    ) -> Result<Value, Fault> {
        self.hear("tools/call", json!({ "name": name }), hears)
            .await
    }

    /// Calls a tool without arguments that asks one question, and answers it with `answer`. Also
    /// returns the name and parameters of the question.
    pub(crate) async fn answer_tool(
        &self,
        name: &str,
        answer: Result<Value, AskError>,
    ) -> (AskedQuestion, Result<Value, Fault>) {
        let mut answer = Some(answer);
        let mut asked = None;
        let outcome = self.hear_tool(name, |event| {
            let Event::Ask(ask) = event else {
                panic!("a question was to be asked, but {event:?} was said")
            };
            asked = Some(AskedQuestion {
                key: ask.key.clone(),
                params: ask.question.params().map(value),
                question: ask.question.clone(),
            });
            let answer = answer.take().expect("only one question");
            ask.answer(answer.map(|answer| raw(&answer)));
        });
        let outcome = outcome.await;
        (asked.expect("a question"), outcome)
    }
}

/// A question that was asked.
#[derive(Debug)]
pub(crate) struct AskedQuestion {
    pub(crate) key: Option<String>,
    pub(crate) params: Option<Value>,
    pub(crate) question: Question,
}

pub(crate) fn raw(value: &Value) -> Raw {
    Raw::encode(value).unwrap()
}

pub(crate) fn value(raw: &Raw) -> Value {
    raw.decode().unwrap()
}

/// A result of one block of text.
pub(crate) fn text(text: &str) -> Value {
    texts(&[text])
}

/// A result of several blocks of text.
pub(crate) fn texts(texts: &[&str]) -> Value {
    let block = |text| json!({ "type": "text", "text": text });
    let content: Value = texts.iter().map(block).collect();
    json!({ "content": content, "isError": false })
}

/// A result that says why a tool failed.
pub(crate) fn failure(reason: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": reason }], "isError": true })
}

fn peer(capabilities: ClientCapabilities) -> Arc<Peer> {
    let revision = Revision::V2026_07_28;
    Arc::new(Peer::new(
        revision,
        capabilities,
        None,
        Principal::anonymous(),
    ))
}
