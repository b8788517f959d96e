//! Keeps listening to a stateless server: to changes of its lists, and to what is watched.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp::messages::SubscriptionFilter;
use plexus_mcp::{Fault, method};
use plexus_service::Section;
use plexus_wire::{Notification, Object};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Live;
use crate::rpc::{InFlight, Next, RpcFailure, Traits, Update};
use crate::stamp::{self, StatelessMeta};

/// How long a lost stream waits before it is taken up again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// A stream that lasted so long was a good one.
const LASTING: Duration = Duration::from_secs(30);

/// A stream that the server acknowledged.
struct Stream {
    messages: InFlight,
    uris: Vec<Arc<str>>,
    since: Instant,
}

impl Live {
    /// Listens, with one stream, to everything that matters. What it is to bring cannot be changed,
    /// so another takes its place when more or less is wanted, before it is let go of
    /// (TRANSLATION §6.6). `first` is dropped when the first is open, or is known not to open.
    pub(super) async fn keep_listening(self: Arc<Self>, first: oneshot::Sender<()>) {
        let linger = self.definition.timeouts.linger;
        let mut first = Some(first);
        let mut changes = self.watched.changes();
        let mut stream: Option<Stream> = None;
        let mut is_resumed = false;
        let mut pause = PAUSE;
        loop {
            let (wanted, next) = self.watched.wanted(linger);
            let filter = self.filter(&wanted);
            if filter == SubscriptionFilter::default() {
                stream = None;
            } else if stream.as_ref().is_none_or(|stream| stream.uris != wanted) {
                match self.open(&filter, stream.as_mut()).await {
                    Ok((messages, honoured)) => {
                        let uris = self.settle_watched(wanted, &honoured, stream.as_ref());
                        // Lists that were fetched before may be old already.
                        if is_resumed || first.as_ref().is_some_and(oneshot::Sender::is_closed) {
                            self.lists_may_have_changed();
                        }
                        is_resumed = false;
                        stream = Some(Stream {
                            messages,
                            uris,
                            since: Instant::now(),
                        });
                        // What was refused may have been all there was.
                        continue;
                    }
                    Err(_) if self.own.rpc.is_over() => return,
                    Err(failure) => {
                        let had = stream.take();
                        let had = had.map(|stream| stream.uris).unwrap_or_default();
                        let fault = Self::fault(failure);
                        for uri in wanted.iter().filter(|uri| !had.contains(uri)) {
                            self.watched.refused(uri, fault.clone());
                        }
                        drop(first.take());
                        is_resumed = true;
                        sleep(pause).await;
                        pause = (pause * 2).min(MAX_PAUSE);
                        continue;
                    }
                }
            }
            drop(first.take());
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                next = next_of(&mut stream) => match next {
                    Next::Update(Update::Notification(notification)) => self.notified(&notification),
                    Next::Update(Update::Request(_)) => {}
                    Next::Answer(_) => {
                        let lasted = stream.take().map(|stream| stream.since.elapsed());
                        if lasted.is_some_and(|lasted| lasted >= LASTING) {
                            pause = PAUSE;
                        }
                        is_resumed = true;
                        sleep(pause).await;
                        pause = (pause * 2).min(MAX_PAUSE);
                    }
                },
                () = sleep_until(next.unwrap_or_else(super::far_away)), if next.is_some() => {}
            }
        }
    }

    /// Opens a stream, and waits until the server has said what it will bring. The one before it is
    /// heeded meanwhile.
    async fn open(
        &self,
        filter: &SubscriptionFilter,
        mut before: Option<&mut Stream>,
    ) -> Result<(InFlight, SubscriptionFilter), RpcFailure> {
        let patience = self.definition.timeouts.request;
        let opening = async {
            let mut messages = self.listen(filter).await?;
            loop {
                tokio::select! {
                    next = messages.next() => match next {
                        Next::Update(Update::Notification(notification)) => {
                            if let Some(honoured) = acknowledged(&notification) {
                                return Ok((messages, honoured));
                            }
                            self.notified(&notification);
                        }
                        Next::Update(Update::Request(_)) => {}
                        Next::Answer(Err(failure)) => return Err(failure),
                        Next::Answer(Ok(_)) => return Ok((messages, SubscriptionFilter::default())),
                    },
                    next = next_of_before(&mut before) => {
                        if let Next::Update(Update::Notification(notification)) = &next {
                            self.notified(notification);
                        } else if let Next::Answer(_) = next {
                            before = None;
                        }
                    }
                }
            }
        };
        match timeout(patience, opening).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(RpcFailure::late(method::SUBSCRIPTIONS_LISTEN, patience)),
        }
    }

    async fn listen(&self, filter: &SubscriptionFilter) -> Result<InFlight, RpcFailure> {
        let revision = self.facts.revision;
        let own = StatelessMeta {
            revision,
            capabilities: &self.definition.capabilities,
            client_info: &self.client_info,
            log_level: None,
        };
        let mut params = Object::new();
        params.set("notifications", stamp::json(filter));
        let headers = stamp::mirrored(revision, method::SUBSCRIPTIONS_LISTEN, &params, None);
        let params = stamp::stateless(&params, None, own).to_raw();
        let rpc = &self.own.rpc;
        let method = method::SUBSCRIPTIONS_LISTEN;
        rpc.request(method, Some(params), headers, Traits::default())
            .await
    }

    /// Tells the watchers what the server said (SUB26-04), and gives what it honours. Those whose
    /// stream went on without a break are not told again.
    fn settle_watched(
        &self,
        wanted: Vec<Arc<str>>,
        honoured: &SubscriptionFilter,
        before: Option<&Stream>,
    ) -> Vec<Arc<str>> {
        let honoured = &honoured.resource_subscriptions;
        let (granted, refused): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|uri| honoured.iter().any(|honoured| **honoured == **uri));
        for uri in &refused {
            let fault = Fault::ResourceNotFound(uri.to_string());
            self.watched.refused(uri, fault);
        }
        for uri in &granted {
            if before.is_none_or(|before| !before.uris.contains(uri)) {
                self.watched.granted(uri);
            }
        }
        granted
    }

    fn lists_may_have_changed(&self) {
        let filter = self.filter(&[]);
        if filter.tools_list_changed {
            self.is_stale(&[Section::Tools]);
        }
        if filter.prompts_list_changed {
            self.is_stale(&[Section::Prompts]);
        }
        if filter.resources_list_changed {
            self.is_stale(&[Section::Resources, Section::Templates]);
        }
    }

    /// What is listened to: the lists that can change, and these resources.
    fn filter(&self, uris: &[Arc<str>]) -> SubscriptionFilter {
        let capabilities = &self.facts.capabilities;
        SubscriptionFilter {
            tools_list_changed: capabilities
                .tools
                .as_ref()
                .is_some_and(|list| list.list_changed),
            prompts_list_changed: capabilities
                .prompts
                .as_ref()
                .is_some_and(|list| list.list_changed),
            resources_list_changed: capabilities
                .resources
                .as_ref()
                .is_some_and(|list| list.list_changed),
            resource_subscriptions: uris.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The next message of a stream; never, without one.
async fn next_of(stream: &mut Option<Stream>) -> Next {
    match stream {
        Some(stream) => stream.messages.next().await,
        None => std::future::pending().await,
    }
}

async fn next_of_before(stream: &mut Option<&mut Stream>) -> Next {
    match stream {
        Some(stream) => stream.messages.next().await,
        None => std::future::pending().await,
    }
}

/// What the server will tell of, if that is what it says.
fn acknowledged(notification: &Notification) -> Option<SubscriptionFilter> {
    if &*notification.method != method::SUBSCRIPTION_ACKNOWLEDGED {
        return None;
    }
    let params = Object::parse(notification.params.as_ref()?).ok()?;
    params.get("notifications")?.decode().ok()
}
