//! Where trees are read and changed.

mod change;
mod read;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plexus_service::{Boxed, LocalService, Raw};
use plexus_store::rusqlite::Connection;
use plexus_store::{Store, StoreError};

pub(crate) use self::read::path_nodes;

use super::error::ArborError;
use super::handle::Handle;
use super::model::{Node, TreeSummary};
use crate::ledger::{self, Clock, Ledger};

/// For how long a tree that nobody holds can be claimed before it is archived.
pub const GRACE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The most bytes that a node may hold, and the most text that is given at once.
pub const MAX_CONTENT: usize = 10 * 1024 * 1024;

/// Gives the text behind a handle; `None` if there is none.
pub type Resolver = Arc<dyn Fn(Handle) -> Boxed<Option<String>> + Send + Sync>;

/// Trees, which several agents, people and processes may share. Cheap to clone.
///
/// Every method that changes something does all of it or, if it fails, nothing. Dropping its future
/// before it is its turn means that nothing is done; later, that it is done all the same.
#[derive(Clone)]
pub struct Trees {
    ledger: Ledger,
    resolvers: Arc<HashMap<&'static str, Resolver>>,
    /// Held while what a service lists is brought up to date, so that no older list replaces a
    /// newer one.
    pub(super) listing: Arc<tokio::sync::Mutex<()>>,
}

/// A change of trees under way.
pub(crate) type Change<'a> = ledger::Change<'a, Trees>;

/// A node to be added.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct NewNode {
    /// To which tree.
    pub tree_id: String,
    /// To which node of it; to the root if none is named.
    pub parent: Option<String>,
    /// What it holds.
    pub payload: Payload,
    /// What else is known of it: a JSON object.
    pub metadata: Option<Raw>,
}

/// What a node holds.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a node is one or the other by definition"
)]
pub enum Payload {
    /// A text.
    Text(String),
    /// A pointer to what another activation has.
    External(Handle),
}

impl Trees {
    /// The trees in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, Arc::new(Timestamp::now))
    }

    /// The same, going by another clock.
    pub fn with_clock(store: Store, clock: Clock) -> Self {
        Self {
            ledger: Ledger::new(store, clock),
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

    /// The same trees, telling the subscribers of `service` what changes. What a service keeps must
    /// not keep the service, so it tells nobody.
    pub(crate) fn announcing_to(&self, service: Option<&LocalService>) -> Self {
        Self {
            ledger: self.ledger.announcing_to(service),
            ..self.clone()
        }
    }

    /// A new tree, to which `owner_id` holds one reference.
    ///
    /// # Errors
    /// Its metadata cannot be kept.
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
    /// There is none of this id, it is archived, or the metadata cannot be kept.
    pub async fn update_metadata(
        &self,
        tree_id: impl Into<String>,
        metadata: Raw,
    ) -> Result<TreeSummary, ArborError> {
        let id = tree_id.into();
        self.change(move |change| change.update_metadata(&id, &metadata))
            .await
    }

    /// Gives `owner_id` so many more references to a tree, and tells how many are theirs.
    ///
    /// # Errors
    /// There is none of this id, or it is archived.
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

    /// Takes so many references to a tree from `owner_id`, and tells how many are left to them.
    ///
    /// # Errors
    /// There is none of this id, it is archived, or they do not hold so many.
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

    /// Adds a node.
    ///
    /// # Errors
    /// Its tree or parent is not there, the tree is not active, or the node is too large.
    pub async fn add(&self, node: NewNode) -> Result<Node, ArborError> {
        self.change(move |change| change.add(node)).await
    }

    /// Puts the head of a tree on one of its nodes.
    ///
    /// # Errors
    /// The tree or node is not there, or the tree is not active.
    pub async fn set_head(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<(), ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.change(move |change| change.set_head(&tree, &node))
            .await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.ledger.now()
    }

    pub(crate) fn store(&self) -> &Store {
        self.ledger.store()
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArborError> + Send + 'static,
    ) -> Result<T, ArborError> {
        self.store().read(work).await
    }

    /// Changes trees, and whatever else is in their store, in one transaction; then those who
    /// watch the trees are told.
    pub(crate) async fn change<T, E>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.ledger.change(work).await
    }
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}
