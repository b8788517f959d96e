//! [`Trees`], which reads and changes the stored trees.

mod change;
mod read;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plexus_mcp_core::{Boxed, LocalService, Raw};
use plexus_mcp_store::rusqlite::Connection;
use plexus_mcp_store::{Store, StoreError};

pub use self::read::path_nodes;

use super::error::ArborError;
use super::handle::Handle;
use super::model::{TreeNode, TreeSummary};
use crate::notifying_store::{self, Clock, NotifyingStore};

/// How long a tree without references can be claimed before it is archived.
pub const ARCHIVE_GRACE_PERIOD: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The maximum size of the text of a node, and of all text in one response, in bytes.
pub const MAX_CONTENT_BYTES: usize = 10 * 1024 * 1024;

/// Returns the text that a handle points to; `None` if it points to nothing.
pub type Resolver = Arc<dyn Fn(Handle) -> Boxed<Option<String>> + Send + Sync>;

/// The stored trees, which several agents, people and processes may share. Cheap to clone.
///
/// Every method that writes is atomic: it makes all of its changes or none. If its future is dropped
/// before the transaction starts, nothing is changed; afterwards, the transaction still completes.
#[derive(Clone)]
pub struct Trees {
    store: NotifyingStore,
    resolvers: Arc<HashMap<&'static str, Resolver>>,
    /// Locked while the lists of a service are updated, so that no older list replaces a newer one.
    pub(super) listing: Arc<tokio::sync::Mutex<()>>,
}

/// A write transaction on the trees.
pub type WriteTransaction<'a> = notifying_store::WriteTransaction<'a, Trees>;

/// A node to be added.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct NewTreeNode {
    /// The tree to add the node to.
    pub tree_id: String,
    /// The parent of the new node; the root if `None`.
    pub parent: Option<String>,
    /// The text or handle of the node.
    pub payload: Payload,
    /// The metadata of the node: a JSON object.
    pub metadata: Option<Raw>,
}

/// The content of a node.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a node holds a text or a handle by definition"
)]
pub enum Payload {
    /// A text.
    Text(String),
    /// A pointer to data of another service.
    External(Handle),
}

impl Trees {
    /// Uses the trees in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, Arc::new(Timestamp::now))
    }

    /// Like [`Self::new`], with another clock.
    pub fn with_clock(store: Store, clock: Clock) -> Self {
        Self {
            store: NotifyingStore::new(store, clock),
            resolvers: Arc::default(),
            listing: Arc::default(),
        }
    }

    /// The same trees, in which handles of the plug-in `plugin_id` are resolved by `resolver`.
    #[must_use]
    pub fn resolving(mut self, plugin_id: &'static str, resolver: Resolver) -> Self {
        Arc::make_mut(&mut self.resolvers).insert(plugin_id, resolver);
        self
    }

    /// The same trees, notifying the subscribers of `service`. Handlers of a service must hold
    /// trees without a service, or the service would keep itself alive.
    #[must_use]
    pub fn notifying(&self, service: Option<&LocalService>) -> Self {
        Self {
            store: self.store.notifying(service),
            ..self.clone()
        }
    }

    /// Creates a tree, to which `owner_id` holds one reference.
    ///
    /// # Errors
    /// The metadata is not a JSON object, or is too large.
    pub async fn create(
        &self,
        owner_id: impl Into<String>,
        metadata: Option<Raw>,
    ) -> Result<TreeSummary, ArborError> {
        let owner = owner_id.into();
        self.change(move |change| change.create(&owner, metadata.as_ref()))
            .await
    }

    /// Replaces the metadata of a tree.
    ///
    /// # Errors
    /// No tree has this id, the tree is archived, or the metadata is not valid.
    pub async fn update_metadata(
        &self,
        tree_id: impl Into<String>,
        metadata: Raw,
    ) -> Result<TreeSummary, ArborError> {
        let id = tree_id.into();
        self.change(move |change| change.update_metadata(&id, &metadata))
            .await
    }

    /// Gives `owner_id` `count` more references to a tree. Returns how many it holds then.
    ///
    /// # Errors
    /// No tree has this id, or the tree is archived.
    pub async fn claim(
        &self,
        tree_id: impl Into<String>,
        owner_id: impl Into<String>,
        count: u32,
    ) -> Result<u64, ArborError> {
        let (id, owner) = (tree_id.into(), owner_id.into());
        self.change(move |change| change.claim(&id, &owner, count))
            .await
    }

    /// Takes `count` references to a tree from `owner_id`. Returns how many it holds then.
    ///
    /// # Errors
    /// No tree has this id, the tree is archived, or the owner holds fewer references.
    pub async fn release(
        &self,
        tree_id: impl Into<String>,
        owner_id: impl Into<String>,
        count: u32,
    ) -> Result<u64, ArborError> {
        let (id, owner) = (tree_id.into(), owner_id.into());
        self.change(move |change| change.release(&id, &owner, count))
            .await
    }

    /// Adds a node to a tree.
    ///
    /// # Errors
    /// The tree or the parent does not exist, the tree is not active, or the node is too large.
    pub async fn add(&self, node: NewTreeNode) -> Result<TreeNode, ArborError> {
        self.change(move |change| change.add(node)).await
    }

    /// Makes a node the head of its tree.
    ///
    /// # Errors
    /// The tree or node does not exist, or the tree is not active.
    pub async fn set_head(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<(), ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.change(move |change| change.set_head(&tree, &node))
            .await
    }

    /// The current time of the clock that the trees use.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// The database in which the trees are stored.
    pub fn store(&self) -> &Store {
        self.store.store()
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArborError> + Send + 'static,
    ) -> Result<T, ArborError> {
        self.store().read(work).await
    }

    /// Changes trees, and any other tables of their store, in one transaction. Then the subscribers
    /// of the changed trees are notified.
    pub async fn change<T, E>(
        &self,
        work: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.store.change(work).await
    }
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
