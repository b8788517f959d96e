//! The `subscriptions/listen` stream of a stateless server: changes of its lists and resources.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::Section;
use plexus_mcp_protocol::messages::SubscriptionFilter;
use plexus_mcp_protocol::{Fault, method};
use plexus_mcp_wire::{Notification, Object};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::ConnectedServer;
use crate::backoff::{self, Backoff};
use crate::hop_metadata::{self, StatelessMeta};
use crate::link::LinkError;
use crate::rpc::{InFlight, Next, RpcFailure, Traits, Update};

/// The backoff before a lost subscription is made again.
pub(super) const RESUME_BACKOFF_MIN: Duration = Duration::from_secs(1);
pub(super) const RESUME_BACKOFF_MAX: Duration = Duration::from_mins(1);
/// Streams without an interruption for this long reset the backoff.
const GOOD_STREAM_MIN: Duration = Duration::from_secs(30);

/// A stream that the server acknowledged.
struct Stream {
    messages: InFlight,
    uris: Vec<Arc<str>>,
    /// Since when there is a stream: this one, or one that it replaced.
    since: Instant,
}

/// The next attempt to open a stream.
struct Retry {
    at: Instant,
    /// The resources of the stream. If others are wanted before, the attempt is made at once.
    uris: Vec<Arc<str>>,
}

impl Retry {
    fn is_due(&self, wanted: &[Arc<str>]) -> bool {
        self.at <= Instant::now() || self.uris != wanted
    }
}

impl ConnectedServer {
    /// Keeps one `subscriptions/listen` stream open for list changes and watched resources. The filter
    /// of an open stream cannot change, so a new stream is opened before the old one is closed
    /// (TRANSLATION §6.6). If it cannot be opened, the old stream stays open. `first` is dropped when the
    /// first stream is open, or has failed to open.
    pub(super) async fn keep_listening(self: Arc<Self>, first: oneshot::Sender<()>) {
        let linger = self.definition.timeouts.linger;
        let mut first = Some(first);
        let mut changes = self.subscriptions.changes();
        let mut stream: Option<Stream> = None;
        let mut is_resumed = false;
        let mut backoff = Backoff::new(RESUME_BACKOFF_MIN, RESUME_BACKOFF_MAX);
        let mut retry: Option<Retry> = None;
        loop {
            let (mut wanted, next) = self.subscriptions.wanted(linger);
            let filter = self.filter(&wanted);
            if filter == SubscriptionFilter::default() {
                (stream, retry) = (None, None);
            } else if stream.as_ref().is_some_and(|stream| stream.uris == wanted) {
                retry = None;
            } else if retry.as_ref().is_none_or(|retry| retry.is_due(&wanted)) {
                let had_stream = stream.is_some();
                let opened = self.open(&filter, &mut stream).await;
                let is_interrupted = had_stream && stream.is_none();
                match opened {
                    Ok((messages, honoured)) => {
                        let uris = self.settle_subscriptions(wanted, &honoured, stream.as_ref());
                        is_resumed |= is_interrupted;
                        // The lists may have changed before this stream was open.
                        if is_resumed || first.as_ref().is_some_and(oneshot::Sender::is_closed) {
                            self.lists_may_have_changed();
                        }
                        is_resumed = false;
                        retry = None;
                        let since = stream.map_or_else(Instant::now, |stream| stream.since);
                        stream = Some(Stream {
                            messages,
                            uris,
                            since,
                        });
                        // The server may have refused all resources, so the filter is computed
                        // again.
                        continue;
                    }
                    Err(_) if self.own.rpc.is_over() => return,
                    Err(failure) => {
                        if let RpcFailure::Link(error @ LinkError::Unreachable(_)) = &failure {
                            self.own.rpc.close_if_idle(error);
                        }
                        is_resumed |= stream.is_none();
                        let fault = Self::fault(failure);
                        // Accepted subscriptions are kept: the failure may be temporary, or due to
                        // another resource of the same stream.
                        wanted.retain(|uri| !self.subscriptions.refuse_new(uri, &fault));
                        if stream.as_ref().is_none_or(|stream| stream.uris != wanted) {
                            let now = Instant::now();
                            let at = match retry {
                                Some(retry) if retry.at > now => retry.at,
                                _ => now + backoff.next_delay(backoff::random()),
                            };
                            if !wanted.is_empty() {
                                tracing::warn!(%fault, "resource updates are interrupted");
                            }
                            retry = Some(Retry { at, uris: wanted });
                        }
                        drop(first.take());
                        continue;
                    }
                }
            }
            drop(first.take());
            let retry_at = retry.as_ref().map(|retry| retry.at);
            let wake_at = next.into_iter().chain(retry_at).min();
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
                        let at = Instant::now() + backoff.next_delay(backoff::random());
                        retry = Some(Retry { at, uris: wanted });
                    }
                },
                () = sleep_until(wake_at.unwrap_or_else(super::far_future)), if wake_at.is_some() => {}
            }
        }
    }

    /// Opens a stream, and waits for its acknowledgement. Messages of the stream before it are
    /// processed meanwhile; if that one ends, it is removed.
    async fn open(
        &self,
        filter: &SubscriptionFilter,
        before: &mut Option<Stream>,
    ) -> Result<(InFlight, SubscriptionFilter), RpcFailure> {
        let request_timeout = self.definition.timeouts.request;
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
                        // A result before the acknowledgement: the server ended the subscription at
                        // once.
                        Next::Answer(Ok(_)) => {
                            let reason = "the server ended the subscription at once".to_owned();
                            return Err(LinkError::Broken(reason).into());
                        }
                    },
                    next = next_of(before) => match next {
                        Next::Update(Update::Notification(notification)) => {
                            self.notified(&notification);
                        }
                        Next::Update(Update::Request(_)) => {}
                        Next::Answer(_) => *before = None,
                    }
                }
            }
        };
        match timeout(request_timeout, opening).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(RpcFailure::late(
                method::SUBSCRIPTIONS_LISTEN,
                request_timeout,
            )),
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

    /// Notifies the watchers whether the server accepted their subscriptions (SUB26-04), and
    /// returns the accepted ones. Watchers whose resource was on the stream before are not notified
    /// again.
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

/// The honoured filter, if the notification is an acknowledgement.
fn acknowledged(notification: &Notification) -> Option<SubscriptionFilter> {
    if &*notification.method != method::SUBSCRIPTION_ACKNOWLEDGED {
        return None;
    }
    let params = Object::parse(notification.params.as_ref()?).ok()?;
    params.get("notifications")?.decode().ok()
}
