//! What tasks and trees are kept in, and what all changes of them have in common: a transaction,
//! its time, new ids, and news for those who watch.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use plexus_service::LocalService;
use plexus_store::rusqlite::Transaction;
use plexus_store::{Store, StoreError};
use uuid::{ContextV7, Uuid};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A store, by a clock, with somebody to tell. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ledger {
    store: Store,
    clock: Clock,
    ids: Arc<Ids>,
    /// Whose subscribers are told of changes.
    service: Option<LocalService>,
}

/// Keeps ids in order that are made in the same millisecond.
type Ids = Mutex<ContextV7>;

impl Ledger {
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

    /// The same, telling the subscribers of `service` what changes; without one, nobody.
    pub(crate) fn announcing_to(&self, service: Option<&LocalService>) -> Self {
        Self {
            service: service.cloned(),
            ..self.clone()
        }
    }

    /// Makes a change in one transaction; then those who watch what it touched are told, even if
    /// the caller has gone by then.
    pub(crate) async fn change<Of, T, E>(
        &self,
        work: impl FnOnce(&mut Change<'_, Of>) -> Result<T, E> + Send + 'static,
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
            let mut change = Change {
                db,
                now: clock(),
                touched: BTreeSet::new(),
                ids: &ids,
                of: PhantomData,
            };
            let done = work(&mut change)?;
            let touched = change.touched;
            Ok::<_, E>((done, News { service, touched }))
        });
        written.await.map(|(done, _told)| done)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A change under way. `Of` is what is changed, which adds methods of its own.
pub(crate) struct Change<'a, Of> {
    pub(crate) db: &'a Transaction<'a>,
    pub(crate) now: Timestamp,
    /// The resources that are different now.
    pub(crate) touched: BTreeSet<String>,
    ids: &'a Ids,
    of: PhantomData<Of>,
}

impl<Of> Change<'_, Of> {
    /// An id that nothing else has. Ids sort by the time at which they were made.
    pub(crate) fn new_id(&self) -> Uuid {
        let since_1970 = self.now.as_duration();
        let seconds = u64::try_from(since_1970.as_secs()).unwrap_or(0);
        let nanoseconds = since_1970.subsec_nanos().unsigned_abs();
        Uuid::new_v7(uuid::Timestamp::from_unix(self.ids, seconds, nanoseconds))
    }
}

/// A time as it is stored and shown: in texts of one length, so that they compare as what they
/// mean.
pub(crate) fn written(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Told when it is dropped.
struct News {
    service: Option<LocalService>,
    touched: BTreeSet<String>,
}

impl Drop for News {
    fn drop(&mut self) {
        if let Some(service) = &self.service {
            for uri in &self.touched {
                service.resource_updated(uri);
            }
        }
    }
}
