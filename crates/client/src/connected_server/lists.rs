//! Fetches a server's lists, and fetches them again when they change.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use plexus_mcp_core::Section;
use plexus_mcp_protocol::messages::{
    CompleteParams, CompletionArgument, CompletionContext, CompletionReference,
};
use plexus_mcp_protocol::{Era, code, method};
use plexus_mcp_wire::{Object, Raw};
use tokio::time::{Instant, sleep, sleep_until};

use super::ConnectedServer;
use crate::backoff::{self, Backoff};
use crate::hop_metadata;
use crate::link::Headers;
use crate::listing::{ListLimits, Lister, Listing};
use crate::lock::lock;
use crate::rpc::{RpcFailure, Traits};

/// Debounce: how long to wait for further change notifications before a list is fetched again.
const LIST_CHANGE_DEBOUNCE: Duration = Duration::from_millis(50);

/// Backoff of fetching lists again that could not be fetched.
const LIST_RETRY_BACKOFF_MIN: Duration = Duration::from_secs(5);
const LIST_RETRY_BACKOFF_MAX: Duration = Duration::from_mins(10);

/// The timeout of the probe whether a server of 2024-11-05 supports completions.
const COMPLETION_PROBE_TIMEOUT: Duration = Duration::from_secs(2);

impl ConnectedServer {
    /// Fetches lists again, and publishes the catalogue if it differs.
    pub(super) async fn list(&self, sections: &[Section]) {
        // Concurrent fetches would overwrite each other's results.
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
            let limits = ListLimits {
                entries: self.definition.max_listed,
                bytes: self.definition.max_listed_bytes,
            };
            let refresh = fresh.refresh(*section, &self.facts, self, limits);
            if tokio::time::timeout_at(deadline, refresh).await.is_err() {
                fresh.unanswered(*section);
            }
        }
        let catalogue = Arc::new(fresh.catalogue.clone());
        let known = std::mem::replace(&mut *lock(&self.listing), fresh);
        if known.list_problems != lock(&self.listing).list_problems {
            self.list_problems_changed.notify_one();
        }
        self.catalogue.send_if_modified(|known| {
            let differs = catalogue.differs_from(known);
            if differs {
                *known = catalogue;
            }
            differs
        });
    }

    /// Probes whether a server supports completion if its revision has no capability for it. Any
    /// answer but "method not found" counts as support (TRANSLATION §5.1).
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

    /// Fetches changed lists after the debounce interval, and lists that failed with backoff. A list
    /// that fails keeps its entries.
    pub(super) async fn keep_listed(&self) {
        let mut backoff = Backoff::new(LIST_RETRY_BACKOFF_MIN, LIST_RETRY_BACKOFF_MAX);
        let mut retry_at = None;
        while !self.over.is_cancelled() {
            let failed = lock(&self.listing).failed_sections();
            if failed.is_empty() {
                backoff.reset();
                retry_at = None;
            } else if retry_at.is_none() {
                retry_at = Some(Instant::now() + backoff.next_delay(backoff::random()));
            }
            tokio::select! {
                () = self.changed.notified() => {
                    sleep(LIST_CHANGE_DEBOUNCE).await;
                    let stale = std::mem::take(&mut *lock(&self.stale));
                    if !stale.is_empty() {
                        self.list(&stale).await;
                    }
                }
                Some(()) = OptionFuture::from(retry_at.map(sleep_until)) => {
                    retry_at = None;
                    self.list(&failed).await;
                }
            }
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
        let timeout = self.definition.timeouts.request;
        tokio::time::timeout(timeout, answer)
            .await
            .unwrap_or_else(|_elapsed| Err(RpcFailure::late(method, timeout)))
    }
}
