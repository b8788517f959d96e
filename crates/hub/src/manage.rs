//! The six tools with which a model lists, reads and watches what servers have (S001-17…23).
//!
//! `ListMcpResources`, `ReadMcpResource`, `SubscribeMcpResource`, `UnsubscribeMcpResource`,
//! `SubscribePolling` and `UnsubscribePolling` are tools of the hub itself, shown without a prefix.
//! They need no permission (S001-58), but to poll a tool needs that tool's (C27): it is asked for at
//! the subscription, and what has been denied or changed since is not called again.
//!
//! # How changes arrive
//!
//! A model reads results of tools and nothing else, so that is where it is told. A change is kept
//! with its subscription, and reaches its caller in two ways:
//!
//! - The next tool that the same client calls, whichever it is, has one more block of text in its
//!   result: what changed, for which reason it is watched, and where to read more. Results with
//!   structured content are left as they are, because a client may show nothing else of them; the
//!   news waits for the next.
//! - Every subscription is a resource, `subscription://ID`, with how often it changed since it was
//!   read and, if it is polled, what it is now. A client may subscribe to that by the protocol's own
//!   means, and is told of each change at once.
//!
//! The call that subscribes is answered at once. To keep it open and stream changes would keep the
//! model waiting for a tool that never ends.
//!
//! Changes that come faster than they are read count as one, with a number. A subscription ends
//! with its client, when it is told to, or after repeated failures, which are news as well. Over
//! HTTP of the stateless era nothing tells that a client is gone: there a subscription ends when
//! nobody has read or watched it for some time, and the next call cannot be known to be of the same
//! client, so it is read by its id only.

mod arguments;
mod contents;
mod desk;
mod poll;
mod subscription;
mod tools;
mod watch;

use std::sync::Arc;

use plexus_service::{
    Boxed, BuildError, Call, Catalogue, Fault, LocalService, Outcome, Peer, Service, Updates,
};
use tokio::sync::watch as watch_channel;

pub(crate) use desk::Desk;

use crate::hub::Hub;
use crate::member::{Member, MemberKind, MemberSpec};

/// The name of the member that has the tools.
pub const NAME: &str = "plexus-hub";

/// How the URI of every subscription begins.
const SCHEME: &str = "subscription://";

/// The tools that manage the servers of `hub`, as a member of it.
///
/// # Errors
/// A tool cannot be offered; this is a mistake in this module.
pub fn member(hub: &Hub) -> Result<MemberSpec, BuildError> {
    let desk = Arc::clone(hub.desk());
    let tools = tools::service(&desk)?;
    let service = Arc::new(Management { tools, desk });
    let mut spec = MemberSpec::new(NAME, MemberKind::Local(service), [0; 32]);
    spec.plain_names = true;
    Ok(spec)
}

/// Whether `member` is the one that has the tools.
pub(crate) fn is_it(member: &Member) -> bool {
    &*member.name == NAME
}

/// The tools, and the subscriptions as resources.
struct Management {
    tools: LocalService,
    desk: Arc<Desk>,
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
        let subscription = id.and_then(|id| self.desk.find(peer, id));
        let updates = subscription
            .map(|subscription| subscription.updates())
            .ok_or_else(|| Fault::ResourceNotFound(uri.to_owned()));
        Box::pin(std::future::ready(updates))
    }
}
