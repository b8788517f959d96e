//! Sessions of a handshake server, one for each set of callers that share one (TRANSLATION §4).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp::Fault;
use plexus_mcp::messages::ClientCapabilities;
use plexus_service::{Peer, Principal};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::session::Session;
use crate::auth::OwnIdentity;
use crate::lock::lock;

/// How long a session may lie idle.
const IDLE: Duration = Duration::from_mins(10);
/// The most sessions with one server, and of those the most for one principal.
const MAX_SESSIONS: usize = 64;
const MAX_FOR_PRINCIPAL: usize = 8;

/// Callers who share a session: of one principal, with the same capabilities, and if that is what
/// the server is shown, the same credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sharers {
    principal: Principal,
    profile: String,
    credential: Option<[u8; 32]>,
}

impl Sharers {
    pub(super) fn of(peer: &Peer, identity: Option<&OwnIdentity>) -> (Self, ClientCapabilities) {
        let profile = peer.capabilities.profile();
        let sharers = Self {
            principal: peer.principal.clone(),
            profile: profile.raw().as_str().to_owned(),
            credential: identity.and_then(|identity| identity.credential),
        };
        (sharers, profile)
    }
}

/// All sessions but the one that belongs to no caller.
#[derive(Default)]
pub(super) struct Pool {
    places: Mutex<HashMap<Sharers, Arc<Place>>>,
}

/// The place for one session, whether it is open or not.
pub(super) struct Place {
    /// Locked while it is being opened: whoever shares it waits.
    pub(super) session: AsyncMutex<Option<Arc<Session>>>,
    used: Mutex<Instant>,
}

impl Place {
    /// Whether nobody uses it.
    fn is_idle(&self) -> bool {
        let session = self.session.try_lock();
        session.is_ok_and(|session| {
            session
                .as_ref()
                .is_none_or(|session| Arc::strong_count(session) == 1)
        })
    }
}

impl Pool {
    /// The place of `sharers`. Where there are too many, the one that was idle for longest goes.
    pub(super) fn place(&self, sharers: &Sharers) -> Result<Arc<Place>, Fault> {
        let mut places = lock(&self.places);
        let now = Instant::now();
        if let Some(place) = places.get(sharers) {
            *lock(&place.used) = now;
            return Ok(Arc::clone(place));
        }
        let of_principal = |other: &Sharers| other.principal == sharers.principal;
        if places.keys().filter(|other| of_principal(other)).count() >= MAX_FOR_PRINCIPAL {
            evict(&mut places, of_principal)?;
        } else if places.len() >= MAX_SESSIONS {
            evict(&mut places, |_| true)?;
        }
        let place = Arc::new(Place {
            session: AsyncMutex::default(),
            used: Mutex::new(now),
        });
        places.insert(sharers.clone(), Arc::clone(&place));
        Ok(place)
    }

    /// Lets go of sessions that nobody has used for long.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        lock(&self.places).retain(|_, place| {
            let used = *lock(&place.used);
            now.duration_since(used) < IDLE || !place.is_idle()
        });
    }

    /// Lets go of all sessions, and ends what they are in the middle of.
    pub(super) fn stop(&self) {
        for (_, place) in lock(&self.places).drain() {
            if let Ok(session) = place.session.try_lock()
                && let Some(session) = &*session
            {
                session.rpc.stop();
            }
        }
    }
}

/// Makes room among those for which `may_go` holds.
fn evict(
    places: &mut HashMap<Sharers, Arc<Place>>,
    may_go: impl Fn(&Sharers) -> bool,
) -> Result<(), Fault> {
    let idle = places
        .iter()
        .filter(|(sharers, place)| may_go(sharers) && place.is_idle());
    let oldest = idle.min_by_key(|(_, place)| *lock(&place.used));
    let oldest = oldest.map(|(sharers, _)| sharers.clone());
    let busy =
        || Fault::Busy("too many clients use the server at once; try again later".to_owned());
    places.remove(&oldest.ok_or_else(busy)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use plexus_mcp::Revision;
    use plexus_wire::Raw;

    use super::*;

    fn sharers(principal: &str, capabilities: &'static str) -> Sharers {
        let raw = Raw::parse(capabilities.into(), &plexus_wire::Limits::default()).unwrap();
        let capabilities = ClientCapabilities::from_raw(&raw).unwrap();
        let principal = Principal::new(principal);
        let peer = Peer::new(Revision::V2026_07_28, capabilities, None, principal);
        Sharers::of(&peer, None).0
    }

    /// TRANSLATION §4: what means the same is the same, and principals never share.
    #[test]
    fn callers_share_if_they_are_of_one_principal_and_can_do_the_same() {
        let one = sharers("a", r#"{"elicitation":{},"roots":{"listChanged":true}}"#);
        assert_eq!(
            one,
            sharers("a", r#"{"roots":{},"elicitation":{"form":{}}}"#)
        );
        assert_ne!(
            one,
            sharers("b", r#"{"roots":{},"elicitation":{"form":{}}}"#)
        );
        assert_ne!(one, sharers("a", r#"{"roots":{}}"#));
    }

    #[test]
    fn the_longest_idle_place_makes_room_for_another() {
        let pool = Pool::default();
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
        let first = pool.place(&sharers("a", profiles[0])).unwrap();
        for profile in &profiles[1..] {
            pool.place(&sharers("a", profile)).unwrap();
        }
        pool.place(&sharers("a", r#"{"roots":{},"elicitation":{}}"#))
            .unwrap();
        let again = pool.place(&sharers("a", profiles[0])).unwrap();
        assert!(!Arc::ptr_eq(&first, &again), "the first had to go");
    }
}
