//! A service with sessions of an agent that is a shell script.

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_agents::claudecode::Settings;
use plexus_mcp_agents::{AgentData, Extras};
use plexus_mcp_builtins::{AliasedService, DataPaths, Names};
use plexus_mcp_core::{
    Ask, Call, Event, EventReceiver, EventSender, Fault, Outcome, Peer, Principal, Raw, Service,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use plexus_testkit::within;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Test timeout, longer than any operation here takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/claudecode/agent.sh");

/// The built-in service, in a temporary directory.
pub(crate) struct Server {
    folder: Arc<TempDir>,
    pub(crate) service: AliasedService,
}

/// A running call.
pub(crate) struct Calling {
    pub(crate) answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    pub(crate) events: EventReceiver,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with_agent(AGENT)
    }

    pub(crate) fn with_agent(agent: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("work")).unwrap();
        Self::on(folder, agent)
    }

    /// Starts a second service on the same store, like another process.
    pub(crate) fn again(&self) -> Self {
        Self::on(Arc::clone(&self.folder), AGENT)
    }

    fn on(folder: Arc<TempDir>, agent: &str) -> Self {
        let data = AgentData::open(&DataPaths::in_directory(folder.path())).unwrap();
        let mut extras = Extras::default();
        extras.claudecode = Some(Settings::new(agent, Some("/nowhere:/elsewhere".into())));
        let service = plexus_mcp_agents::service(Names::Dotted, "1.0.0", &data, &extras);
        Self {
            folder,
            service: service.unwrap(),
        }
    }

    /// The working directory of the agent.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    /// The command-line arguments of the last agent.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let arguments = fs::read_to_string(self.work().join("arguments")).unwrap();
        arguments.lines().map(str::to_owned).collect()
    }

    pub(crate) fn begin_as(&self, tool: &str, arguments: &Value, capabilities: &str) -> Calling {
        let peer = Peer::new(
            Revision::V2025_11_25,
            ClientCapabilities::from_raw(&raw(capabilities)).unwrap(),
            None,
            Principal::anonymous(),
        );
        let (sender, events) = EventSender::channel(Arc::new(peer), true, None);
        let params = json!({ "name": tool, "arguments": arguments });
        let params = raw(&params.to_string());
        let call = Call::new(
            "tools/call",
            Object::parse(&params).unwrap(),
            sender,
            CancellationToken::new(),
        );
        Calling {
            answer: self.service.call(call),
            events,
        }
    }

    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> Calling {
        self.begin_as(tool, arguments, "{}")
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.begin(tool, &arguments).ended().await.unwrap()
    }

    /// Creates a session called `s`.
    pub(crate) async fn session(&self) -> Value {
        let new = json!({ "name": "s", "working_dir": self.work() });
        let created = self.call("claudecode.create", new).await;
        created["structuredContent"].clone()
    }

    /// Chats in the session `s`.
    pub(crate) async fn chat(&self, query: &str) -> Value {
        let asked = json!({ "session_name": "s", "query": query });
        self.call("claudecode.chat", asked).await
    }
}

impl Calling {
    pub(crate) async fn ended(self) -> Result<Value, Fault> {
        let Self { answer, mut events } = self;
        let drain = async { while events.recv().await.is_some() {} };
        let answer = async {
            tokio::select! {
                answer = answer => answer,
                () = async { drain.await; std::future::pending().await } => unreachable!(),
            }
        };
        let answer = tokio::time::timeout(TEST_TIMEOUT, answer).await;
        answer
            .expect("an answer in time")
            .map(|result| result.decode().unwrap())
    }

    /// The next chunk of streamed text.
    pub(crate) async fn piece(&mut self) -> String {
        match self.event().await {
            Event::Content(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// The next tool that the agent used.
    pub(crate) async fn tool(&mut self) -> String {
        match self.event().await {
            Event::ToolUse(tool) => tool.name,
            other => panic!("{other:?}"),
        }
    }

    /// The next question to the user.
    pub(crate) async fn question(&mut self) -> Ask {
        loop {
            if let Event::Ask(ask) = self.event().await {
                return ask;
            }
        }
    }

    async fn event(&mut self) -> Event {
        let happening = async {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => event,
                outcome = &mut self.answer => panic!("{outcome:?}"),
            }
        };
        within("an event", happening).await
    }
}

/// The texts of a result, block by block.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}

/// The error text of a failed tool call.
pub(crate) fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    texts(result).last().copied().unwrap()
}

pub(crate) fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}
