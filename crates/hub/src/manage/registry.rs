//! The registry of all subscriptions of a hub's clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plexus_mcp_core::{Peer, Presence, ToolError};
use plexus_mcp_protocol::messages::ContentBlock;
use plexus_mcp_wire::{Object, Raw};
use tokio_util::task::AbortOnDropHandle;

use super::subscription::{ManagedSubscription, Subscriber, Target};
use crate::hub::{Hub, WeakHub};

/// The most subscriptions that one client may have.
const MAX_SUBSCRIPTIONS_PER_CLIENT: usize = 32;
/// The most subscriptions of all clients.
const MAX_SUBSCRIPTIONS: usize = 1024;

/// The subscriptions of all clients, with limits.
pub(crate) struct SubscriptionRegistry {
    hub: WeakHub,
    /// In the order of their creation.
    kept: Mutex<Vec<RegisteredSubscription>>,
}

struct RegisteredSubscription {
    subscription: Arc<ManagedSubscription>,
    /// The task that watches for changes.
    _work: AbortOnDropHandle<()>,
}

impl SubscriptionRegistry {
    pub(crate) fn new(hub: WeakHub) -> Self {
        Self {
            hub,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    /// Adds the unreported changes of the caller's subscriptions to a tool result.
    pub(crate) fn with_news(&self, presence: &Presence, result: Raw) -> Raw {
        let Some((mut edited, mut content)) = extensible(&result) else {
            return result;
        };
        let news = self.take_news(presence);
        if news.is_empty() {
            return result;
        }
        content.push(ContentBlock::text(format!("[plexus] {}", news.join("\n[plexus] "))).to_raw());
        if let Ok(content) = Raw::encode(&content) {
            edited.set("content", content);
        }
        edited.to_raw()
    }

    /// The unreported changes of the caller's subscriptions, which are reported with this.
    pub(crate) fn take_news(&self, presence: &Presence) -> Vec<String> {
        let kept = self.kept();
        let own = kept
            .iter()
            .map(|kept| &kept.subscription)
            .filter(|subscription| subscription.subscriber.presence.as_ref() == Some(presence));
        own.filter_map(|subscription| subscription.news()).collect()
    }

    pub(super) fn hub(&self) -> Result<Hub, ToolError> {
        let gone = || ToolError::failed("the hub is gone");
        self.hub.upgrade().ok_or_else(gone)
    }

    /// The existing subscription of `peer` to `target`.
    pub(super) fn existing(&self, peer: &Peer, target: &Target) -> Option<String> {
        let kept = self.kept();
        let mut subscriptions = kept.iter().map(|kept| &kept.subscription);
        let same = subscriptions.find(|subscription| {
            subscription.subscriber.is(peer)
                && subscription.target == *target
                && !subscription.is_over()
        });
        same.map(|subscription| subscription.id.clone())
    }

    /// Fails if `peer` may have no further subscription.
    pub(super) fn has_room(&self, peer: &Peer) -> Result<(), String> {
        room(&self.kept(), peer)
    }

    /// Stores a new subscription of `peer`. `work` watches for changes until it returns why it
    /// stopped.
    pub(super) fn keep<Work>(
        self: &Arc<Self>,
        peer: &Peer,
        target: Target,
        reason: Option<String>,
        work: impl FnOnce(Arc<ManagedSubscription>) -> Work,
    ) -> Result<String, ToolError>
    where
        Work: Future<Output = String> + Send + 'static,
    {
        let id = random_id()?;
        let subscriber = Subscriber::new(peer);
        let subscription = Arc::new(ManagedSubscription::new(
            id.clone(),
            subscriber,
            target,
            reason,
        ));
        let work = carry_out(
            Arc::downgrade(self),
            Arc::clone(&subscription),
            work(Arc::clone(&subscription)),
        );
        let hub = self.hub()?;
        let mut kept = self.kept();
        room(&kept, peer)?;
        kept.push(RegisteredSubscription {
            subscription,
            _work: AbortOnDropHandle::new(hub.spawn(work)),
        });
        Ok(id)
    }

    /// The subscription of `peer` with this id.
    pub(super) fn find(&self, peer: &Peer, id: &str) -> Option<Arc<ManagedSubscription>> {
        let kept = self.kept();
        let mut subscriptions = kept.iter().map(|kept| &kept.subscription);
        subscriptions
            .find(|subscription| subscription.id == id && subscription.subscriber.may_be(peer))
            .map(Arc::clone)
    }

    /// Ends the matching subscriptions of `peer`; returns whether there were any.
    pub(super) fn end(
        &self,
        peer: &Peer,
        id: Option<&str>,
        meant: impl Fn(&Target) -> bool,
    ) -> bool {
        let is_meant = |subscription: &ManagedSubscription| {
            let of_peer = match id {
                Some(id) => subscription.id == id && subscription.subscriber.may_be(peer),
                None => subscription.subscriber.is(peer),
            };
            of_peer && meant(&subscription.target)
        };
        let mut kept = self.kept();
        let before = kept.len();
        let ended: Vec<_> = kept
            .extract_if(.., |kept| is_meant(&kept.subscription))
            .collect();
        let any = kept.len() < before;
        drop(kept);
        // Dropped after the lock is released.
        drop(ended);
        any
    }

    pub(super) fn forget(&self, id: &str) {
        let mut kept = self.kept();
        let forgotten: Vec<_> = kept
            .extract_if(.., |kept| kept.subscription.id == id)
            .collect();
        drop(kept);
        drop(forgotten);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<RegisteredSubscription>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the work of a subscription until it stops or the subscriber disconnects, and records the reason.
async fn carry_out(
    registry: Weak<SubscriptionRegistry>,
    subscription: Arc<ManagedSubscription>,
    work: impl Future<Output = String>,
) {
    tokio::select! {
        () = subscription.abandoned() => {}
        why = work => {
            subscription.ended(why);
            subscription.abandoned().await;
        }
    }
    if let Some(registry) = registry.upgrade() {
        registry.forget(&subscription.id);
    }
}

fn room(kept: &[RegisteredSubscription], peer: &Peer) -> Result<(), String> {
    if kept.len() >= MAX_SUBSCRIPTIONS {
        return Err(format!(
            "there are {MAX_SUBSCRIPTIONS} subscriptions already, which is the limit; try again later"
        ));
    }
    let own = kept
        .iter()
        .filter(|kept| kept.subscription.subscriber.may_be(peer));
    if own.count() >= MAX_SUBSCRIPTIONS_PER_CLIENT {
        return Err(format!(
            "you have {MAX_SUBSCRIPTIONS_PER_CLIENT} subscriptions already; end one with UnsubscribeMcpResource or \
             UnsubscribePolling first"
        ));
    }
    Ok(())
}

/// A tool result and its content blocks, if a client is sure to show one more block.
fn extensible(result: &Raw) -> Option<(Object, Vec<Raw>)> {
    let result = Object::parse(result).ok()?;
    if result.contains("structuredContent") {
        return None;
    }
    let content = result.get("content")?.decode().ok()?;
    Some((result, content))
}

/// An id that cannot be guessed.
fn random_id() -> Result<String, ToolError> {
    let half = || getrandom::u64().map_err(ToolError::failed);
    Ok(format!("{:016x}{:016x}", half()?, half()?))
}
