//! A server that speaks both eras, to each caller in the caller's own.

use std::sync::Arc;

use plexus_mcp::{Era, Fault};
use plexus_service::{Boxed, Call, Catalogue, Outcome, Peer, Service, Updates};
use tokio::sync::watch;

use crate::definition::{Definition, Target};
use crate::status::State;
use crate::upstream::Upstream;

/// A server as a [`Service`] that, if it speaks both eras, is spoken to in the era of whoever calls.
///
/// Nothing is lost between two of one era, while what a server asks in one era it may not know how
/// to ask in the other. Only servers on the web are tried: a program would have to be started twice.
#[derive(Debug, Clone)]
pub struct Matched {
    upstream: Upstream,
    /// The same server in the handshake era, if the first connection is not of that.
    handshake: Option<Upstream>,
}

impl Matched {
    /// Connects the server once more, in the handshake era, if it is a stateless one on the web and
    /// it was left open which era to speak. A server that refuses, or takes longer than a probe may,
    /// is spoken to in one era.
    pub async fn to(upstream: Upstream) -> Self {
        let handshake = match older(&upstream) {
            Some(definition) => {
                let patience = definition.timeouts.probe;
                let handshake = Upstream::new(definition);
                let connected = tokio::time::timeout(patience, handshake.connect()).await;
                matches!(connected, Ok(Ok(()))).then_some(handshake)
            }
            None => None,
        };
        Self {
            upstream,
            handshake,
        }
    }

    /// Keeps both connections up; see [`Upstream::keep_connected`].
    pub async fn keep_connected(&self) {
        let handshake = async {
            if let Some(handshake) = &self.handshake {
                handshake.keep_connected().await;
            }
        };
        tokio::join!(self.upstream.keep_connected(), handshake);
    }

    /// Ends both connections.
    pub async fn disconnect(&self) {
        if let Some(handshake) = &self.handshake {
            handshake.disconnect().await;
        }
        self.upstream.disconnect().await;
    }

    /// The connection for `peer`: that of its era while there is one.
    fn way(&self, peer: &Peer) -> &Upstream {
        match &self.handshake {
            Some(handshake) if peer.revision.era() == Era::Handshake && is_up(handshake) => {
                handshake
            }
            _ => &self.upstream,
        }
    }
}

impl Service for Matched {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.upstream.catalogue()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        Some(self.way(peer).catalogue())
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        self.way(call.peer()).call(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.way(peer).subscribe(peer, uri)
    }
}

/// How a server is connected in the handshake era that is connected in the other.
fn older(upstream: &Upstream) -> Option<Definition> {
    let definition = upstream.definition();
    let is_stateless = upstream.report()?.facts.revision.era() == Era::Stateless;
    let is_open = definition.era.is_none() && matches!(definition.target, Target::Http(_));
    (is_stateless && is_open).then(|| Definition {
        era: Some(Era::Handshake),
        ..definition.clone()
    })
}

fn is_up(upstream: &Upstream) -> bool {
    upstream.status().borrow().state == State::Connected
}
