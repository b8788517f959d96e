//! Calls to the suite's server.

use std::sync::Arc;

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{
    Call, Catalogue, Event, EventSender, Fault, Object, Outcome, Peer, Principal, Raw, Service as _,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use tokio_util::sync::CancellationToken;

use crate::answers;

/// Calls the suite's server, and answers its questions during the calls.
pub(crate) struct Caller {
    upstream: Upstream,
    peer: Arc<Peer>,
}

impl Caller {
    /// Calls `upstream` on behalf of a client with `capabilities`.
    pub(crate) fn new(
        upstream: Upstream,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Self {
        let peer = Peer::new(revision, capabilities, None, Principal::anonymous());
        Self {
            upstream,
            peer: Arc::new(peer),
        }
    }

    /// The catalogue of the server.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.upstream.catalogue().borrow())
    }

    /// Makes one call. Dropping the future cancels it.
    pub(crate) async fn call(&self, method: &str, params: Raw) -> Outcome {
        let (sender, mut events) = EventSender::channel(Arc::clone(&self.peer), true, None);
        let params = Object::parse(&params);
        let params = params.map_err(|error| Fault::InvalidParams(error.to_string()))?;
        let call = Call::new(method, params, sender, CancellationToken::new());
        let mut outcome = self.upstream.call(call);
        loop {
            tokio::select! {
                outcome = &mut outcome => return outcome,
                Some(event) = events.recv() => match event {
                    Event::Ask(ask) => {
                        let answer = answers::answer(&ask.question);
                        ask.answer(answer);
                    }
                    Event::Progress(_)
                    | Event::Log(_)
                    | Event::Content(_)
                    | Event::Stderr(_)
                    | Event::ToolUse(_)
                    | Event::Recovered(_) => {}
                },
            }
        }
    }
}
