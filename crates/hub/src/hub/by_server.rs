//! The hub as a library: servers by their names (S004-13, S004-51 to S004-55).

use std::sync::Arc;

use futures_util::future::join_all;
use plexus_mcp_client::{Definition, Target};
use plexus_mcp_core::{
    Boxed, Call, CallToolResult, Catalogue, Client, Fault, Outcome, Peer, Resource, Service,
    Updates,
};
use plexus_mcp_protocol::messages::ReadResourceResult;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::{Hub, SetMembers, run_on_member};
use crate::member::{Member, MemberKind, MemberSpec};

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
        let member = self.member(name)?;
        let hub = self.clone();
        Ok(Client::new(OneServer { hub, member }))
    }

    /// Makes these the servers of the hub, and connects those that are new or changed. A server
    /// whose definition is the same keeps its connection (S004-53, C38). A server that cannot be
    /// connected is one of the `errors`; it stays in the hub, and a call tries again.
    ///
    /// Definitions are compared by their values; authorizers are not part of that.
    pub async fn set_servers<N: Into<String>>(
        &self,
        servers: impl IntoIterator<Item = (N, Definition)>,
    ) -> SetMembers {
        let specs = servers.into_iter().map(|(name, definition)| {
            let definition = definition.for_clients();
            let fingerprint = fingerprint(&definition);
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

/// One member of a hub as a service, with its own names.
struct OneServer {
    hub: Hub,
    member: Arc<Member>,
}

impl Service for OneServer {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.member.watch_catalogue()
    }

    fn settling(&self) -> Option<Boxed<()>> {
        let member = Arc::clone(&self.member);
        Some(Box::pin(async move { member.settled().await }))
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        let (hub, member) = (self.hub.clone(), Arc::clone(&self.member));
        Box::pin(async move {
            if let Some(refusal) = hub.refusal(&call, &member).await? {
                return Ok(CallToolResult::error(refusal).to_raw());
            }
            let gone = || Fault::Internal(format!("the server {:?} was removed", &*member.name));
            let entered = member.enter().ok_or_else(gone)?;
            run_on_member(&member, call, entered).await
        })
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        match self.member.service() {
            Ok(service) => service.subscribe(peer, uri),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }
}

/// A digest of everything in a definition that makes another connection.
fn fingerprint(definition: &Definition) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    };
    match &definition.target {
        Target::Stdio(program) => {
            add(b"stdio");
            add(program.command.as_bytes());
            add(format!("{:?}", (&program.args, &program.cwd, &program.env)).as_bytes());
        }
        Target::Http(target) | Target::Sse(target) => {
            add(match &definition.target {
                Target::Sse(_) => b"sse",
                _ => b"http",
            });
            add(target.url.to_string().as_bytes());
            for (name, value) in &target.headers {
                add(name.as_str().as_bytes());
                add(value.as_bytes());
            }
        }
        other => add(format!("{other:?}").as_bytes()),
    }
    let Definition {
        era,
        timeouts,
        serialize,
        limits,
        ..
    } = definition;
    add(format!("{:?}", (era, timeouts, serialize, limits)).as_bytes());
    digest.finalize().into()
}
