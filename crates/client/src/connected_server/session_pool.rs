//! Sessions of callers with one server, one for each `SessionKey` (TRANSLATION §4): of every handshake
//! server over HTTP, and of a stateless server whose callers have credentials of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use plexus_mcp_core::{Peer, Principal};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::{Era, Fault};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::session::Session;
use crate::auth::OwnIdentity;
use crate::definition::SessionLimits;
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
}

/// The slot for one session, whether it is open or not.
pub(super) struct SessionSlot {
    /// Locked while it is being opened: callers that share it wait.
    pub(super) session: AsyncMutex<Option<Arc<Session>>>,
    used: Mutex<Instant>,
}

impl SessionSlot {
    /// The session, if it is open and not being replaced.
    pub(super) fn open_session(&self) -> Option<Arc<Session>> {
        let open = self.session.try_lock().ok()?;
        open.as_ref()
            .filter(|session| !session.rpc.is_over())
            .cloned()
    }

    /// Whether no call uses it.
    fn is_idle(&self) -> bool {
        let session = self.session.try_lock();
        session.is_ok_and(|session| {
            session
                .as_ref()
                .is_none_or(|session| Arc::strong_count(session) == 1)
        })
    }
}

impl SessionPool {
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self {
            slots: Mutex::default(),
            limits,
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
            session: AsyncMutex::default(),
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

    /// Closes all sessions, and cancels their calls.
    pub(super) fn stop(&self) {
        for (_, slot) in lock(&self.slots).drain() {
            if let Ok(session) = slot.session.try_lock()
                && let Some(session) = &*session
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
