//! The six tools with which a model lists, reads and watches the resources of servers (S001-17…23).
//!
//! `ListMcpResources`, `ReadMcpResource`, `SubscribeMcpResource`, `UnsubscribeMcpResource`,
//! `SubscribePolling` and `UnsubscribePolling` are tools of the hub itself, shown without a prefix.
//! They need no permission (S001-58). Polling a tool needs the permission for that tool (C27): the
//! user is asked when the subscription is made. A tool that has been denied or changed since is not
//! called again.
//!
//! # How changes arrive
//!
//! A model reads tool results and nothing else, so changes are reported in tool results. A change
//! is stored with its subscription, and reaches the subscriber in two ways:
//!
//! - The result of the next tool call of the same client has one more text block: what changed, the
//!   reason given for the subscription, and where to read more. Results with structured content are
//!   not changed, because a client may show only that part; the change is reported with the next
//!   result.
//! - Every subscription is a resource, `subscription://ID`, with the number of changes since it was
//!   read and, if it is polled, the current value. A client may subscribe to that resource, and is
//!   notified of each change at once.
//!
//! The call that subscribes is answered at once. A call that stayed open to stream changes would
//! keep the model waiting for a tool that never ends.
//!
//! Changes that come faster than they are read are counted and reported as one. A subscription ends
//! with its client, when it is cancelled, or after repeated failures, which are reported as well.
//! Over HTTP of the stateless era a client does not disconnect visibly. There a subscription
//! expires when it was neither read nor watched for some time, and it is read by its id only,
//! because the next call cannot be attributed to the same client.

mod arguments;
mod contents;
mod poll;
mod registry;
mod subscription;
mod tools;
mod watch;

use std::sync::Arc;

use plexus_mcp_core::{
    Boxed, BuildError, Call, Catalogue, Fault, LocalService, Outcome, Peer, Service, Updates,
};
use tokio::sync::watch as watch_channel;

pub(crate) use registry::SubscriptionRegistry;

use crate::hub::Hub;
use crate::member::{Member, MemberKind, MemberSpec};

/// The name of the member that has these tools.
pub const NAME: &str = "plexus-hub";

/// The prefix of the URI of every subscription.
const SCHEME: &str = "subscription://";

/// The tools that manage the servers of `hub`, as a member of it.
///
/// # Errors
/// A tool cannot be offered; this is a mistake in this module.
pub fn member(hub: &Hub) -> Result<MemberSpec, BuildError> {
    let registry = Arc::clone(hub.registry());
    let tools = tools::service(&registry)?;
    let service = Arc::new(Management { tools, registry });
    let mut spec = MemberSpec::new(NAME, MemberKind::Local(service), [0; 32]);
    spec.plain_names = true;
    Ok(spec)
}

/// Whether `member` is the one that has these tools.
pub(crate) fn is_management(member: &Member) -> bool {
    &*member.name == NAME
}

/// The tools, and the subscriptions as resources.
struct Management {
    tools: LocalService,
    registry: Arc<SubscriptionRegistry>,
}

impl Service for Management {
    fn catalogue(&self) -> watch_channel::Receiver<Arc<Catalogue>> {
        self.tools.catalogue()
    }

    fn call(&self, mut call: Call) -> Boxed<Outcome> {
        arguments::accept_aliases(&mut call);
        self.tools.call(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let id = uri.strip_prefix(SCHEME);
        let subscription = id.and_then(|id| self.registry.find(peer, id));
        let updates = subscription
            .map(|subscription| subscription.updates())
            .ok_or_else(|| Fault::ResourceNotFound(uri.to_owned()));
        Box::pin(std::future::ready(updates))
    }
}
