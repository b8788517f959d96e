//! A service with cones in a temporary directory, and a client that calls its tools.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use plexus_mcp_agents::cone::{self, Cones, cone};
use plexus_mcp_agents::model::Models;
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::arbor::{self, Trees, arbor};
use plexus_mcp_core::{
    Boxed, Call, EventReceiver, EventSender, Fault, LocalService, Object, Outcome, Peer, Principal,
    Raw, Section, Service, Updates,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_store::Store;
use plexus_testkit::model::{Dialect, ScriptedModel};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The API key, which no output may contain.
pub(crate) const KEY: &str = "sk-test-0123456789";

/// A client of a service with cones and their trees.
pub(crate) struct Client {
    folder: Arc<TempDir>,
    pub(crate) store: Store,
    pub(crate) service: LocalService,
    peer: Arc<Peer>,
}

impl Client {
    /// Creates cones that use `model`, with keys for both APIs.
    pub(crate) fn of(model: &ScriptedModel) -> Self {
        Self::with(models(model), &json!({}))
    }

    /// Creates cones that use these models, for a client with these capabilities.
    pub(crate) fn with(models: Models, capabilities: &Value) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::in_folder(folder, models, capabilities)
    }

    /// Starts a second service on the same store, like another process.
    pub(crate) fn another(&self, models: Models) -> Self {
        Self::in_folder(Arc::clone(&self.folder), models, &json!({}))
    }

    fn in_folder(folder: Arc<TempDir>, models: Models, capabilities: &Value) -> Self {
        let path = folder.path().join("plexus.db");
        let store = Store::open(&path, &[arbor::MIGRATIONS, cone::MIGRATIONS]).unwrap();
        let trees = Trees::new(store.clone());
        let cones = Cones::new(trees.clone(), models);
        let builder = LocalService::builder("substrate", "0.1.0");
        let builder = arbor(builder, Names::Dotted, &trees);
        let service = cone(builder, Names::Dotted, &cones).build().unwrap();
        let capabilities = Raw::encode(capabilities).unwrap();
        let capabilities: ClientCapabilities = capabilities.decode().unwrap();
        let peer = Peer::new(
            Revision::V2025_11_25,
            capabilities,
            None,
            Principal::anonymous(),
        );
        Self {
            folder,
            store,
            service,
            peer: Arc::new(peer),
        }
    }

    /// Starts a request; returns its future and its events.
    pub(crate) fn begin(&self, method: &str, params: &Value) -> (Boxed<Outcome>, EventReceiver) {
        let (sender, events) = EventSender::channel(Arc::clone(&self.peer), true, None);
        let params = Raw::encode(params).unwrap();
        let call = Call::new(
            method,
            Object::parse(&params).unwrap(),
            sender,
            CancellationToken::new(),
        );
        (self.service.call(call), events)
    }

    pub(crate) fn begin_chat(&self, cone: &str, prompt: &str) -> (Boxed<Outcome>, EventReceiver) {
        let arguments = json!({ "identifier": cone, "prompt": prompt });
        let params = json!({ "name": "cone.chat", "arguments": arguments });
        self.begin("tools/call", &params)
    }

    pub(crate) async fn request(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        let (call, mut events) = self.begin(method, params);
        let reading = async { while events.recv().await.is_some() {} };
        let (result, ()) = tokio::join!(call, reading);
        Ok(result?.decode().unwrap())
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.request("tools/call", &params).await.unwrap()
    }

    /// Calls a tool, and returns its structured result.
    pub(crate) async fn done(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails, and returns the error text: the last block of its result.
    pub(crate) async fn failed(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(!result.to_string().contains(KEY), "a secret: {result}");
        let blocks = result["content"].as_array().unwrap();
        string(&blocks.last().unwrap()["text"])
    }

    /// Creates a cone called `name` with this model.
    pub(crate) async fn create(&self, name: &str, model: &str) -> Value {
        let arguments = json!({ "name": name, "model_id": model });
        self.done("cone.create", arguments).await
    }

    pub(crate) async fn chat(&self, cone: &str, prompt: &str) -> Value {
        let arguments = json!({ "identifier": cone, "prompt": prompt });
        self.call("cone.chat", arguments).await
    }

    pub(crate) async fn chat_failed(&self, cone: &str, prompt: &str) -> String {
        let arguments = json!({ "identifier": cone, "prompt": prompt });
        self.failed("cone.chat", arguments).await
    }

    pub(crate) async fn cone(&self, identifier: &str) -> Value {
        let got = self
            .done("cone.get", json!({ "identifier": identifier }))
            .await;
        got["cone"].clone()
    }

    /// The whole tree of a cone, for comparison with a later state.
    pub(crate) async fn tree(&self, cone: &str) -> Value {
        let tree = self.cone(cone).await["tree_id"].clone();
        self.done("arbor.tree_get", json!({ "tree_id": tree }))
            .await
    }

    /// The roles and texts from the root of a cone's tree to its head.
    pub(crate) async fn memory(&self, cone: &str) -> Vec<(String, String)> {
        let cone = self.cone(cone).await;
        let of = json!({ "tree_id": cone["tree_id"], "node_id": cone["head"] });
        let path = self.done("arbor.context_get_path", of).await;
        let nodes = path["nodes"].as_array().unwrap().iter().skip(1);
        nodes
            .map(|node| (string(&node["role"]), string(&node["content"])))
            .collect()
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

/// Models at a scripted server, with keys and a short timeout.
pub(crate) fn models(model: &ScriptedModel) -> Models {
    let models = Models::from_environment(|name| match name {
        "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" => Some(KEY.into()),
        "ANTHROPIC_BASE_URL" => Some(model.base_url(Dialect::Anthropic).into()),
        "OPENAI_BASE_URL" => Some(model.base_url(Dialect::OpenAi).into()),
        _ => None,
    });
    models.with_response_timeout(Duration::from_secs(20))
}

/// The id of a model of this dialect.
pub(crate) fn model_id(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic/scripted-large",
        Dialect::OpenAi => "openai/scripted-large",
    }
}

pub(crate) fn string(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no string: {value}"))
        .to_owned()
}

/// Whether there was an update since the last call.
pub(crate) fn has_news(updates: &mut Updates) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(updates.next()).poll(&mut context).is_ready()
}

pub(crate) fn said(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs.iter();
    owned
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}
