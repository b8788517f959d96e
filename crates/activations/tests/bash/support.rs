//! A caller of `bash.execute`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plexus_activations::{Names, bash};
use plexus_mcp::Revision;
use plexus_mcp::messages::ClientCapabilities;
use plexus_service::{
    Call, Event, EventReceiver, EventSender, LocalService, Outcome, Peer, Principal, Raw, Section,
    Service,
};
use plexus_testkit::within;
use plexus_wire::{Limits, Object};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A call on its way.
pub(crate) struct Calling {
    pub(crate) answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    pub(crate) events: EventReceiver,
}

impl Calling {
    /// Waits until the streamed text contains `text`; gives all of it.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let streaming = async {
            let mut streamed = String::new();
            while !streamed.contains(text) {
                tokio::select! {
                    biased;
                    event = self.events.recv() => match event {
                        Some(Event::Content(piece)) => streamed.push_str(&piece),
                        other => panic!("{other:?} after {streamed:?}"),
                    },
                    outcome = &mut self.answer => panic!("{outcome:?} after {streamed:?}"),
                }
            }
            streamed
        };
        within(text, streaming).await
    }
}

/// The service under test.
pub(crate) fn service() -> LocalService {
    let builder = LocalService::builder("test", "1.0.0");
    bash(builder, Names::Dotted).build().unwrap()
}

/// The definition of the tool.
pub(crate) fn definition() -> Value {
    let catalogue = service().catalogue();
    let catalogue = catalogue.borrow();
    let tools = catalogue.list(Section::Tools);
    let tool = tools.get("bash.execute").unwrap();
    tool.definition.decode().unwrap()
}

/// Begins a call by somebody who wants progress.
pub(crate) fn begin(arguments: &Value) -> Calling {
    begin_as(arguments, true)
}

fn begin_as(arguments: &Value, progress: bool) -> Calling {
    let peer = Peer::new(
        Revision::V2025_11_25,
        ClientCapabilities::none(),
        None,
        Principal::anonymous(),
    );
    let (sender, events) = EventSender::channel(Arc::new(peer), progress, None);
    let params = json!({ "name": "bash.execute", "arguments": arguments }).to_string();
    let params = Raw::parse(params.into(), &Limits::default()).unwrap();
    let call = Call::new(
        "tools/call",
        Object::parse(&params).unwrap(),
        sender,
        CancellationToken::new(),
    );
    Calling {
        answer: service().call(call),
        events,
    }
}

/// Calls with these arguments, without wanting progress.
pub(crate) async fn call(arguments: Value) -> Value {
    let answer = begin_as(&arguments, false).answer;
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer
        .expect("an answer in time")
        .unwrap()
        .decode()
        .unwrap()
}

/// Runs a command.
pub(crate) async fn run(command: &str) -> Value {
    call(json!({ "command": command })).await
}

/// The texts of a result, block by block.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}
