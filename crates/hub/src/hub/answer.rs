//! Processing before and after a call is forwarded.

use std::future::ready;
use std::sync::Arc;

use plexus_mcp_core::{Boxed, Call, Outcome, Presence};
use plexus_mcp_protocol::method;

use super::Hub;
use super::searching::SearchOutcome;
use crate::manage::SubscriptionRegistry;
use crate::member::Member;
use crate::routes::qualified_contents;

impl Hub {
    /// Answers a call. Changes of the caller's subscriptions are added to the result of a tool
    /// call.
    pub(super) fn answer(&self, call: Call) -> Boxed<Outcome> {
        // A search result is a list of tools, so it waits for starting servers as a list does.
        if self.is_search(&call)
            && let Some(settling) = self.awaited_lists(call.peer())
        {
            let hub = self.clone();
            return Box::pin(async move {
                settling.await;
                hub.answer_now(call).await
            });
        }
        self.answer_now(call)
    }

    fn answer_now(&self, call: Call) -> Boxed<Outcome> {
        let news = self.news_for(&call);
        let qualifier = self.qualifier_in(&call);
        let answering: Boxed<Outcome> = match self.resolve_search(call) {
            Ok(SearchOutcome::Call(call)) => Box::pin(self.clone().forward(call)),
            Ok(SearchOutcome::Answer(answer)) => Box::pin(ready(Ok(answer))),
            Err(fault) => Box::pin(ready(Err(fault))),
        };
        if news.is_none() && qualifier.is_none() {
            return answering;
        }
        Box::pin(async move {
            let mut result = answering.await?;
            if let Some(qualifier) = qualifier {
                result = qualified_contents(&result, &qualifier).unwrap_or(result);
            }
            Ok(match news {
                Some((registry, presence)) => registry.with_news(&presence, result),
                None => result,
            })
        })
    }

    /// The qualifier of the URI that is read, if the URI names its owner.
    fn qualifier_in(&self, call: &Call) -> Option<String> {
        if &*call.method != method::RESOURCES_READ {
            return None;
        }
        let uri = call.params.text("uri")?;
        self.routes().qualifier(&uri).map(str::to_owned)
    }

    /// The registry and the caller's presence, if subscriptions may have changes to report to the
    /// caller.
    fn news_for(&self, call: &Call) -> Option<(Arc<SubscriptionRegistry>, Presence)> {
        if &*call.method != method::TOOLS_CALL {
            return None;
        }
        let registry = self
            .inner
            .registry
            .get()
            .filter(|registry| !registry.is_empty())?;
        let presence = call.peer().presence.clone()?;
        Some((Arc::clone(registry), presence))
    }

    /// The only enabled server, connected or not; if no server is configured, the only enabled service
    /// in this process.
    pub(super) fn only_server(&self) -> Option<Arc<Member>> {
        let status = self.status();
        let enabled = || status.iter().filter(|member| member.enabled);
        let servers = || enabled().filter(|member| member.status.is_some());
        let mut candidates: Box<dyn Iterator<Item = _>> = match servers().next() {
            Some(_) => Box::new(servers()),
            None => Box::new(enabled()),
        };
        let only = candidates.next().filter(|_| candidates.next().is_none())?;
        self.member(&only.name).ok()
    }
}
