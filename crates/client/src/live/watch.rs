//! Resources that somebody watches, and lists that may change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use plexus_mcp::messages::SubscriptionFilter;
use plexus_mcp::{Era, Fault, method};
use plexus_service::{Peer, Section, Updates};
use plexus_wire::{Object, Raw};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::Live;
use crate::rpc::{InFlight, Next, RpcFailure, Traits, Update};
use crate::stamp::{self, StatelessMeta};

/// How long a lost subscription waits before it is taken up again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// What is watched at the server, for however many watch it here.
#[derive(Default)]
pub(super) struct Watched {
    resources: Mutex<HashMap<String, Resource>>,
}

struct Resource {
    versions: watch::Sender<u64>,
    watchers: usize,
    /// The stateless subscription that feeds it.
    _feed: Option<AbortOnDropHandle<()>>,
}

impl Watched {
    /// A resource changed, or one below it.
    pub(super) fn updated(&self, uri: &str) {
        let resources = self.lock();
        let exact = resources.get(uri);
        let below = || {
            let longest = resources
                .iter()
                .filter(|(watched, _)| uri.starts_with(watched.as_str()));
            longest
                .max_by_key(|(watched, _)| watched.len())
                .map(|(_, resource)| resource)
        };
        if let Some(resource) = exact.or_else(below) {
            resource.versions.send_modify(|version| *version += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Resource>> {
        self.resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends one watcher's interest.
struct Watcher {
    live: Arc<Live>,
    uri: String,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut resources = self.live.watched.lock();
        let Some(resource) = resources.get_mut(&self.uri) else {
            return;
        };
        resource.watchers -= 1;
        if resource.watchers > 0 {
            return;
        }
        resources.remove(&self.uri);
        drop(resources);
        if self.live.facts.revision.era() == Era::Handshake {
            let live = Arc::clone(&self.live);
            let params = uri_params(&self.uri);
            self.live.spawn(async move {
                let request = live.rpc.request(
                    method::RESOURCES_UNSUBSCRIBE,
                    Some(params),
                    HeaderMap::new(),
                    Traits::default(),
                );
                if let Ok(request) = request.await {
                    drop(request.answer().await);
                }
            });
        }
    }
}

/// Watches `uri`; the server is asked only for the first watcher.
pub(super) async fn subscribe(
    live: &Arc<Live>,
    peer: &Peer,
    uri: String,
) -> Result<Updates, Fault> {
    if !live
        .facts
        .capabilities
        .resources
        .as_ref()
        .is_some_and(|resources| resources.subscribe)
    {
        return Err(Fault::MethodNotFound(
            method::RESOURCES_SUBSCRIBE.to_owned(),
        ));
    }
    let _one_at_a_time = live.subscribing.lock().await;
    if let Some(updates) = join(live, &uri) {
        return Ok(updates);
    }
    let patience = live.definition.timeouts.request;
    let late = |_elapsed| Fault::Internal("the subscription was not answered in time".to_owned());
    let feed = match live.facts.revision.era() {
        Era::Handshake => {
            let request = live.rpc.request(
                method::RESOURCES_SUBSCRIBE,
                Some(uri_params(&uri)),
                HeaderMap::new(),
                Traits::default(),
            );
            let answer = async { request.await?.answer().await };
            timeout(patience, answer)
                .await
                .map_err(late)?
                .map_err(Live::fault)?;
            None
        }
        Era::Stateless => {
            let filter = SubscriptionFilter {
                resource_subscriptions: vec![uri.clone()],
                ..SubscriptionFilter::default()
            };
            let mut listening = listen(live, &filter, Some(peer))
                .await
                .map_err(Live::fault)?;
            let honoured = timeout(patience, honours(&mut listening, &uri))
                .await
                .map_err(late)?;
            if !honoured {
                return Err(Fault::ResourceNotFound(uri));
            }
            let feeding = Arc::clone(live).follow(filter, Some(listening));
            Some(AbortOnDropHandle::new(live.tasks.spawn(feeding)))
        }
    };
    live.watched
        .lock()
        .entry(uri.clone())
        .or_insert_with(|| Resource {
            versions: watch::Sender::new(0),
            watchers: 0,
            _feed: feed,
        });
    join(live, &uri).ok_or(Fault::Cancelled)
}

/// One more watcher of what is watched already.
fn join(live: &Arc<Live>, uri: &str) -> Option<Updates> {
    let mut resources = live.watched.lock();
    let resource = resources.get_mut(uri)?;
    resource.watchers += 1;
    let versions = resource.versions.subscribe();
    drop(resources);
    Some(Updates::guarded(
        versions,
        Watcher {
            live: Arc::clone(live),
            uri: uri.to_owned(),
        },
    ))
}

impl Live {
    /// Listens for changes of the lists that can change.
    pub(super) fn listen_for_changes(self: &Arc<Self>) {
        let capabilities = &self.facts.capabilities;
        let filter = SubscriptionFilter {
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
            resource_subscriptions: Vec::new(),
        };
        if filter != SubscriptionFilter::default() {
            self.spawn(Arc::clone(self).follow(filter, None));
        }
    }

    /// Follows a subscription, and takes it up again when it is lost; what may have been missed is
    /// taken to have happened (TRANSLATION §6.6).
    async fn follow(self: Arc<Self>, filter: SubscriptionFilter, mut listening: Option<InFlight>) {
        let mut pause = PAUSE;
        while !self.over.is_cancelled() {
            let resumed = listening.is_none();
            let current = match listening.take() {
                Some(current) => Ok(current),
                None => listen(&self, &filter, None).await,
            };
            if let Ok(mut current) = current {
                while let Next::Update(update) = current.next().await {
                    pause = PAUSE;
                    if let Update::Notification(notification) = update {
                        if &*notification.method == method::SUBSCRIPTION_ACKNOWLEDGED && resumed {
                            self.missed(&filter);
                        } else {
                            self.notified(&notification);
                        }
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn missed(&self, filter: &SubscriptionFilter) {
        for uri in &filter.resource_subscriptions {
            self.watched.updated(uri);
        }
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
}

async fn listen(
    live: &Live,
    filter: &SubscriptionFilter,
    peer: Option<&Peer>,
) -> Result<InFlight, RpcFailure> {
    let revision = live.facts.revision;
    let own = StatelessMeta {
        revision,
        capabilities: peer.map_or(&live.definition.capabilities, |peer| &peer.capabilities),
        client_info: &live.definition.client_info,
        log_level: None,
    };
    let mut params = Object::new();
    params.set("notifications", stamp::json(filter));
    let params = stamp::stateless(Some(&params.into_raw()), None, own);
    let headers = stamp::mirrored(revision, method::SUBSCRIPTIONS_LISTEN, &params, None);
    live.rpc
        .request(
            method::SUBSCRIPTIONS_LISTEN,
            Some(params),
            headers,
            Traits::default(),
        )
        .await
}

/// Whether the server will tell of `uri`: its acknowledgement says so (SUB26-04).
async fn honours(listening: &mut InFlight, uri: &str) -> bool {
    while let Next::Update(update) = listening.next().await {
        let Update::Notification(notification) = update else {
            continue;
        };
        if &*notification.method == method::SUBSCRIPTION_ACKNOWLEDGED {
            let params = notification
                .params
                .as_ref()
                .and_then(|params| Object::parse(params).ok());
            let honoured: Option<SubscriptionFilter> =
                params.and_then(|params| params.get("notifications")?.decode().ok());
            return honoured
                .is_some_and(|filter| filter.resource_subscriptions.iter().any(|u| u == uri));
        }
    }
    false
}

fn uri_params(uri: &str) -> Raw {
    let mut params = Object::new();
    params.set("uri", stamp::json(uri));
    params.into_raw()
}
