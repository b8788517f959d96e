//! Sessions of callers with one server, one for each `SessionKey` (TRANSLATION §4): of every handshake
//! server over HTTP, and of a stateless server whose callers have credentials of their own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use plexus_mcp_core::{Peer, Principal};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::{Era, Fault};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::session::Session;
use super::start_backoff::StartBackoff;
use crate::auth::OwnIdentity;
use crate::backoff;
use crate::child::Grace;
use crate::connect::ConnectError;
use crate::definition::SessionLimits;
use crate::error_text::brief;
use crate::lock::lock;

/// Callers with equal keys share a session: of one principal, with the same capabilities, and where
/// the server sees the caller's credential, with the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    principal: Principal,
    profile: String,
    credential: Option<[u8; 32]>,
    era: Era,
}

impl SessionKey {
    pub(super) fn of(
        peer: &Peer,
        identity: Option<&OwnIdentity>,
        era: Era,
    ) -> (Self, ClientCapabilities) {
        let profile = peer.capabilities.profile();
        let key = Self {
            principal: peer.principal.clone(),
            profile: profile.raw().as_str().to_owned(),
            credential: identity.and_then(|identity| identity.credential),
            era,
        };
        (key, profile)
    }
}

/// The sessions of callers; the server's own session is not among them.
#[derive(Default)]
pub(super) struct SessionPool {
    slots: Mutex<HashMap<SessionKey, Arc<SessionSlot>>>,
    limits: SessionLimits,
    is_stopped: AtomicBool,
}

/// The slot for one session, whether it is open or not.
pub(super) struct SessionSlot {
    /// Locked while it is being opened: callers that share it wait.
    pub(super) state: AsyncMutex<SlotState>,
    used: Mutex<Instant>,
}

#[derive(Default)]
pub(super) struct SlotState {
    session: Option<Arc<Session>>,
    /// When and why the session could last not be opened.
    failed: Option<(Instant, ConnectError)>,
    /// Of the process of the session, if it has one.
    starts: StartBackoff,
}

impl SlotState {
    /// The session, if it is open.
    pub(super) fn open_session(&self) -> Option<&Arc<Session>> {
        let session = self.session.as_ref();
        session.filter(|session| session.is_usable())
    }

    /// Whether a process may be started: not if the last start was too short a time ago and its process
    /// ended without having answered a call.
    pub(super) fn check_start(&mut self) -> Result<(), ConnectError> {
        // Taken, so that it resets the backoff of one start only.
        let ended = self.session.take_if(|session| session.has_answered());
        if ended.is_some() {
            self.starts.reset();
        }
        let remaining = self.starts.remaining(Instant::now());
        if remaining.is_zero() {
            return Ok(());
        }
        let reason = match (&self.failed, &self.session) {
            (Some((_, error)), None) => error.to_string(),
            (_, Some(session)) => session.rpc.end_reason().to_string(),
            (None, None) => "it has just been started".to_owned(),
        };
        let reason = format!(
            "{}; the next start is in {:.1} s",
            brief(&reason),
            remaining.as_secs_f32()
        );
        Err(ConnectError::NotStarted(reason))
    }

    /// Records a start that has led to a session or to an error.
    pub(super) fn note_start(&mut self, start: Instant) {
        self.starts.started(start, backoff::random());
    }

    pub(super) fn set_open(&mut self, session: Arc<Session>) {
        self.session = Some(session);
        self.failed = None;
    }

    pub(super) fn set_failed(&mut self, error: ConnectError) {
        self.session = None;
        self.failed = Some((Instant::now(), error));
    }

    /// The error of an attempt that ended at `time` or later.
    pub(super) fn failed_since(&self, time: Instant) -> Option<ConnectError> {
        let (at, error) = self.failed.as_ref()?;
        (*at >= time).then(|| error.clone())
    }
}

impl SessionSlot {
    /// The session, if it is open and not being replaced.
    pub(super) fn open_session(&self) -> Option<Arc<Session>> {
        self.state.try_lock().ok()?.open_session().cloned()
    }

    /// Whether no call uses it.
    fn is_idle(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| {
            let session = state.session.as_ref();
            session.is_none_or(|session| Arc::strong_count(session) == 1)
        })
    }
}

impl SessionPool {
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self {
            slots: Mutex::default(),
            limits,
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The slot of `key`. Where there are too many, the one that was idle for longest goes.
    pub(super) fn slot(&self, key: &SessionKey) -> Result<Arc<SessionSlot>, Fault> {
        let mut slots = lock(&self.slots);
        let now = Instant::now();
        if let Some(slot) = slots.get(key) {
            *lock(&slot.used) = now;
            return Ok(Arc::clone(slot));
        }
        let of_principal = |other: &SessionKey| other.principal == key.principal;
        if slots.keys().filter(|other| of_principal(other)).count() >= self.limits.max_per_principal
        {
            evict(&mut slots, of_principal)?;
        } else if slots.len() >= self.limits.max_sessions {
            evict(&mut slots, |_| true)?;
        }
        let slot = Arc::new(SessionSlot {
            state: AsyncMutex::default(),
            used: Mutex::new(now),
        });
        slots.insert(key.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    /// Evicts sessions that were not used for the idle timeout.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        lock(&self.slots).retain(|_, slot| {
            let used = *lock(&slot.used);
            now.duration_since(used) < self.limits.idle_timeout || !slot.is_idle()
        });
    }

    /// Whether all sessions were closed or stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Closes all sessions, cancels their calls, and waits for the end of their processes.
    pub(super) async fn close(&self, grace: Grace) {
        self.is_stopped.store(true, Ordering::Release);
        let slots: Vec<_> = lock(&self.slots).drain().collect();
        let closing = slots.into_iter().map(|(_, slot)| async move {
            let session = slot.state.lock().await.session.take();
            if let Some(session) = session {
                session.rpc.close_within(grace).await;
            }
        });
        join_all(closing).await;
    }

    /// Closes all sessions, and cancels their calls, without waiting.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        for (_, slot) in lock(&self.slots).drain() {
            if let Ok(state) = slot.state.try_lock()
                && let Some(session) = &state.session
            {
                session.rpc.stop();
            }
        }
    }
}

/// Evicts the session that was idle for longest, among those for which `may_go` holds.
fn evict(
    slots: &mut HashMap<SessionKey, Arc<SessionSlot>>,
    may_go: impl Fn(&SessionKey) -> bool,
) -> Result<(), Fault> {
    let idle = slots
        .iter()
        .filter(|(key, slot)| may_go(key) && slot.is_idle());
    let oldest = idle.min_by_key(|(_, slot)| *lock(&slot.used));
    let oldest = oldest.map(|(key, _)| key.clone());
    let busy =
        || Fault::Busy("too many clients use the server at once; try again later".to_owned());
    slots.remove(&oldest.ok_or_else(busy)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use plexus_mcp_protocol::Revision;
    use plexus_mcp_wire::Raw;

    use super::*;

    fn key(principal: &str, capabilities: &'static str) -> SessionKey {
        let raw = Raw::parse(capabilities.into(), &plexus_mcp_wire::Limits::default()).unwrap();
        let capabilities = ClientCapabilities::from_raw(&raw).unwrap();
        let principal = Principal::new(principal);
        let peer = Peer::new(Revision::V2026_07_28, capabilities, None, principal);
        SessionKey::of(&peer, None, Era::Handshake).0
    }

    /// TRANSLATION §4: what means the same is the same, and principals never share.
    #[test]
    fn callers_share_if_they_are_of_one_principal_and_can_do_the_same() {
        let one = key("a", r#"{"elicitation":{},"roots":{"listChanged":true}}"#);
        assert_eq!(one, key("a", r#"{"roots":{},"elicitation":{"form":{}}}"#));
        assert_ne!(one, key("b", r#"{"roots":{},"elicitation":{"form":{}}}"#));
        assert_ne!(one, key("a", r#"{"roots":{}}"#));
    }

    #[test]
    fn the_longest_idle_place_makes_room_for_another() {
        let pool = SessionPool::default();
        let profiles = [
            "{}",
            r#"{"roots":{}}"#,
            r#"{"sampling":{}}"#,
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"sampling":{"tools":{}}}"#,
            r#"{"sampling":{"context":{}}}"#,
            r#"{"roots":{},"sampling":{}}"#,
        ];
        let first = pool.slot(&key("a", profiles[0])).unwrap();
        for profile in &profiles[1..] {
            pool.slot(&key("a", profile)).unwrap();
        }
        pool.slot(&key("a", r#"{"roots":{},"elicitation":{}}"#))
            .unwrap();
        let again = pool.slot(&key("a", profiles[0])).unwrap();
        assert!(!Arc::ptr_eq(&first, &again), "the first had to go");
    }
}
