//! Trees in a temporary directory, with a clock that tests advance, and a client for their tools.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Waker};

use jiff::Timestamp;
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::arbor::{MIGRATIONS, Trees, arbor};
use plexus_mcp_core::{
    Call, EventSender, Fault, LocalService, Object, Peer, Principal, Raw, Section, Service, Updates,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const DAY: i64 = 24 * 3_600_000;

/// A client of a service that has only trees.
pub(crate) struct Client {
    pub(crate) folder: Arc<TempDir>,
    pub(crate) store: Store,
    pub(crate) trees: Trees,
    pub(crate) service: LocalService,
    clock: Arc<AtomicI64>,
    peer: Arc<Peer>,
}

impl Client {
    pub(crate) fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        // 2023-11-14T22:13:20Z
        Self::in_folder(folder, Arc::new(AtomicI64::new(1_700_000_000_000)))
    }

    /// A second service on the same file, which stands for another process.
    pub(crate) fn another(&self) -> Self {
        Self::in_folder(Arc::clone(&self.folder), Arc::clone(&self.clock))
    }

    fn in_folder(folder: Arc<TempDir>, clock: Arc<AtomicI64>) -> Self {
        let store = Store::open(&folder.path().join("plexus.db"), &[MIGRATIONS]).unwrap();
        let time = Arc::clone(&clock);
        let now = move || Timestamp::from_millisecond(time.load(Ordering::Relaxed)).unwrap();
        let trees = Trees::with_clock(store.clone(), Arc::new(now));
        let builder = LocalService::builder("substrate", "0.1.0");
        let service = arbor(builder, Names::Dotted, &trees).build().unwrap();
        let peer = Peer::new(
            Revision::V2025_11_25,
            ClientCapabilities::none(),
            None,
            Principal::anonymous(),
        );
        Self {
            folder,
            store,
            trees,
            service,
            clock,
            peer: Arc::new(peer),
        }
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds, Ordering::Relaxed);
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, Fault> {
        let (sender, _events) = EventSender::channel(Arc::clone(&self.peer), false, None);
        let params = Raw::encode(&params).unwrap();
        let call = Call::new(
            method,
            Object::parse(&params).unwrap(),
            sender,
            CancellationToken::new(),
        );
        let result = self.service.call(call).await?;
        Ok(result.decode().unwrap())
    }

    pub(crate) async fn call(&self, method: &str, arguments: Value) -> Result<Value, Fault> {
        let name = format!("arbor.{method}");
        let params = json!({ "name": name, "arguments": arguments });
        self.request("tools/call", params).await
    }

    /// Makes a call that succeeds. Checks that text and structured content are equal, and returns
    /// them.
    pub(crate) async fn done(&self, method: &str, arguments: Value) -> Value {
        let result = self.call(method, arguments).await.unwrap();
        assert_eq!(result["isError"], false, "{method}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let read: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read, result["structuredContent"]);
        read
    }

    /// Makes a call that fails with `isError`; returns the error text.
    pub(crate) async fn failed(&self, method: &str, arguments: Value) -> String {
        let result = self.call(method, arguments).await.unwrap();
        assert_eq!(result["isError"], true, "{method}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn plant(&self) -> String {
        let tree = self.done("tree_create", json!({ "owner_id": "ann" })).await;
        string(&tree["tree_id"])
    }

    /// Adds a text below `parent`, or to the root.
    pub(crate) async fn grow(&self, tree: &str, parent: Option<&str>, content: &str) -> String {
        let arguments = json!({ "tree_id": tree, "parent": parent, "content": content });
        string(&self.done("node_create_text", arguments).await["node_id"])
    }

    pub(crate) async fn root(&self, tree: &str) -> String {
        let tree = self
            .done("tree_get_skeleton", json!({ "tree_id": tree }))
            .await;
        string(&tree["tree"]["root"])
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<Value, Fault> {
        let result = self
            .request("resources/read", json!({ "uri": uri }))
            .await?;
        let contents = &result["contents"][0];
        assert_eq!(
            (&contents["uri"], &contents["mimeType"]),
            (&json!(uri), &json!("application/json"))
        );
        Ok(serde_json::from_str(contents["text"].as_str().unwrap()).unwrap())
    }

    pub(crate) async fn watch(&self, uri: &str) -> Updates {
        self.service.subscribe(&self.peer, uri).await.unwrap()
    }

    pub(crate) fn definitions(&self, section: Section) -> Vec<Value> {
        let catalogue = self.service.catalogue();
        let catalogue = catalogue.borrow();
        let entries = catalogue.list(section).entries().iter();
        entries
            .map(|entry| entry.definition.decode().unwrap())
            .collect()
    }
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Whether there was an update since the last call.
pub(crate) fn has_news(updates: &mut Updates) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(updates.next()).poll(&mut context).is_ready()
}
