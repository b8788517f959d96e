//! A caller of the built-in tools, for tests.

use std::sync::Arc;

use plexus_mcp_core::{Call, EventReceiver, EventSender, Fault, Peer, Principal, Raw, Service};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{AliasedService, Data, DataPaths, Names, Servers};

/// Calls tools, and asks for progress notifications.
pub(crate) struct Caller {
    service: AliasedService,
    /// The data directory, which is removed with the caller.
    _folder: TempDir,
    sender: EventSender,
    pub(crate) events: EventReceiver,
}

impl Caller {
    /// Calls the built-in service with these names.
    pub(crate) fn of(names: Names) -> Self {
        Self::with(names, &Servers::default())
    }

    /// Like [`Self::of`], with these servers for `health.check`.
    pub(crate) fn with(names: Names, servers: &Servers) -> Self {
        let peer = Peer::new(
            Revision::V2025_11_25,
            ClientCapabilities::none(),
            None,
            Principal::anonymous(),
        );
        let (sender, events) = EventSender::channel(Arc::new(peer), true, None);
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&DataPaths::in_directory(folder.path())).unwrap();
        let service = crate::service(names, "1.2.3", &data, servers).unwrap();
        Self {
            service,
            _folder: folder,
            sender,
            events,
        }
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> Result<Value, Fault> {
        self.call_with(&format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
            .await
    }

    /// Sends `tools/call` with these parameters.
    pub(crate) async fn call_with(&self, params: &str) -> Result<Value, Fault> {
        let params = Raw::parse(params.to_owned().into(), &Limits::default()).unwrap();
        let params = Object::parse(&params).unwrap();
        let call = Call::new(
            "tools/call",
            params,
            self.sender.clone(),
            CancellationToken::new(),
        );
        let result = self.service.call(call).await?;
        Ok(result.decode().unwrap())
    }
}

/// The text of the first block of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
