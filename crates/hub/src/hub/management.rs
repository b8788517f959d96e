//! Access to the hub for the tools that manage servers.

use std::sync::{Arc, Weak};

use plexus_mcp_core::{Call, Fault, Outcome, Peer, Presence};

use super::{Hub, Inner};
use crate::manage::SubscriptionRegistry;
use crate::member::Member;
use crate::routes::Owner;

/// A weak reference to a hub.
pub(crate) struct WeakHub(Weak<Inner>);

impl WeakHub {
    pub(crate) fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(|inner| Hub { inner })
    }
}

impl Hub {
    /// The registry of subscriptions.
    pub(crate) fn registry(&self) -> &Arc<SubscriptionRegistry> {
        let new = || {
            Arc::new(SubscriptionRegistry::new(WeakHub(Arc::downgrade(
                &self.inner,
            ))))
        };
        self.inner.registry.get_or_init(new)
    }

    /// What the caller's subscriptions and polls found since it was last reported. A host puts it
    /// before its next request to the model; clients get it in their next tool result.
    pub fn take_news(&self, presence: &Presence) -> Vec<String> {
        match self.inner.registry.get() {
            Some(registry) => registry.take_news(presence),
            None => Vec::new(),
        }
    }

    /// Runs a call on `member`, whose parameters already have the member's own names.
    pub(crate) async fn run_on_member(&self, member: &Member, call: Call) -> Outcome {
        let changed =
            || Fault::Internal(format!("the server {:?} is being changed", &*member.name));
        let admitted = member.admit().await?.ok_or_else(changed)?;
        super::run_on_member(member, call, admitted).await
    }

    /// The enabled members.
    pub(crate) fn servers(&self) -> Vec<Arc<Member>> {
        let mut servers = self.members();
        servers.retain(|member| member.is_enabled());
        servers
    }

    /// The member of this name, or a text for the caller why there is none.
    pub(crate) fn server(&self, name: &str) -> Result<Arc<Member>, String> {
        if let Ok(member) = self.member(name) {
            return if member.is_enabled() {
                Ok(member)
            } else {
                Err(member.disabled_error())
            };
        }
        let known: Vec<_> = self
            .servers()
            .iter()
            .map(|member| format!("{:?}", &*member.name))
            .collect();
        Err(format!(
            "there is no server {name:?}; there are {}",
            known.join(", ")
        ))
    }

    /// The URI by which `server` knows a resource. `uri` may be the one that clients see.
    pub(crate) fn own_uri(&self, server: &str, uri: &str) -> String {
        match self.routes().resource(uri) {
            Some(owner) if &*owner.member == server => owner.key.to_string(),
            _ => uri.to_owned(),
        }
    }

    /// The name by which `server` knows a tool, if `peer` sees it. `tool` may be the name that
    /// clients see.
    pub(crate) fn own_tool(&self, peer: &Peer, server: &Arc<str>, tool: &str) -> Option<String> {
        let routes = self.routes();
        let by_own_name = routes.shown_tool(server, tool).map(|_shown| Owner {
            member: Arc::clone(server),
            key: tool.into(),
        });
        let owner = by_own_name.or_else(|| {
            let named = routes.tool(tool).cloned();
            named.filter(|owner| owner.member == *server)
        })?;
        let shows = self.inner.clients.shows(peer, &routes, &owner);
        shows.then(|| owner.key.to_string())
    }

    pub(crate) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        self.inner.tasks.spawn(work)
    }
}
