//! A database whose changes are transactions with a timestamp, new ids, and notifications.
//!
//! Tasks and trees use it: a change is one transaction, and the subscribers of the resources that it
//! changed are notified after the commit.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use plexus_mcp_core::LocalService;
use plexus_mcp_store::rusqlite::Transaction;
use plexus_mcp_store::{Store, StoreError};
use uuid::{ContextV7, Uuid};

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A database, a clock, an id generator, and the service whose subscribers are notified. Cheap to
/// clone.
#[derive(Clone)]
pub(crate) struct NotifyingStore {
    store: Store,
    clock: Clock,
    ids: Arc<Ids>,
    /// The service whose subscribers are notified of changes.
    service: Option<LocalService>,
}

/// Keeps ids of the same millisecond in order (UUID version 7).
type Ids = Mutex<ContextV7>;

impl NotifyingStore {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            clock,
            ids: Arc::new(Mutex::new(ContextV7::new())),
            service: None,
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The same database, notifying the subscribers of `service`, if there is one.
    pub(crate) fn notifying(&self, service: Option<&LocalService>) -> Self {
        Self {
            service: service.cloned(),
            ..self.clone()
        }
    }

    /// Runs `work` in one transaction. After the commit, subscribers of the changed resources are
    /// notified, even if the future was dropped by then.
    pub(crate) async fn change<Of, T, E>(
        &self,
        work: impl FnOnce(&mut WriteTransaction<'_, Of>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let Self {
            store,
            clock,
            ids,
            service,
        } = self.clone();
        let written = store.write(move |db| {
            let mut change = WriteTransaction {
                db,
                now: clock(),
                changed_uris: BTreeSet::new(),
                ids: &ids,
                of: PhantomData,
            };
            let done = work(&mut change)?;
            let changed_uris = change.changed_uris;
            Ok::<_, E>((
                done,
                ChangeNotification {
                    service,
                    changed_uris,
                },
            ))
        });
        written.await.map(|(done, _notification)| done)
    }
}

impl fmt::Debug for NotifyingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyingStore")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A write transaction. `Of` is the type whose data it changes, which adds methods of its own.
pub struct WriteTransaction<'a, Of> {
    /// The transaction.
    pub db: &'a Transaction<'a>,
    /// When the change is made.
    pub now: Timestamp,
    /// The URIs of the resources that the transaction changes.
    pub changed_uris: BTreeSet<String>,
    ids: &'a Ids,
    of: PhantomData<Of>,
}

impl<Of> WriteTransaction<'_, Of> {
    /// A new unique id (UUID version 7). Ids sort by creation time.
    pub fn new_id(&self) -> Uuid {
        let since_1970 = self.now.as_duration();
        let seconds = u64::try_from(since_1970.as_secs()).unwrap_or(0);
        let nanoseconds = since_1970.subsec_nanos().unsigned_abs();
        Uuid::new_v7(uuid::Timestamp::from_unix(self.ids, seconds, nanoseconds))
    }
}

impl<Of> fmt::Debug for WriteTransaction<'_, Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTransaction")
            .field("now", &self.now)
            .field("changed_uris", &self.changed_uris)
            .finish_non_exhaustive()
    }
}

/// A time in RFC 3339 with milliseconds, as it is stored and shown. All have the same length, so they
/// sort by time as text.
pub fn timestamp_text(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Notifies subscribers when it is dropped: after the commit, or not at all if the transaction failed.
struct ChangeNotification {
    service: Option<LocalService>,
    changed_uris: BTreeSet<String>,
}

impl Drop for ChangeNotification {
    fn drop(&mut self) {
        if let Some(service) = &self.service {
            for uri in &self.changed_uris {
                service.resource_updated(uri);
            }
        }
    }
}
