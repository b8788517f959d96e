//! A graph in a temporary directory, with a clock that tests advance, and a client for its tools.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Waker};

use jiff::Timestamp;
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::context::{
    Graph, MIGRATIONS, NewNode, Search, SearchResults, Trigrams, Vectorizer, context,
};
use plexus_mcp_core::{
    Call, EventSender, Fault, LocalService, Peer, Principal, Raw, Service, Updates,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_store::Store;
use plexus_mcp_wire::{Limits, Object};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const HOUR: i64 = 3_600_000;
pub(crate) const DAY: i64 = 24 * HOUR;

/// 2023-11-14T22:13:20Z.
const START: i64 = 1_700_000_000_000;

/// A graph, with its folder and its clock.
pub(crate) struct Fixture {
    pub(crate) graph: Graph,
    pub(crate) folder: TempDir,
    clock: Arc<AtomicI64>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let graph = open(folder.path(), Arc::new(Trigrams::default()), &clock);
        Self {
            graph,
            folder,
            clock,
        }
    }

    /// Another graph on the same file, as another process would open it.
    pub(crate) fn another(&self) -> Graph {
        self.another_with(Arc::new(Trigrams::default()))
    }

    pub(crate) fn another_with(&self, vectorizer: Arc<dyn Vectorizer>) -> Graph {
        open(self.folder.path(), vectorizer, &self.clock)
    }

    /// Another connection to the database.
    pub(crate) fn store(&self) -> Store {
        store(self.folder.path())
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Stores a text in the default namespace, and returns its id.
    pub(crate) async fn put(&self, content: &str) -> String {
        self.put_node(NewNode::new(content)).await
    }

    pub(crate) async fn put_node(&self, node: NewNode) -> String {
        self.graph.store(node, "test").await.unwrap().id
    }

    /// The contents that a search finds.
    pub(crate) async fn find(&self, query: &str) -> Vec<String> {
        contents(&self.graph.search(Search::new(query)).await.unwrap())
    }
}

pub(crate) fn contents(found: &SearchResults) -> Vec<String> {
    let hits = found.results.iter();
    hits.map(|hit| hit.node.content.clone()).collect()
}

/// Whether there was an update since the last call.
pub(crate) fn was_updated(updates: &mut Updates) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(updates.next()).poll(&mut context).is_ready()
}

fn store(folder: &Path) -> Store {
    Store::open(&folder.join("graph.db"), &[MIGRATIONS]).unwrap()
}

fn open(folder: &Path, vectorizer: Arc<dyn Vectorizer>, clock: &Arc<AtomicI64>) -> Graph {
    let clock = Arc::clone(clock);
    Graph::open(store(folder), vectorizer, move || {
        Timestamp::from_millisecond(clock.load(Ordering::Relaxed)).unwrap()
    })
}

/// Calls the tools of a graph.
pub(crate) struct Client {
    pub(crate) service: LocalService,
    peer: Arc<Peer>,
}

impl Client {
    pub(crate) fn of(graph: &Graph) -> Self {
        let builder = LocalService::builder("contextgraph-ghost", "1.0.0").unchanging();
        let service = context(builder, Names::Dotted, graph).build().unwrap();
        let info = Raw::parse(
            r#"{"name":"claude-code","version":"1.0.0"}"#.into(),
            &Limits::default(),
        );
        let peer = Peer::new(
            Revision::V2025_03_26,
            ClientCapabilities::none(),
            Some(info.unwrap()),
            Principal::anonymous(),
        );
        Self {
            service,
            peer: Arc::new(peer),
        }
    }

    /// Calls a tool; a failed tool is a result, too.
    pub(crate) async fn call(&self, method: &str, arguments: Value) -> Result<Value, Fault> {
        let params =
            serde_json::json!({"name": format!("context.{method}"), "arguments": arguments});
        self.send("tools/call", &params).await
    }

    /// Calls a tool, and returns its data.
    pub(crate) async fn data(&self, method: &str, arguments: Value) -> Value {
        let result = self.call(method, arguments).await.unwrap();
        assert_eq!(result["isError"], false, "{method}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let data = result["structuredContent"].clone();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            data,
            "{method}"
        );
        data
    }

    /// Calls a tool that fails with `isError`; returns the error text.
    pub(crate) async fn failure(&self, method: &str, arguments: Value) -> String {
        let result = self.call(method, arguments).await.unwrap();
        assert_eq!(result["isError"], true, "{method}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<Value, Fault> {
        self.send("resources/read", &serde_json::json!({"uri": uri}))
            .await
    }

    pub(crate) async fn subscribe(&self, uri: &str) -> Updates {
        self.service.subscribe(&self.peer, uri).await.unwrap()
    }

    async fn send(&self, method: &'static str, params: &Value) -> Result<Value, Fault> {
        let limits = Limits::default();
        let params = Raw::parse(params.to_string().into(), &limits).unwrap();
        let (events, _receiver) = EventSender::channel(Arc::clone(&self.peer), false, None);
        let call = Call::new(
            method,
            Object::parse(&params).unwrap(),
            events,
            CancellationToken::new(),
        );
        Ok(self.service.call(call).await?.decode().unwrap())
    }
}
