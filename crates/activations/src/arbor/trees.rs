//! Where trees are read and changed.

mod change;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plexus_service::{Boxed, LocalService, Raw};
use plexus_store::Store;
use plexus_store::rusqlite::Connection;

pub(crate) use self::change::{Announcement, Change};

use super::error::ArborError;
use super::handle::Handle;
use super::ids::Ids;
use super::model::{Node, Skeleton, State, Tree, TreeSummary};
use super::tables::{self, PATH};

/// For how long a tree that nobody holds can be claimed before it is archived.
pub const GRACE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The most bytes that a node may hold, and the most text that is given at once.
pub const MAX_CONTENT: usize = 10 * 1024 * 1024;

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Gives the text behind a handle; `None` if there is none.
pub type Resolver = Arc<dyn Fn(Handle) -> Boxed<Option<String>> + Send + Sync>;

/// Trees, which several agents, people and processes may share. Cheap to clone.
///
/// Every method that changes something does all of it or, if it fails, nothing. Dropping its future
/// before it is its turn means that nothing is done; later, that it is done all the same.
#[derive(Clone)]
pub struct Trees {
    store: Store,
    clock: Clock,
    ids: Arc<Ids>,
    resolvers: Arc<HashMap<&'static str, Resolver>>,
    /// Held while what a service lists is brought up to date, so that no older list replaces a
    /// newer one.
    pub(super) listing: Arc<tokio::sync::Mutex<()>>,
    /// Whose subscribers are told of changes.
    service: Option<LocalService>,
}

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
            store,
            clock,
            ids: Arc::new(Ids::new()),
            resolvers: Arc::default(),
            listing: Arc::default(),
            service: None,
        }
    }

    /// The same trees, in which handles of the plug-in `plugin_id` are resolved by `resolver`.
    #[must_use]
    pub fn resolving(mut self, plugin_id: &'static str, resolver: Resolver) -> Self {
        Arc::make_mut(&mut self.resolvers).insert(plugin_id, resolver);
        self
    }

    /// The same trees, telling the subscribers of `service` what changes.
    pub(crate) fn announcing_to(&self, service: &LocalService) -> Self {
        Self {
            service: Some(service.clone()),
            ..self.clone()
        }
    }

    /// The same trees, telling nobody: for what a service keeps, which must not keep the service.
    pub(crate) fn announcing_to_nobody(&self) -> Self {
        Self {
            service: None,
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

    /// One tree, without its nodes.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn summary(&self, tree_id: impl Into<String>) -> Result<TreeSummary, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| tables::tree(db, &id, now)).await
    }

    /// One tree, with all its nodes.
    ///
    /// # Errors
    /// There is none of this id, or it holds too much for one answer.
    pub async fn get(&self, tree_id: impl Into<String>) -> Result<Tree, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| {
            let tree = tables::tree(db, &id, now)?;
            bounded(db, &id, "", "WHERE node.tree_id = ?1", [&id])?;
            let clauses = "WHERE node.tree_id = ?1 ORDER BY node.seq";
            let nodes = tables::nodes(db, "", clauses, [&id])?;
            Ok(Tree { tree, nodes })
        })
        .await
    }

    /// One tree, with the places of its nodes.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn skeleton(&self, tree_id: impl Into<String>) -> Result<Skeleton, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| {
            let tree = tables::tree(db, &id, now)?;
            let nodes = tables::places(db, &id)?;
            Ok(Skeleton { tree, nodes })
        })
        .await
    }

    /// The ids of the trees in this state, the newest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, state: State) -> Result<Vec<String>, ArborError> {
        let now = self.now();
        self.read(move |db| Ok(tables::trees_in(db, state, now, None)?))
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

    /// One node.
    ///
    /// # Errors
    /// The tree has none of this id.
    pub async fn node(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Node, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| node_of(db, &tree, &node)).await
    }

    /// The node that all others descend from.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn root(&self, tree_id: impl Into<String>) -> Result<Node, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.root))
            .await
    }

    /// The node where the conversation goes on.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn head(&self, tree_id: impl Into<String>) -> Result<Node, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.head))
            .await
    }

    /// The ids on the way from the root to a node, both included.
    ///
    /// # Errors
    /// The tree has no such node.
    pub async fn path(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<String>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| {
            present(db, &tree, &node)?;
            let statement = format!("{PATH} SELECT id FROM path ORDER BY up DESC");
            Ok(tables::texts(db, &statement, [&tree, &node])?)
        })
        .await
    }

    /// The nodes on the way from the root to a node, both included.
    ///
    /// # Errors
    /// The tree has no such node, or they hold too much for one answer.
    pub async fn path_nodes(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<Node>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| path_nodes(db, &tree, &node)).await
    }

    /// The ids of the nodes to which nothing was added, the oldest first.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn leaves(&self, tree_id: impl Into<String>) -> Result<Vec<String>, ArborError> {
        let tree = tree_id.into();
        self.read(move |db| {
            tables::must_exist(db, &tree)?;
            let statement = "
                SELECT id FROM arbor_nodes AS node
                WHERE tree_id = ?1
                    AND NOT EXISTS (SELECT 1 FROM arbor_nodes WHERE parent_id = node.id)
                ORDER BY seq";
            Ok(tables::texts(db, statement, [&tree])?)
        })
        .await
    }

    /// The handles on the way from the root to a node.
    ///
    /// # Errors
    /// The tree has no such node.
    pub async fn handles(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<String>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| {
            present(db, &tree, &node)?;
            let statement = format!(
                "{PATH} SELECT node.handle FROM path JOIN arbor_nodes AS node USING (seq)
                 WHERE node.handle IS NOT NULL ORDER BY path.up DESC"
            );
            Ok(tables::texts(db, &statement, [&tree, &node])?)
        })
        .await
    }

    /// The text behind a handle, if whoever has it says so.
    pub async fn resolve(&self, handle: &str) -> Option<String> {
        let handle: Handle = handle.parse().ok()?;
        let resolver = self.resolvers.get(handle.plugin_id.as_str())?;
        resolver(handle).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArborError> + Send + 'static,
    ) -> Result<T, ArborError> {
        self.store.read(work).await
    }

    /// Changes trees, and whatever else is in their store, in one transaction; then those who
    /// watch the trees are told.
    pub(crate) async fn change<T, E>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<plexus_store::StoreError> + Send + 'static,
    {
        let Self {
            store,
            clock,
            ids,
            service,
            ..
        } = self.clone();
        let written = store.write(move |db| {
            let mut change = Change::new(db, clock(), &ids);
            let done = work(&mut change)?;
            Ok::<_, E>((done, change.announcement(service)))
        });
        written.await.map(|(done, announcement)| {
            drop::<Announcement>(announcement);
            done
        })
    }
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

pub(crate) fn node_of(db: &Connection, tree: &str, node: &str) -> Result<Node, ArborError> {
    tables::must_exist(db, tree)?;
    let clauses = "WHERE node.tree_id = ?1 AND node.id = ?2";
    let mut found = tables::nodes(db, "", clauses, [tree, node])?;
    found.pop().ok_or_else(|| ArborError::NodeNotFound {
        tree_id: tree.to_owned(),
        node_id: node.to_owned(),
    })
}

pub(crate) fn path_nodes(db: &Connection, tree: &str, node: &str) -> Result<Vec<Node>, ArborError> {
    present(db, tree, node)?;
    let joined = "JOIN path USING (seq)";
    bounded(db, tree, PATH, joined, [tree, node])?;
    let clauses = format!("{joined} ORDER BY path.up DESC");
    Ok(tables::nodes(db, PATH, &clauses, [tree, node])?)
}

fn present(db: &Connection, tree: &str, node: &str) -> Result<(), ArborError> {
    tables::must_exist(db, tree)?;
    tables::must_have(db, tree, node)
}

/// Refuses to read more text than one answer can carry.
fn bounded(
    db: &Connection,
    tree: &str,
    with: &str,
    clauses: &str,
    params: impl plexus_store::rusqlite::Params,
) -> Result<(), ArborError> {
    let statement = format!(
        "{with} SELECT coalesce(sum(octet_length(node.content)), 0)
                     + coalesce(sum(octet_length(node.metadata)), 0)
         FROM arbor_nodes AS node {clauses}"
    );
    let size: i64 = db
        .prepare_cached(&statement)?
        .query_row(params, |row| row.get(0))?;
    let size = size.unsigned_abs();
    if size > MAX_CONTENT as u64 {
        let tree_id = tree.to_owned();
        return Err(ArborError::TooMuchText { tree_id, size });
    }
    Ok(())
}
