//! The `subscriptions/listen` stream of a stateless server: changes of its lists and resources.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::Section;
use plexus_mcp_protocol::messages::SubscriptionFilter;
use plexus_mcp_protocol::{Fault, method};
use plexus_mcp_wire::{Notification, Object};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ConnectedServer;
use crate::backoff::{self, Backoff};
use crate::hop_metadata::{self, StatelessMeta};
use crate::link::LinkError;
use crate::rpc::{InFlight, Next, RpcFailure, Traits, Update};

/// The backoff before a lost stream is opened again.
const RESUME_BACKOFF_MIN: Duration = Duration::from_secs(1);
const RESUME_BACKOFF_MAX: Duration = Duration::from_mins(1);
/// A stream that lasted this long resets the backoff.
const GOOD_STREAM_MIN: Duration = Duration::from_secs(30);

/// A stream that the server acknowledged.
struct Stream {
    messages: InFlight,
    uris: Vec<Arc<str>>,
    since: Instant,
}

impl ConnectedServer {
    /// Keeps one `subscriptions/listen` stream open for list changes and watched resources. The filter
    /// of an open stream cannot change, so a new stream is opened before the old one is closed
    /// (TRANSLATION §6.6). `first` is dropped when the first stream is open, or has failed to open.
    pub(super) async fn keep_listening(self: Arc<Self>, first: oneshot::Sender<()>) {
        let linger = self.definition.timeouts.linger;
        let mut first = Some(first);
        let mut changes = self.subscriptions.changes();
        let mut stream: Option<Stream> = None;
        let mut is_resumed = false;
        let mut backoff = Backoff::new(RESUME_BACKOFF_MIN, RESUME_BACKOFF_MAX);
        loop {
            let (wanted, next) = self.subscriptions.wanted(linger);
            let filter = self.filter(&wanted);
            if filter == SubscriptionFilter::default() {
                stream = None;
            } else if stream.as_ref().is_none_or(|stream| stream.uris != wanted) {
                match self.open(&filter, stream.as_mut()).await {
                    Ok((messages, honoured)) => {
                        let uris = self.settle_subscriptions(wanted, &honoured, stream.as_ref());
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
                        if let RpcFailure::Link(error @ LinkError::Unreachable(_)) = &failure {
                            self.own.rpc.close_if_idle(error);
                        }
                        let had = stream.take();
                        let had = had.map(|stream| stream.uris).unwrap_or_default();
                        let fault = Self::fault(failure);
                        for uri in wanted.iter().filter(|uri| !had.contains(uri)) {
                            self.subscriptions.refused(uri, fault.clone());
                        }
                        drop(first.take());
                        is_resumed = true;
                        sleep(backoff.next_delay(backoff::random())).await;
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
                        if lasted.is_some_and(|lasted| lasted >= GOOD_STREAM_MIN) {
                            backoff.reset();
                        }
                        is_resumed = true;
                        sleep(backoff.next_delay(backoff::random())).await;
                    }
                },
                () = sleep_until(next.unwrap_or_else(super::far_future)), if next.is_some() => {}
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
                        // The result ends the subscription, which was not even acknowledged.
                        Next::Answer(Ok(_)) => {
                            let reason = "the server ended the subscription at once".to_owned();
                            return Err(LinkError::Broken(reason).into());
                        }
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
        params.set("notifications", hop_metadata::json(filter));
        let headers =
            hop_metadata::mirrored_headers(revision, method::SUBSCRIPTIONS_LISTEN, &params, None);
        let params = hop_metadata::stateless(&params, None, own).to_raw();
        let rpc = &self.own.rpc;
        let method = method::SUBSCRIPTIONS_LISTEN;
        rpc.request(method, Some(params), headers, Traits::default())
            .await
    }

    /// Tells the watchers what the server said (SUB26-04), and gives what it honours. Those whose
    /// stream went on without a break are not told again.
    fn settle_subscriptions(
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
            self.subscriptions.refused(uri, fault);
        }
        for uri in &granted {
            if before.is_none_or(|before| !before.uris.contains(uri)) {
                self.subscriptions.granted(uri);
            }
        }
        granted
    }

    fn lists_may_have_changed(&self) {
        let filter = self.filter(&[]);
        if filter.tools_list_changed {
            self.mark_stale(&[Section::Tools]);
        }
        if filter.prompts_list_changed {
            self.mark_stale(&[Section::Prompts]);
        }
        if filter.resources_list_changed {
            self.mark_stale(&[Section::Resources, Section::Templates]);
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

/// The honoured filter, if the notification is an acknowledgement.
fn acknowledged(notification: &Notification) -> Option<SubscriptionFilter> {
    if &*notification.method != method::SUBSCRIPTION_ACKNOWLEDGED {
        return None;
    }
    let params = Object::parse(notification.params.as_ref()?).ok()?;
    params.get("notifications")?.decode().ok()
}
