//! Chooses or opens the session for a call.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::{Peer, Principal};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::{Era, code};
use tokio::time::{Instant, timeout};

use super::session_pool::{SessionKey, SessionSlot};
use super::{CallFailure, ConnectedServer, Session, names_calls};
use crate::auth::OwnIdentity;
use crate::connect::{self, ConnectError, Connected, Starts};
use crate::definition::{Affinity, Definition, Target};
use crate::link::LinkError;
use crate::lock::lock;
use crate::upstream::holding;

/// How long callers of the handshake era are served in the stateless era after a handshake with a
/// stateless server failed for a reason that may be temporary.
const HANDSHAKE_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Whether a server that was detected as stateless may also speak the handshake era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeEra {
    /// It does, or was not asked.
    Possible,
    /// It could not be asked. The next attempt is made then.
    NotBefore(Instant),
    /// It refused the handshake, or its definition has an era.
    Unsupported,
}

impl ConnectedServer {
    /// The session for the calls of a caller.
    ///
    /// A dual-era server over HTTP is called in the era of each caller, because a question of one
    /// era may have no counterpart in the other. Lists and subscriptions use the stateless era.
    pub(super) async fn session_for(
        self: &Arc<Self>,
        peer: &Peer,
    ) -> Result<Arc<Session>, CallFailure> {
        let identity = self.definition.identity(peer)?;
        let handshake_era = *lock(&self.handshake_era);
        if peer.revision.era() == Era::Handshake && handshake_era != HandshakeEra::Unsupported {
            let matching = self.matching_session(peer, identity.as_ref());
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

    /// A session of the handshake era with a server that was detected as stateless. `None` if the
    /// server does not speak that era, or could not be asked a short time ago.
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
        if let HandshakeEra::NotBefore(retry_at) = *lock(&self.handshake_era)
            && Instant::now() < retry_at
        {
            return Ok(None);
        }
        let opening = self.open_session(&slot, era, profile, identity);
        let handshake_era = match timeout(self.definition.timeouts.probe, opening).await {
            Ok(Ok(session)) => {
                *lock(&self.handshake_era) = HandshakeEra::Possible;
                return Ok(Some(session));
            }
            Ok(Err(error)) if !error.may_be_wrong_era() => return Err(error.into()),
            Ok(Err(error)) if refuses_handshake(&error) => {
                tracing::debug!(%error, "the server speaks only the stateless era");
                HandshakeEra::Unsupported
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!("no handshake with a server of the stateless era");
                HandshakeEra::NotBefore(Instant::now() + HANDSHAKE_RETRY_INTERVAL)
            }
        };
        *lock(&self.handshake_era) = handshake_era;
        Ok(None)
    }

    /// Opens a session for all that share it. A call that waits for the attempt of another one gets
    /// its outcome.
    async fn open_session(
        self: &Arc<Self>,
        slot: &SessionSlot,
        era: Era,
        profile: ClientCapabilities,
        identity: Option<&OwnIdentity>,
    ) -> Result<Arc<Session>, ConnectError> {
        let since = Instant::now();
        let mut state = slot.state.lock().await;
        if let Some(session) = state.open_session() {
            return Ok(Arc::clone(session));
        }
        if let Some(error) = state.failed_since(since) {
            return Err(error);
        }
        let mut definition = self.definition.of_sharers(era, profile, identity);
        if let Target::Http(target) = &definition.target
            && self.is_over_sse()
        {
            definition.target = Target::Sse(target.clone());
        }
        let is_program = matches!(definition.target, Target::Stdio(_));
        if is_program {
            state.check_start()?;
        }
        let began = Instant::now();
        // Nothing is started or waited for when the server was disconnected or replaced.
        let connecting = Box::pin(self.connect_session(definition));
        let opening = self.over.run_until_cancelled(connecting);
        let connected = opening.await.ok_or(LinkError::SessionLost)?;
        // Only now, so that a start whose call was cancelled does not delay the next one.
        if is_program {
            state.note_start(began);
        }
        let connected = connected.inspect_err(|error| state.set_failed(error.clone()))?;
        let names_calls = names_calls(&self.definition, &self.quirks);
        let revision = connected.facts.revision;
        if revision.era() == Era::Stateless {
            connected.rpc.set_stateless();
        }
        let session = Arc::new(Session::new(connected.rpc, revision, names_calls));
        let heeding =
            Arc::clone(self).handle_stray_messages(Arc::downgrade(&session), connected.stray);
        // If the connection is over, the upkeep has ended, and there are no messages to receive.
        drop(self.opened.send(Box::pin(heeding)).await);
        state.set_open(Arc::clone(&session));
        drop(state);
        // The server may have been disconnected meanwhile, which stops only sessions that are open and
        // not locked. If it was only replaced, the calls that wait for this session still use it.
        if self.others.is_stopped() {
            session.rpc.stop();
            return Err(LinkError::SessionLost.into());
        }
        Ok(session)
    }

    /// Connects a session. A process takes a start slot, like the server's own.
    async fn connect_session(&self, definition: Definition) -> Result<Connected, ConnectError> {
        let slot = if let Target::Stdio(_) = definition.target {
            let slot = self.start_slots.take().await;
            Some(slot.ok_or_else(ConnectError::shutting_down)?)
        } else {
            None
        };
        let (definition, starts) = (Arc::new(definition), Starts::default());
        holding(
            slot,
            connect::connect(&definition, &self.tasks, &self.start_slots, &starts),
        )
        .await
    }
}

/// Whether the failed handshake shows that the server does not speak the handshake era: it refused
/// `initialize` with an answer that will be the same next time.
fn refuses_handshake(error: &ConnectError) -> bool {
    match error {
        ConnectError::Refused { code, .. } => *code != code::INTERNAL_ERROR,
        ConnectError::NoCommonVersion(_) => true,
        ConnectError::Link(LinkError::Http { status, .. }) => {
            matches!(status, 400..=499 | 501) && !matches!(status, 408 | 425 | 429)
        }
        _ => false,
    }
}
