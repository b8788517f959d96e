//! The hub as a library: servers by their names (S004-13, S004-51 to S004-55).

use std::sync::Arc;

use futures_util::future::join_all;
use plexus_mcp_client::Definition;
use plexus_mcp_core::{
    Boxed, Call, CallToolResult, Catalogue, Client, Fault, Outcome, Peer, Resource, Service,
    Updates,
};
use plexus_mcp_protocol::messages::ReadResourceResult;
use serde::Serialize;
use tokio::sync::watch;

use super::{Hub, SetMembers, run_on_member};
use crate::member::{Member, MemberKind, MemberSpec, nothing};

impl Hub {
    /// A typed client of all servers together, with the names that the hub gives their tools.
    pub fn client(&self) -> Client {
        Client::new(self.clone())
    }

    /// A typed client of one server, with the server's own names. The hub's policy applies to its
    /// calls as to all others.
    ///
    /// # Errors
    /// There is no such server.
    pub fn server_client(&self, name: &str) -> Result<Client, Fault> {
        let name = Arc::clone(&self.member(name)?.name);
        let hub = self.clone();
        Ok(Client::new(OneServer { hub, name }))
    }

    /// Makes these the servers of the hub, and connects those that are new or changed. A server
    /// whose definition is the same keeps its connection (S004-53, C38). A server that cannot be
    /// connected is one of the `errors`; it stays in the hub, and a call tries again.
    ///
    /// Definitions are compared by their [digests](Definition::digest), which leave out authorizers
    /// and identities.
    pub async fn set_servers<N: Into<String>>(
        &self,
        servers: impl IntoIterator<Item = (N, Definition)>,
    ) -> SetMembers {
        let specs = servers.into_iter().map(|(name, definition)| {
            let fingerprint = definition.digest();
            let kind = MemberKind::Upstream(Box::new(definition));
            MemberSpec::new(name, kind, fingerprint)
        });
        let mut changes = self.set_members(specs.collect()).await;
        let changed = changes.added.iter().chain(&changes.updated);
        let connecting = changed.map(async |name| (name.clone(), self.connect(name).await));
        for (name, connected) in join_all(connecting).await {
            if let Err(fault) = connected {
                changes.errors.insert(name, fault.to_string());
            }
        }
        changes
    }

    /// Calls a tool of one server, by the server's own name for it (S004-55).
    ///
    /// # Errors
    /// There is no such server, or the request failed.
    pub async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, Fault> {
        self.server_client(server)?.call_tool(tool, arguments).await
    }

    /// The resources of one server, or of all if none is named (S004-55).
    ///
    /// # Errors
    /// There is no such server, or it cannot be connected.
    pub async fn list_resources(&self, server: Option<&str>) -> Result<Vec<Resource>, Fault> {
        match server {
            Some(name) => {
                self.connect(name).await?;
                self.server_client(name)?.list_resources().await
            }
            None => self.client().list_resources().await,
        }
    }

    /// Reads a resource of one server, by the server's own URI (S004-55).
    ///
    /// # Errors
    /// There is no such server, or the request failed.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ReadResourceResult, Fault> {
        self.server_client(server)?.read_resource(uri).await
    }
}

/// One server of a hub as a service, with its own names. When its definition changes, the service goes
/// on with the new one.
struct OneServer {
    hub: Hub,
    name: Arc<str>,
}

impl OneServer {
    fn member(&self) -> Result<Arc<Member>, Fault> {
        self.hub.member(&self.name)
    }
}

impl Service for OneServer {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        match self.member() {
            Ok(member) => member.watch_catalogue(),
            Err(_removed) => watch::channel(Arc::new(nothing())).1,
        }
    }

    fn settling(&self) -> Option<Boxed<()>> {
        let member = self.member().ok()?;
        Some(Box::pin(async move { member.settled().await }))
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        let (hub, name) = (self.hub.clone(), Arc::clone(&self.name));
        Box::pin(async move {
            loop {
                let member = hub.member(&name)?;
                if let Err(refusal) = hub.permit(&call, &member).await? {
                    return Ok(CallToolResult::error(refusal).to_raw());
                }
                // If it was replaced in between, nothing was sent.
                if let Some(admitted) = member.admit().await? {
                    return run_on_member(&member, call, admitted).await;
                }
            }
        })
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        match self.member().and_then(|member| member.service()) {
            Ok(service) => service.subscribe(peer, uri),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }
}
