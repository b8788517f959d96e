//! A caller of `bash.execute`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_agents::bash;
use plexus_mcp_builtins::Names;
use plexus_mcp_core::{
    Call, Event, EventReceiver, EventSender, LocalService, Outcome, Peer, Principal, Raw, Section,
    Service,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Test timeout, longer than any operation here takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A running call.
pub(crate) struct Calling {
    pub(crate) answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    pub(crate) events: EventReceiver,
}

impl Calling {
    /// Waits until the streamed text contains `text`; returns all of it.
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

/// Starts a call that asks for progress notifications.
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

/// Calls the tool with these arguments, without progress notifications.
pub(crate) async fn call(arguments: Value) -> Value {
    let answer = begin_as(&arguments, false).answer;
    let answer = tokio::time::timeout(TEST_TIMEOUT, answer).await;
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
