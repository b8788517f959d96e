//! What all transports of one server share.

use std::sync::{Arc, Mutex};

use plexus_mcp::messages::{
    CacheScope, DiscoverResult, Implementation, LogLevel, ServerCapabilities,
};
use plexus_mcp::{Revision, method};
use plexus_service::{Call, Catalogue, EventSender, Fault, Peer, Principal, Service};
use plexus_wire::{Object, Raw};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::lists::{Lists, section_of};
use crate::lock::lock;
use crate::options::Options;
use crate::park::Parking;
use crate::render::{Voice, hinted};
use crate::running::Running;
use crate::seal::SealKey;

/// The server edge of one [`Service`]: what is the same for all its transports.
///
/// Give it to [`stdio::serve`](crate::stdio::serve), [`HttpServer`](crate::http::HttpServer), or both.
pub struct Edge {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) options: Options,
    pub(crate) parking: Parking,
    pub(crate) tracker: TaskTracker,
    /// Fires when the server ends.
    pub(crate) shutdown: CancellationToken,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    lists: Lists,
    /// One for each revision that was spoken, with whom it speaks for.
    voices: Mutex<Vec<(Implementation, Arc<Voice>)>>,
}

impl Edge {
    /// Shows `service`, sealing what goes through clients with a key that dies with the process.
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
            parking: Parking::new(key, options.max_parked, options.answer_time),
            service,
            options,
            tracker: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            lists: Lists::default(),
            voices: Mutex::default(),
        })
    }

    /// Ends all transports: no new work is taken, work in flight is given
    /// [`Options::drain`] to finish, subscriptions are closed properly.
    pub fn shut_down(&self) {
        self.shutdown.cancel();
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Changes whenever what anybody is shown may have changed.
    pub(crate) fn watch_catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.clone()
    }

    /// What `peer` is shown.
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

    /// How a client of `revision` is spoken to.
    pub(crate) fn voice(&self, revision: Revision) -> Arc<Voice> {
        let identity = &self.catalogue.borrow().identity;
        let mut voices = lock(&self.voices);
        if let Some((_, voice)) = voices
            .iter()
            .find(|(known, voice)| voice.revision == revision && known == identity)
        {
            return Arc::clone(voice);
        }
        let voice = Arc::new(Voice::new(revision, identity, self.options.max_answer));
        voices.retain(|(known, voice)| voice.revision != revision && known == identity);
        voices.push((identity.clone(), Arc::clone(&voice)));
        voice
    }

    /// Starts a call of `peer`; `cancel` fires when it is abandoned, and abandons it.
    pub(crate) fn start(
        &self,
        method: &str,
        params: Object,
        peer: Arc<Peer>,
        wants: Wants,
        cancel: CancellationToken,
    ) -> Running {
        let (sender, events) = EventSender::channel(peer, wants.progress, wants.log_level);
        let mut call = Call::new(method, params, sender, cancel);
        call.trace_parent = wants.trace_parent;
        Running::start(&*self.service, call, events)
    }

    /// Answers what needs no call: the lists and discovery.
    pub(crate) fn answer_directly(
        &self,
        catalogue: &Catalogue,
        method: &str,
        params: Option<&Raw>,
        voice: &Voice,
    ) -> Option<Result<Raw, Fault>> {
        if method == method::DISCOVER {
            return Some(Ok(voice.stamped(self.discovery(catalogue, voice.revision))));
        }
        let section = section_of(method)?;
        Some(self.lists.page(catalogue, section, voice, params))
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

/// Which events a caller wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wants {
    pub(crate) progress: bool,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) trace_parent: Option<String>,
}

/// Refuses methods that the revision does not have, or that need what the service does not offer.
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
        // Servers that complete do not always say so: whoever owns the prompt knows best.
        method::SET_LEVEL => capabilities.logging,
        _ => true,
    };
    if offered && method::defined_in(method, revision) != Some(false) {
        Ok(())
    } else {
        Err(Fault::MethodNotFound(method.to_owned()))
    }
}

/// The principal of every caller while nobody signs in.
pub(crate) fn anonymous() -> Principal {
    Principal::anonymous()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not offered does not exist; completion is the service's to refuse.
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
