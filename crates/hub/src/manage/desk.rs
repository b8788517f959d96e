//! All subscriptions of a hub's clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plexus_mcp::messages::ContentBlock;
use plexus_service::{Peer, Presence, ToolError};
use plexus_wire::{Object, Raw};
use tokio_util::task::AbortOnDropHandle;

use super::subscription::{Owner, Subscription, Target};
use crate::hub::{Hub, WeakHub};

/// The most subscriptions that one client may have.
const MAX_OF_ONE: usize = 32;
/// The most that there may be.
const MAX_OF_ALL: usize = 1024;

/// Where subscriptions are kept.
pub(crate) struct Desk {
    hub: WeakHub,
    /// In the order in which they began.
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    subscription: Arc<Subscription>,
    /// Watches for it.
    _work: AbortOnDropHandle<()>,
}

impl Desk {
    pub(crate) fn new(hub: WeakHub) -> Self {
        Self {
            hub,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    /// Puts what the owner does not know yet into a result of a tool.
    pub(crate) fn with_news(&self, presence: &Presence, result: Raw) -> Raw {
        let Some((mut edited, mut content)) = extensible(&result) else {
            return result;
        };
        let news: Vec<String> = {
            let kept = self.kept();
            let own = kept
                .iter()
                .map(|kept| &kept.subscription)
                .filter(|subscription| subscription.owner.presence.as_ref() == Some(presence));
            own.filter_map(|subscription| subscription.news()).collect()
        };
        if news.is_empty() {
            return result;
        }
        content.push(ContentBlock::text(format!("[plexus] {}", news.join("\n[plexus] "))).to_raw());
        if let Ok(content) = Raw::encode(&content) {
            edited.set("content", content);
        }
        edited.to_raw()
    }

    pub(super) fn hub(&self) -> Result<Hub, ToolError> {
        let gone = || ToolError::failed("the hub is gone");
        self.hub.upgrade().ok_or_else(gone)
    }

    /// The subscription that `peer` has to `target` already.
    pub(super) fn existing(&self, peer: &Peer, target: &Target) -> Option<String> {
        let kept = self.kept();
        let mut subscriptions = kept.iter().map(|kept| &kept.subscription);
        let same = subscriptions.find(|subscription| {
            subscription.owner.is(peer) && subscription.target == *target && !subscription.is_over()
        });
        same.map(|subscription| subscription.id.clone())
    }

    /// Whether `peer` may have one more.
    pub(super) fn has_room(&self, peer: &Peer) -> Result<(), String> {
        room(&self.kept(), peer)
    }

    /// Keeps a new subscription of `peer`. `work` watches for it until it says why not any longer.
    pub(super) fn keep<Work>(
        self: &Arc<Self>,
        peer: &Peer,
        target: Target,
        reason: Option<String>,
        work: impl FnOnce(Arc<Subscription>) -> Work,
    ) -> Result<String, ToolError>
    where
        Work: Future<Output = String> + Send + 'static,
    {
        let id = random_id()?;
        let owner = Owner::new(peer);
        let subscription = Arc::new(Subscription::new(id.clone(), owner, target, reason));
        let work = carry_out(
            Arc::downgrade(self),
            Arc::clone(&subscription),
            work(Arc::clone(&subscription)),
        );
        let hub = self.hub()?;
        let mut kept = self.kept();
        room(&kept, peer)?;
        kept.push(Kept {
            subscription,
            _work: AbortOnDropHandle::new(hub.spawn(work)),
        });
        Ok(id)
    }

    /// What `peer` knows by its id.
    pub(super) fn find(&self, peer: &Peer, id: &str) -> Option<Arc<Subscription>> {
        let kept = self.kept();
        let mut subscriptions = kept.iter().map(|kept| &kept.subscription);
        subscriptions
            .find(|subscription| subscription.id == id && subscription.owner.may_be(peer))
            .map(Arc::clone)
    }

    /// Ends the subscriptions of `peer` that are meant; whether there were any.
    pub(super) fn end(
        &self,
        peer: &Peer,
        id: Option<&str>,
        meant: impl Fn(&Target) -> bool,
    ) -> bool {
        let is_meant = |subscription: &Subscription| {
            let of_peer = match id {
                Some(id) => subscription.id == id && subscription.owner.may_be(peer),
                None => subscription.owner.is(peer),
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
        // What they watch is let go when nobody waits for us.
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

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches until there is a reason to stop, which is kept for the owner, as long as it is there.
async fn carry_out(
    desk: Weak<Desk>,
    subscription: Arc<Subscription>,
    work: impl Future<Output = String>,
) {
    tokio::select! {
        () = subscription.abandoned() => {}
        why = work => {
            subscription.ended(why);
            subscription.abandoned().await;
        }
    }
    if let Some(desk) = desk.upgrade() {
        desk.forget(&subscription.id);
    }
}

fn room(kept: &[Kept], peer: &Peer) -> Result<(), String> {
    if kept.len() >= MAX_OF_ALL {
        return Err(format!(
            "there are {MAX_OF_ALL} subscriptions already, and no more are kept; try again later"
        ));
    }
    let own = kept
        .iter()
        .filter(|kept| kept.subscription.owner.may_be(peer));
    if own.count() >= MAX_OF_ONE {
        return Err(format!(
            "you have {MAX_OF_ONE} subscriptions already; end one with UnsubscribeMcpResource or \
             UnsubscribePolling first"
        ));
    }
    Ok(())
}

/// A result of a tool and its blocks, if the model is sure to see one more of them.
fn extensible(result: &Raw) -> Option<(Object, Vec<Raw>)> {
    let result = Object::parse(result).ok()?;
    if result.contains("structuredContent") {
        return None;
    }
    let content = result.get("content")?.decode().ok()?;
    Some((result, content))
}

/// An id that nobody guesses.
fn random_id() -> Result<String, ToolError> {
    let half = || getrandom::u64().map_err(ToolError::failed);
    Ok(format!("{:016x}{:016x}", half()?, half()?))
}
