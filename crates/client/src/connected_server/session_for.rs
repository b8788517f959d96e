//! Chooses or opens the session for a call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plexus_mcp_core::{Peer, Principal};
use plexus_mcp_protocol::Era;
use plexus_mcp_protocol::messages::ClientCapabilities;
use tokio::time::timeout;

use super::session_pool::{SessionKey, SessionSlot};
use super::{CallFailure, ConnectedServer, Session, names_calls};
use crate::auth::OwnIdentity;
use crate::connect::{self, ConnectError};
use crate::definition::{Affinity, Target};
use crate::link::LinkError;

impl ConnectedServer {
    /// The session that a caller's calls belong in.
    ///
    /// A server over HTTP that speaks both eras is spoken to in the era of each caller: nothing is
    /// lost between two of one era, while what a server asks in one era it may not know how to ask in
    /// the other. Lists and subscriptions are those of the newer era.
    pub(super) async fn session_for(
        self: &Arc<Self>,
        peer: &Peer,
    ) -> Result<Arc<Session>, CallFailure> {
        let identity = self.definition.identity(peer)?;
        if peer.revision.era() == Era::Handshake && self.speaks_both_eras.load(Ordering::Relaxed) {
            // Boxed: few calls need it.
            let matching = Box::pin(self.matching_session(peer, identity.as_ref()));
            if let Some(session) = matching.await? {
                return Ok(session);
            }
        }
        let era = self.facts.revision.era();
        let is_shared = self.definition.affinity == Affinity::Shared || era == Era::Stateless;
        if is_shared && identity.is_none() {
            return Ok(Arc::clone(&self.own));
        }
        let (key, profile) = SessionKey::of(peer, identity.as_ref(), era);
        let is_own = profile == self.profile;
        if is_own && identity.is_none() && peer.principal == Principal::anonymous() {
            return Ok(Arc::clone(&self.own));
        }
        let slot = self.others.slot(&key)?;
        if let Some(session) = slot.open_session() {
            return Ok(session);
        }
        // Boxed, as it is large and seldom needed.
        let opening = Box::pin(self.open_session(&slot, era, profile, identity.as_ref()));
        Ok(opening.await?)
    }

    /// A session of the handshake era with a server that was found to be stateless. `None` if the
    /// server does not speak that era after all.
    async fn matching_session(
        self: &Arc<Self>,
        peer: &Peer,
        identity: Option<&OwnIdentity>,
    ) -> Result<Option<Arc<Session>>, CallFailure> {
        let era = Era::Handshake;
        let (key, profile) = SessionKey::of(peer, identity, era);
        let slot = self.others.slot(&key)?;
        if let Some(session) = slot.open_session() {
            return Ok(Some(session));
        }
        let opening = self.open_session(&slot, era, profile, identity);
        match timeout(self.definition.timeouts.probe, opening).await {
            Ok(Ok(session)) => Ok(Some(session)),
            Ok(Err(error)) if !error.may_be_wrong_era() => Err(error.into()),
            Ok(Err(_)) | Err(_) => {
                tracing::debug!("the server speaks only the stateless era");
                self.speaks_both_eras.store(false, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    /// Opens a session for all that share it, unless another call did meanwhile.
    async fn open_session(
        self: &Arc<Self>,
        slot: &SessionSlot,
        era: Era,
        profile: ClientCapabilities,
        identity: Option<&OwnIdentity>,
    ) -> Result<Arc<Session>, ConnectError> {
        let mut open = slot.session.lock().await;
        if let Some(session) = open.as_ref().filter(|session| !session.rpc.is_over()) {
            return Ok(Arc::clone(session));
        }
        let mut definition = self.definition.of_sharers(era, profile, identity);
        if let Target::Http(target) = &definition.target
            && self.is_over_sse()
        {
            definition.target = Target::Sse(target.clone());
        }
        let connected = connect::connect(&Arc::new(definition), &self.tasks).await?;
        // The server was disconnected or replaced meanwhile, which stopped only the sessions that
        // were open.
        if self.over.is_cancelled() {
            connected.rpc.stop();
            return Err(LinkError::SessionLost.into());
        }
        let names_calls = names_calls(&self.definition, &self.quirks);
        let revision = connected.facts.revision;
        if revision.era() == Era::Stateless {
            connected.rpc.set_stateless();
        }
        let session = Arc::new(Session::new(connected.rpc, revision, names_calls));
        let heeding =
            Arc::clone(self).handle_stray_messages(Arc::downgrade(&session), connected.stray);
        // The upkeep takes it, unless the connection is over; then nothing is left to be heeded.
        drop(self.opened.send(Box::pin(heeding)).await);
        *open = Some(Arc::clone(&session));
        Ok(session)
    }
}
