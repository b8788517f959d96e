//! The handle through which the graph is read and changed.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};

use jiff::Timestamp;
use plexus_service::LocalService;
use plexus_store::Store;
use plexus_store::rusqlite::{Connection, Transaction};
use tokio::sync::OnceCell;

use super::embed::{Embedder, Trigrams};
use super::error::GraphError;
use super::index::Index;
use super::sync::{self, Followed};
use super::vector::Vector;

/// How many texts are embedded in one go, when there are many.
const BATCH: u32 = 64;

/// A memory of texts, linked to each other. Cheap to clone: all clones are one.
///
/// The same file may be used by many graphs, in one process or several. Each of them finds what
/// the others stored.
///
/// Dropping the future of a method that changes the graph means that the change is made whole or
/// not at all.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    embedder: Arc<dyn Embedder>,
    clock: Clock,
    index: RwLock<Followed>,
    /// The revision up to which subscribers have been told.
    announced: OnceCell<AtomicI64>,
    embedded: OnceCell<()>,
}

#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Graph {
    /// The graph in `store`, which was opened with [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::open(store, Arc::new(Trigrams), Timestamp::now)
    }

    /// The same, with another embedder and another clock.
    pub fn open(
        store: Store,
        embedder: Arc<dyn Embedder>,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let index = RwLock::new(Followed::new(embedder.dimensions().get()));
        let inner = Inner {
            store,
            embedder,
            clock: Clock(Arc::new(clock)),
            index,
            announced: OnceCell::new(),
            embedded: OnceCell::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn database(&self) -> &Store {
        &self.inner.store
    }

    pub(super) fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.inner.embedder
    }

    /// The time, in milliseconds.
    pub(super) fn now(&self) -> i64 {
        (self.inner.clock.0)().as_millisecond()
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, GraphError> {
        self.inner.store.read(work).await
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, GraphError> {
        self.inner.store.write(work).await
    }

    /// Reads with an index that knows everything in the store.
    pub(super) async fn with_index<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Index) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, GraphError> {
        self.inner
            .embedded
            .get_or_init(|| self.embed_missing())
            .await;
        let inner = Arc::clone(&self.inner);
        let read = move |db: &Connection| {
            let index = sync::follow(&inner.index, db, inner.embedder.as_ref())?;
            work(db, index.index())
        };
        self.inner.store.read(read).await
    }

    /// The vector of a text; none if the embedder fails, which is no reason to lose the text.
    pub(super) async fn embed(&self, text: String) -> Option<Vector> {
        match self.inner.embedder.embed(vec![text]).await {
            Ok(vectors) => vectors.first().map(|vector| Vector::of(vector)),
            Err(error) => {
                let embedder = self.inner.embedder.name();
                tracing::warn!(embedder, %error, "going on without a vector");
                None
            }
        }
    }

    /// From the first time on, changes are remembered for [`Graph::announce`].
    pub(crate) async fn attend(&self) -> Result<(), GraphError> {
        let revision = async || {
            let revision = self.read(|db| Ok(sync::revision(db)?)).await?;
            Ok::<_, GraphError>(AtomicI64::new(revision))
        };
        self.inner.announced.get_or_try_init(revision).await?;
        Ok(())
    }

    /// Tells those who watch nodes which of them changed, here or in another process, since the
    /// last time.
    pub(crate) async fn announce(&self, service: &LocalService) {
        let Some(announced) = self.inner.announced.get() else {
            return;
        };
        let since = announced.load(Ordering::Acquire);
        match self.read(move |db| Ok(sync::changed(db, since)?)).await {
            Ok((revision, ids)) => {
                announced.fetch_max(revision, Ordering::AcqRel);
                for id in ids {
                    service.resource_updated(&super::uri(&id));
                }
            }
            Err(error) => tracing::warn!(%error, "subscribers are not told what changed"),
        }
    }

    /// Gives a vector to every node that has none, or one of another embedder.
    async fn embed_missing(&self) {
        if let Err(error) = self.try_embed_missing().await {
            tracing::warn!(%error, "some nodes can be found only by their words");
        }
    }

    async fn try_embed_missing(&self) -> Result<(), GraphError> {
        let embedder = &self.inner.embedder;
        let mut after = String::new();
        loop {
            let name = embedder.name().to_owned();
            let missing = self
                .read(move |db| Ok(sync::without_vector(db, &name, &after, BATCH)?))
                .await?;
            let Some(last) = missing.last() else {
                return Ok(());
            };
            after = last.id.clone();
            let texts = missing.iter().map(|node| node.text.clone()).collect();
            let vectors = match embedder.embed(texts).await {
                Ok(vectors) => vectors,
                Err(error) => {
                    tracing::warn!(embedder = embedder.name(), %error, "some nodes have no vector");
                    return Ok(());
                }
            };
            let name = embedder.name().to_owned();
            self.write(move |transaction| {
                for (node, vector) in missing.iter().zip(&vectors) {
                    sync::set_vector(transaction, node, &name, &Vector::of(vector))?;
                }
                Ok(())
            })
            .await?;
        }
    }
}
