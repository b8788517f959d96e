//! What is done around passing a call on.

use std::future::ready;
use std::sync::Arc;

use plexus_mcp::method;
use plexus_service::{Boxed, Call, Outcome, Presence};

use super::Hub;
use super::searching::Meant;
use crate::manage::Desk;
use crate::member::Member;
use crate::routes::qualified_contents;

impl Hub {
    /// Passes a call on; the result of a tool is where its caller reads what else is new.
    pub(super) fn answer(&self, call: Call) -> Boxed<Outcome> {
        let news = self.news_for(&call);
        let qualifier = self.qualifier_in(&call);
        let answering: Boxed<Outcome> = match self.meant(call) {
            Ok(Meant::Call(call)) => Box::pin(self.clone().pass_on(call)),
            Ok(Meant::Answer(answer)) => Box::pin(ready(Ok(answer))),
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
                Some((desk, presence)) => desk.with_news(&presence, result),
                None => result,
            })
        })
    }

    /// How the URI begins that is read, if it names its owner.
    fn qualifier_in(&self, call: &Call) -> Option<String> {
        if &*call.method != method::RESOURCES_READ {
            return None;
        }
        let uri = call.params.text("uri")?;
        self.routes().qualifier(&uri).map(str::to_owned)
    }

    /// Who may have news for the caller of a tool, if anybody.
    fn news_for(&self, call: &Call) -> Option<(Arc<Desk>, Presence)> {
        if &*call.method != method::TOOLS_CALL {
            return None;
        }
        let desk = self.inner.desk.get().filter(|desk| !desk.is_empty())?;
        let presence = call.peer().presence.clone()?;
        Some((Arc::clone(desk), presence))
    }

    /// The only server that is connected, or if there is none, the only service in this process.
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
