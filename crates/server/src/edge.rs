//! The edge: dispatches the requests of every transport to one service, and holds the state that
//! the transports share.

use std::sync::{Arc, Mutex};

use plexus_mcp_core::{
    Call, Catalogue, EventSender, Fault, Layered, Peer, Principal, Section, Service, TraceCalls,
};
use plexus_mcp_protocol::messages::{
    CacheScope, DiscoverResult, Implementation, LogLevel, ServerCapabilities,
};
use plexus_mcp_protocol::{Revision, method};
use plexus_mcp_wire::{Id, Object, Raw};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::encoder::{ResponseEncoder, complete, hinted};
use crate::exchange::Exchange;
use crate::lists::{Lists, section_of};
use crate::lock::lock;
use crate::options::Options;
use crate::park::{Parking, ParkingLimits};
use crate::running_call::RunningCall;
use crate::seal::SealKey;

/// The server edge of one [`Service`]: the state that all its transports share.
///
/// Give it to [`stdio::serve`](crate::stdio::serve), [`HttpServer`](crate::http::HttpServer), or both.
pub struct Edge {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) options: Options,
    pub(crate) parking: Parking,
    pub(crate) tracker: TaskTracker,
    /// Fires when the server begins to end.
    pub(crate) shutdown: CancellationToken,
    /// Fires when the first list was answered or the first call is started.
    in_use: CancellationToken,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    lists: Lists,
    /// Cached encoders, one for each revision in use, with the server identity they were made for.
    encoders: Mutex<Vec<(Implementation, Arc<ResponseEncoder>)>>,
}

impl Edge {
    /// Serves `service`. `requestState` is sealed with a new key that is never stored.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn new(service: Arc<dyn Service>, options: Options) -> Result<Arc<Self>, getrandom::Error> {
        Ok(Self::with_key(service, options, &SealKey::generate()?))
    }

    /// The same, with a key that other processes may share.
    pub fn with_key(service: Arc<dyn Service>, options: Options, key: &SealKey) -> Arc<Self> {
        Arc::new(Self {
            catalogue: service.catalogue(),
            parking: Parking::new(
                key,
                ParkingLimits {
                    calls: options.max_parked,
                    bytes: options.max_parked_bytes,
                    time: options.answer_time,
                },
            ),
            lists: Lists::new(options.page_size),
            service: Arc::new(Layered::new(service, TraceCalls)),
            options,
            tracker: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            in_use: CancellationToken::new(),
            encoders: Mutex::default(),
        })
    }

    /// Ends all transports: no new work is taken, work in flight is given
    /// [`Options::drain`] to finish, subscriptions are closed properly.
    pub fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Completes when the server begins to end: [`Edge::shut_down`] was called, or the client on
    /// standard input has gone. Work in flight may still be finished.
    pub fn ending(&self) -> impl Future<Output = ()> + Send + use<> {
        self.shutdown.clone().cancelled_owned()
    }

    /// Completes when the first list was answered or the first call was started. Work that would
    /// compete with the start of a client can wait for this.
    pub fn in_use(&self) -> impl Future<Output = ()> + Send + use<> {
        self.in_use.clone().cancelled_owned()
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Changes whenever the catalogue of any caller may have changed.
    pub(crate) fn watch_catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.clone()
    }

    /// The catalogue that `peer` is shown.
    pub(crate) fn catalogue_for(&self, peer: &Peer) -> Arc<Catalogue> {
        match self.service.catalogue_for(peer) {
            Some(shown) => Arc::clone(&shown.borrow()),
            None => self.catalogue(),
        }
    }

    /// The same, now and after every change.
    pub(crate) fn watch_catalogue_for(&self, peer: &Peer) -> watch::Receiver<Arc<Catalogue>> {
        let shown = self.service.catalogue_for(peer);
        shown.unwrap_or_else(|| self.watch_catalogue())
    }

    /// The encoder for clients of `revision`.
    pub(crate) fn encoder(&self, revision: Revision) -> Arc<ResponseEncoder> {
        let identity = &self.catalogue.borrow().identity;
        let mut encoders = lock(&self.encoders);
        if let Some((_, encoder)) = encoders
            .iter()
            .find(|(known, encoder)| encoder.revision == revision && known == identity)
        {
            return Arc::clone(encoder);
        }
        let encoder = Arc::new(ResponseEncoder::new(
            revision,
            identity,
            self.options.max_answer,
        ));
        encoders.retain(|(known, encoder)| encoder.revision != revision && known == identity);
        encoders.push((identity.clone(), Arc::clone(&encoder)));
        encoder
    }

    /// Starts a call of `peer`; `cancel` fires when it is abandoned, and abandons it.
    pub(crate) fn start(
        &self,
        method: &str,
        params: Object,
        peer: Arc<Peer>,
        wants: Wants,
        cancel: CancellationToken,
    ) -> RunningCall {
        let (sender, events) = EventSender::channel(peer, wants.progress, wants.log_level);
        let call = Call::new(method, params, sender, cancel);
        self.in_use.cancel();
        RunningCall::start(&*self.service, call, events)
    }

    /// Answers the requests that need no call: lists and discovery.
    pub(crate) fn answer_directly(
        &self,
        catalogue: &Catalogue,
        method: &str,
        params: Option<&Raw>,
        encoder: &ResponseEncoder,
    ) -> Option<Result<Raw, Fault>> {
        if method == method::DISCOVER {
            return Some(Ok(
                encoder.with_result_metadata(self.discovery(catalogue, encoder.revision))
            ));
        }
        let section = section_of(method)?;
        Some(self.page(catalogue, section, params, encoder))
    }

    fn page(
        &self,
        catalogue: &Catalogue,
        section: Section,
        params: Option<&Raw>,
        encoder: &ResponseEncoder,
    ) -> Result<Raw, Fault> {
        let page = self.lists.page(catalogue, section, encoder, params);
        self.in_use.cancel();
        page
    }

    /// Answers a list when the service has settled; `None` if `method` asks for none, or the service
    /// has settled already.
    pub(crate) fn answer_when_settled(
        self: &Arc<Self>,
        (id, method, params): (&Id, &str, Option<&Raw>),
        peer: &Arc<Peer>,
        encoder: &Arc<ResponseEncoder>,
    ) -> Option<Exchange> {
        let section = section_of(method)?;
        let settling = self.service.settling_for(peer)?;
        let (id, params) = (id.clone(), params.cloned());
        let (edge, peer, encoder) = (Arc::clone(self), Arc::clone(peer), Arc::clone(encoder));
        Some(Exchange::Awaited(Box::pin(async move {
            let ending = async {
                edge.shutdown.cancelled().await;
                tokio::time::sleep(edge.options.drain / 2).await;
            };
            tokio::select! {
                () = settling => {}
                // The server ends: answer with the part of the list that is known so far.
                () = ending => {}
            }
            let catalogue = edge.catalogue_for(&peer);
            match edge.page(&catalogue, section, params.as_ref(), &encoder) {
                Ok(page) => complete(&id, &page),
                Err(fault) => encoder.error(&id, &fault),
            }
        })))
    }

    fn discovery(&self, catalogue: &Catalogue, revision: Revision) -> Raw {
        let versions = self.options.served.versions();
        let scope = if catalogue.cache.public {
            CacheScope::Public
        } else {
            CacheScope::Private
        };
        let result = DiscoverResult {
            supported_versions: versions.into_iter().map(str::to_owned).collect(),
            capabilities: catalogue.capabilities.to_raw(revision.features()),
            instructions: catalogue.instructions.clone(),
            ttl_ms: catalogue.cache.ttl_ms,
            cache_scope: scope,
            meta: None,
        };
        hinted(result.to_raw(), catalogue.cache)
    }
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The events that a caller has asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wants {
    pub(crate) progress: bool,
    pub(crate) log_level: Option<LogLevel>,
}

/// Refuses methods that the revision does not have, or whose capability the service does not declare.
pub(crate) fn admit(
    method: &str,
    revision: Revision,
    capabilities: &ServerCapabilities,
) -> Result<(), Fault> {
    let offered = match method {
        method::TOOLS_LIST | method::TOOLS_CALL => capabilities.tools.is_some(),
        method::RESOURCES_LIST | method::RESOURCE_TEMPLATES_LIST | method::RESOURCES_READ => {
            capabilities.resources.is_some()
        }
        method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => capabilities
            .resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe),
        method::PROMPTS_LIST | method::PROMPTS_GET => capabilities.prompts.is_some(),
        // Servers that complete do not always declare it, so the owner of the prompt decides.
        method::SET_LEVEL => capabilities.logging,
        _ => true,
    };
    if offered && method::defined_in(method, revision) != Some(false) {
        Ok(())
    } else {
        Err(Fault::MethodNotFound(method.to_owned()))
    }
}

/// The principal of every caller where no credentials are required.
pub(crate) fn anonymous() -> Principal {
    Principal::anonymous()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A method whose capability is not declared is unknown. Completion is admitted, and the service
    /// decides.
    #[test]
    fn methods_without_their_capability_are_not_admitted() {
        let nothing = ServerCapabilities::default();
        let admitted = |method| admit(method, Revision::V2025_11_25, &nothing).is_ok();
        for method in [
            method::TOOLS_CALL,
            method::RESOURCES_READ,
            method::RESOURCES_SUBSCRIBE,
            method::PROMPTS_GET,
            method::SET_LEVEL,
        ] {
            assert!(!admitted(method), "{method}");
        }
        assert!(admitted(method::COMPLETE));
    }
}
