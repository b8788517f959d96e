//! Which session a call belongs in.

use std::sync::Arc;

use plexus_mcp::Era;
use plexus_mcp::messages::ClientCapabilities;
use plexus_service::{Peer, Principal};

use super::pool::{Place, Sharers};
use super::{CallFailure, Live, Session, names_calls};
use crate::auth::OwnIdentity;
use crate::connect;
use crate::definition::{Affinity, Target};

impl Live {
    /// The session that a caller's calls belong in.
    pub(super) async fn session_for(
        self: &Arc<Self>,
        peer: &Peer,
    ) -> Result<Arc<Session>, CallFailure> {
        let era = self.facts.revision.era();
        let identity = self.definition.identity(peer)?;
        let is_shared = self.definition.affinity == Affinity::Shared || era == Era::Stateless;
        if is_shared && identity.is_none() {
            return Ok(Arc::clone(&self.own));
        }
        let (sharers, profile) = Sharers::of(peer, identity.as_ref());
        let is_own = profile == self.profile;
        if is_own && identity.is_none() && peer.principal == Principal::anonymous() {
            return Ok(Arc::clone(&self.own));
        }
        let place = self.others.place(&sharers)?;
        if let Ok(open) = place.session.try_lock()
            && let Some(session) = open.as_ref().filter(|session| !session.rpc.is_over())
        {
            return Ok(Arc::clone(session));
        }
        // Boxed, as it is large and seldom needed.
        Box::pin(self.open_session(&place, profile, identity.as_ref())).await
    }

    /// Opens a session for all who share it, unless somebody did meanwhile.
    async fn open_session(
        self: &Arc<Self>,
        place: &Place,
        profile: ClientCapabilities,
        identity: Option<&OwnIdentity>,
    ) -> Result<Arc<Session>, CallFailure> {
        let mut open = place.session.lock().await;
        if let Some(session) = open.as_ref().filter(|session| !session.rpc.is_over()) {
            return Ok(Arc::clone(session));
        }
        let era = self.facts.revision.era();
        let mut definition = self.definition.of_sharers(era, profile, identity);
        if let Target::Http(target) = &definition.target
            && self.is_over_sse()
        {
            definition.target = Target::Sse(target.clone());
        }
        let connected = connect::connect(&Arc::new(definition), &self.tasks).await?;
        let names_calls = names_calls(&self.definition, &self.quirks);
        let revision = connected.facts.revision;
        if revision.era() == Era::Stateless {
            connected.rpc.set_stateless();
        }
        let session = Arc::new(Session::new(connected.rpc, revision, names_calls));
        let heeding = Arc::clone(self).heed(Arc::downgrade(&session), connected.stray);
        self.spawn(heeding);
        *open = Some(Arc::clone(&session));
        Ok(session)
    }
}
