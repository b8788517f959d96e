//! [`Graph`], which reads and changes the context graph.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use plexus_mcp_core::LocalService;
use plexus_mcp_store::Store;
use plexus_mcp_store::rusqlite::{Connection, Transaction};
use tokio::sync::OnceCell;

use super::error::GraphError;
use super::index::{self, Index, IndexCache};
use super::revisions;
use super::trigrams::{Trigrams, Vectorizer};
use super::vector::Vector;
use crate::notifying_store::Clock;

/// The number of nodes that get their vectors in one transaction.
const VECTORIZE_BATCH_NODES: u32 = 64;

/// The context graph: stored texts and links between them. Cheap to clone; all clones share state.
///
/// Several graphs, in one process or in several, may use the same file. Each finds the nodes that
/// the others stored.
///
/// If the future of a method that changes the graph is dropped, the change is made completely or not
/// at all.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    vectorizer: Arc<dyn Vectorizer>,
    clock: Clock,
    index: IndexCache,
    /// The revision up to which subscribers were notified.
    notified_revision: OnceCell<AtomicI64>,
    /// Set when nodes that an earlier version or another vectorizer left out are in the index.
    indexed: OnceCell<()>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("store", &self.store)
            .field("vectorizer", &self.vectorizer)
            .finish_non_exhaustive()
    }
}

impl Graph {
    /// Uses the graph in `store`, which was opened with [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::open(store, Arc::new(Trigrams), Timestamp::now)
    }

    /// Like [`Self::new`], with another vectorizer and another clock.
    pub fn open(
        store: Store,
        vectorizer: Arc<dyn Vectorizer>,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            store,
            vectorizer,
            clock: Arc::new(clock),
            index: IndexCache::default(),
            notified_revision: OnceCell::new(),
            indexed: OnceCell::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn database(&self) -> &Store {
        &self.inner.store
    }

    pub(super) fn vectorizer(&self) -> &Arc<dyn Vectorizer> {
        &self.inner.vectorizer
    }

    /// The current time, in milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> i64 {
        (self.inner.clock)().as_millisecond()
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
        let inner = Arc::clone(&self.inner);
        let write = move |transaction: &Transaction<'_>| {
            let done = work(transaction)?;
            index::maintain(transaction, inner.vectorizer.as_ref())?;
            Ok(done)
        };
        self.inner.store.write(write).await
    }

    /// Reads with the search index.
    pub(super) async fn with_index<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Index<'_>) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, GraphError> {
        self.complete_index().await;
        let inner = Arc::clone(&self.inner);
        let read = move |db: &Connection| {
            let index = Index::open(db, &inner.index, inner.vectorizer.as_ref())?;
            work(db, &index)
        };
        self.inner.store.read(read).await
    }

    /// Makes the vectors that are missing and stores the index of nodes that it lacks, once.
    pub(super) async fn complete_index(&self) {
        let complete = async || {
            self.vectorize_missing().await;
            if let Err(error) = self.store_index().await {
                tracing::warn!(%error, "cannot store the search index; searches take longer");
            }
        };
        self.inner.indexed.get_or_init(complete).await;
    }

    /// Stores the index of the nodes that an earlier version stored without it.
    async fn store_index(&self) -> Result<(), GraphError> {
        let is_stored = self.read(|db| Ok(index::is_stored(db)?)).await?;
        if is_stored {
            return Ok(());
        }
        loop {
            let inner = Arc::clone(&self.inner);
            let write = move |transaction: &Transaction<'_>| {
                Ok::<_, GraphError>(index::maintain(transaction, inner.vectorizer.as_ref())?)
            };
            if !self.inner.store.write(write).await? {
                return Ok(());
            }
        }
    }

    /// The vector of a text; `None` if the vectorizer fails. The text is stored without a vector then.
    pub(super) async fn vectorize(&self, text: String) -> Option<Vector> {
        match self.inner.vectorizer.vectorize(vec![text]).await {
            Ok(vectors) => vectors.first().map(|vector| Vector::of(vector)),
            Err(error) => {
                let vectorizer = self.inner.vectorizer.name();
                tracing::warn!(vectorizer, %error, "cannot make a vector; similar texts are not found for now");
                None
            }
        }
    }

    /// Records the current revision, unless one is recorded already. [`Graph::notify_changes`] then
    /// covers all later changes.
    pub(crate) async fn track_changes(&self) -> Result<(), GraphError> {
        let revision = async || {
            let revision = self.read(|db| Ok(revisions::revision(db)?)).await?;
            Ok::<_, GraphError>(AtomicI64::new(revision))
        };
        self.inner
            .notified_revision
            .get_or_try_init(revision)
            .await?;
        Ok(())
    }

    /// Notifies subscribers of the nodes that changed since the last call, in this process or in
    /// another.
    pub(crate) async fn notify_changes(&self, service: &LocalService) {
        let Some(notified) = self.inner.notified_revision.get() else {
            return;
        };
        let since = notified.load(Ordering::Acquire);
        match self
            .read(move |db| Ok(revisions::changed(db, since)?))
            .await
        {
            Ok((revision, ids)) => {
                notified.fetch_max(revision, Ordering::AcqRel);
                for id in ids {
                    service.resource_updated(&super::uri(&id));
                }
            }
            Err(error) => tracing::warn!(%error, "cannot notify subscribers of changed nodes"),
        }
    }

    /// Stores a vector for every node that has none, or that has a vector of another vectorizer.
    async fn vectorize_missing(&self) {
        if let Err(error) = self.try_vectorize_missing().await {
            tracing::warn!(%error, "cannot store missing vectors; some nodes are found only by their words");
        }
    }

    async fn try_vectorize_missing(&self) -> Result<(), GraphError> {
        let vectorizer = &self.inner.vectorizer;
        let name = vectorizer.name().to_owned();
        let have_vectors = move |db: &Connection| Ok(revisions::have_vectors(db, &name)?);
        if self.read(have_vectors).await? {
            return Ok(());
        }
        let mut after = String::new();
        loop {
            let name = vectorizer.name().to_owned();
            let missing = self
                .read(move |db| {
                    Ok(revisions::without_vector(
                        db,
                        &name,
                        &after,
                        VECTORIZE_BATCH_NODES,
                    )?)
                })
                .await?;
            let Some(last) = missing.last() else {
                return Ok(());
            };
            after = last.id.clone();
            let texts = missing.iter().map(|node| node.text.clone()).collect();
            let vectors = match vectorizer.vectorize(texts).await {
                Ok(vectors) => vectors,
                Err(error) => {
                    tracing::warn!(vectorizer = vectorizer.name(), %error, "cannot make vectors; some nodes are found only by their words");
                    return Ok(());
                }
            };
            let name = vectorizer.name().to_owned();
            // Without maintaining the index: it would store nodes that get their vectors next.
            let write = move |transaction: &Transaction<'_>| {
                for (node, vector) in missing.iter().zip(&vectors) {
                    revisions::set_vector(transaction, node, &name, &Vector::of(vector))?;
                }
                Ok::<_, GraphError>(())
            };
            self.inner.store.write(write).await?;
        }
    }
}
