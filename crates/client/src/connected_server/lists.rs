//! Fetches a server's lists, and fetches them again when they change.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plexus_mcp_core::Section;
use plexus_mcp_protocol::messages::{
    CompleteParams, CompletionArgument, CompletionContext, CompletionReference,
};
use plexus_mcp_protocol::{Era, code, method};
use plexus_mcp_wire::{Object, Raw};
use tokio::time::Instant;

use super::ConnectedServer;
use crate::hop_metadata;
use crate::link::Headers;
use crate::listing::{Lister, Listing};
use crate::lock::lock;
use crate::rpc::{RpcFailure, Traits};

/// Debounce: how long to wait for further change notifications before a list is fetched again.
const LIST_CHANGE_DEBOUNCE: Duration = Duration::from_millis(50);

/// The delay before a list that could not be fetched is fetched again.
const LIST_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The timeout of the probe whether a server of 2024-11-05 supports completions.
const COMPLETION_PROBE_TIMEOUT: Duration = Duration::from_secs(2);

impl ConnectedServer {
    /// Fetches lists anew, and shows what came of it if it differs.
    pub(super) async fn list(&self, sections: &[Section]) {
        // Two at once would each undo what the other found.
        let _one_at_a_time = self.relisting.lock().await;
        let mut fresh = Listing::new(&self.facts);
        {
            let known = lock(&self.listing);
            fresh.adopt_lists(&known.catalogue);
            let completes = known.catalogue.capabilities.completions;
            fresh.catalogue.capabilities.completions = completes;
            fresh.quarantined.clone_from(&known.quarantined);
            fresh.list_problems.clone_from(&known.list_problems);
        }
        let deadline = Instant::now() + self.definition.timeouts.connect;
        for section in sections {
            let refresh = fresh.refresh(*section, &self.facts, self, self.definition.max_listed);
            if tokio::time::timeout_at(deadline, refresh).await.is_err() {
                fresh.unanswered(*section);
            }
        }
        let catalogue = Arc::new(fresh.catalogue.clone());
        *lock(&self.listing) = fresh;
        self.catalogue.send_if_modified(|known| {
            let differs = catalogue.differs_from(known);
            if differs {
                *known = catalogue;
            }
            differs
        });
    }

    /// Finds out whether a server completes whose revision has no way to say so: it knows the method,
    /// even if not what it is asked about (TRANSLATION §5.1).
    pub(super) async fn find_completions(&self) {
        let facts = &self.facts;
        let is_told = facts.revision.features().completions_capability;
        let has_any =
            facts.capabilities.prompts.is_some() || facts.capabilities.resources.is_some();
        if is_told || !has_any {
            return;
        }
        let params = CompleteParams {
            reference: CompletionReference::Prompt {
                name: String::new(),
            },
            argument: CompletionArgument {
                name: String::new(),
                value: String::new(),
            },
            context: CompletionContext::default(),
        };
        let rpc = &self.own.rpc;
        let request = rpc.request(
            method::COMPLETE,
            Some(params.to_raw()),
            Headers::new(),
            Traits::default(),
        );
        let answer = async { request.await?.answer().await };
        let knows = match tokio::time::timeout(COMPLETION_PROBE_TIMEOUT, answer).await {
            Ok(Err(RpcFailure::Error(error))) => error.code != code::METHOD_NOT_FOUND,
            Ok(answer) => answer.is_ok(),
            Err(_elapsed) => false,
        };
        lock(&self.listing).catalogue.capabilities.completions |= knows;
    }

    /// Fetches what has changed, a little after it was said to have; what cannot be fetched is tried
    /// again, and shown as it was meanwhile.
    pub(super) async fn keep_listed(&self) {
        while !self.over.is_cancelled() {
            self.changed.notified().await;
            tokio::time::sleep(LIST_CHANGE_DEBOUNCE).await;
            let stale = std::mem::take(&mut *lock(&self.stale));
            let retries = self.retried.swap(false, Ordering::Relaxed);
            if retries {
                tokio::time::sleep(LIST_RETRY_DELAY).await;
            }
            self.list(&stale).await;
            self.retry_failed_lists(&stale);
        }
    }

    /// Has those of these lists that could not be fetched be fetched again, a while later.
    pub(super) fn retry_failed_lists(&self, sections: &[Section]) {
        let failed: Vec<Section> = {
            let listing = lock(&self.listing);
            let failed = |section: &&Section| listing.has_failed(**section);
            sections.iter().filter(failed).copied().collect()
        };
        if !failed.is_empty() {
            self.retried.store(true, Ordering::Relaxed);
            self.mark_stale(&failed);
        }
    }

    pub(super) fn mark_stale(&self, sections: &[Section]) {
        let mut stale = lock(&self.stale);
        for section in sections {
            if !stale.contains(section) {
                stale.push(*section);
            }
        }
        self.changed.notify_one();
    }
}

impl Lister for ConnectedServer {
    async fn page(&self, method: &'static str, cursor: Option<String>) -> Result<Raw, RpcFailure> {
        let mut params = Object::new();
        if let Some(cursor) = &cursor {
            params.set("cursor", Raw::string(cursor));
        }
        let (params, headers) = match self.facts.revision.era() {
            Era::Handshake => (cursor.map(|_| params.to_raw()), Headers::new()),
            Era::Stateless => {
                let own = hop_metadata::StatelessMeta {
                    revision: self.facts.revision,
                    capabilities: &self.definition.capabilities,
                    client_info: &self.client_info,
                    log_level: None,
                };
                let headers =
                    hop_metadata::mirrored_headers(self.facts.revision, method, &params, None);
                let params = hop_metadata::stateless(&params, None, own);
                (Some(params.to_raw()), headers)
            }
        };
        let rpc = &self.own.rpc;
        let request = rpc.request(method, params, headers, Traits::default());
        let answer = async { request.await?.answer().await };
        let patience = self.definition.timeouts.request;
        tokio::time::timeout(patience, answer)
            .await
            .unwrap_or_else(|_elapsed| Err(RpcFailure::late(method, patience)))
    }
}
