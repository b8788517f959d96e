//! Notifies subscribers of changes that other processes make to the databases.
//!
//! While a resource is subscribed to, its database is polled every [`POLL_INTERVAL`] for writes of
//! other connections (`PRAGMA data_version` of `SQLite`). After a write, the subscribed resources
//! are hashed again and compared.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::{Boxed, LocalService, Raw};
use plexus_mcp_store::Store;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::arbor::{self, Trees};
use crate::context::Graph;
use crate::data::Data;
use crate::task::{self, Tasks};
use crate::tool_aliases::AliasedService;

/// How often a database is polled while it has subscribers.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

impl AliasedService {
    /// Notifies subscribers of changes that other processes make, for example `plexus task` at a
    /// terminal.
    ///
    /// The databases are polled only while there are subscribers. The future never ends; dropping it
    /// stops the polling.
    pub fn follow_external_changes(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let (service, changes) = (self.service.clone(), Arc::clone(&self.external_changes));
        let refresh = self.refresh_tree_lists.clone();
        async move {
            let ExternalChanges {
                data,
                tasks,
                trees,
                context,
            } = &*changes;
            let refresh = refresh.as_ref();
            tokio::select! {
                never = poll(&service, WatchedData::Tasks(&data.tasks), tasks) => never,
                never = poll(&service, WatchedData::Trees(&data.trees, refresh), trees) => never,
                never = poll(&service, WatchedData::Context(&data.context), context) => never,
            }
        }
    }
}

/// A function that updates the lists of a service after another process changed trees.
pub type RefreshTreeLists = Arc<dyn Fn(LocalService) -> Boxed<()> + Send + Sync>;

/// The data of a service, and the database versions that subscribers know.
#[derive(Debug)]
pub(crate) struct ExternalChanges {
    data: Data,
    tasks: LastVersion,
    trees: LastVersion,
    context: LastVersion,
}

impl ExternalChanges {
    pub(crate) fn new(data: &Data) -> Self {
        Self {
            data: data.clone(),
            tasks: LastVersion::default(),
            trees: LastVersion::default(),
            context: LastVersion::default(),
        }
    }

    /// Must be called for each new subscription before it is confirmed, so that all later writes of
    /// other processes are detected.
    pub(crate) async fn subscribed(&self, uri: &str) {
        let data = &self.data;
        for (source, version) in [
            (WatchedData::Tasks(&data.tasks), &self.tasks),
            (WatchedData::Trees(&data.trees, None), &self.trees),
            (WatchedData::Context(&data.context), &self.context),
        ] {
            if uri.starts_with(source.scheme()) {
                source.track_changes().await;
                version.initialise(source.store()).await;
            }
        }
    }
}

/// A hash of the JSON of a value, to detect whether a resource changed.
pub(crate) fn json_hash<T: Serialize>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    let json = Raw::encode(value).unwrap_or_else(|_never| Raw::null());
    json.as_bytes().hash(&mut hasher);
    hasher.finish()
}

/// Data whose resources can be subscribed to.
#[derive(Clone, Copy)]
enum WatchedData<'a> {
    Tasks(&'a Tasks),
    Trees(&'a Trees, Option<&'a RefreshTreeLists>),
    Context(&'a Graph),
}

/// The [`json_hash`] of each subscribed resource when it was last read; `None` if it did not exist.
type KnownHashes = HashMap<String, Option<u64>>;

impl<'a> WatchedData<'a> {
    fn scheme(self) -> &'static str {
        match self {
            Self::Tasks(_) => "task://",
            Self::Trees(..) => "arbor://",
            Self::Context(_) => "context://",
        }
    }

    fn store(self) -> &'a Store {
        match self {
            Self::Tasks(tasks) => tasks.store(),
            Self::Trees(trees, _) => trees.store(),
            Self::Context(graph) => graph.database(),
        }
    }

    /// Reads the subscribed resources and, if the database was written to since the last time,
    /// notifies subscribers of those that differ.
    async fn compare(
        self,
        service: &LocalService,
        subscribed: Vec<String>,
        known: &mut KnownHashes,
        is_written: bool,
    ) {
        match self {
            Self::Context(graph) => {
                // The graph has a revision for each change, so that no hashes are needed.
                self.track_changes().await;
                if is_written {
                    graph.notify_changes(service).await;
                }
                return;
            }
            Self::Trees(_, Some(refresh)) if is_written => refresh(service.clone()).await,
            Self::Trees(trees, None) if is_written => trees.refresh_lists(service).await,
            Self::Tasks(_) | Self::Trees(..) => {}
        }
        known.retain(|uri, _| subscribed.contains(uri));
        for uri in subscribed {
            if !is_written && known.contains_key(&uri) {
                continue;
            }
            match self.resource_hash(&uri).await {
                Ok(hash) if known.get(&uri) == Some(&hash) => {}
                Ok(hash) => {
                    if is_written {
                        service.resource_updated(&uri);
                    }
                    known.insert(uri, hash);
                }
                Err(error) => {
                    tracing::debug!(%error, uri, "cannot find out whether the resource changed");
                }
            }
        }
    }

    /// Makes the graph record its revision.
    async fn track_changes(self) {
        if let Self::Context(graph) = self
            && let Err(error) = graph.track_changes().await
        {
            tracing::debug!(%error, "cannot read the revision of the context graph");
        }
    }

    async fn resource_hash(self, uri: &str) -> Result<Option<u64>, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Tasks(tasks) => Ok(task::resource_hash(tasks, uri).await?),
            Self::Trees(trees, _) => Ok(arbor::resource_hash(trees, uri).await?),
            Self::Context(_) => Ok(None),
        }
    }
}

async fn poll(service: &LocalService, source: WatchedData<'_>, version: &LastVersion) -> ! {
    loop {
        service.someone_watches(source.scheme()).await;
        let mut known = KnownHashes::new();
        loop {
            let subscribed = version.subscribed(service, source.scheme()).await;
            if subscribed.is_empty() {
                break;
            }
            let is_written = version.advance(source.store()).await;
            source
                .compare(service, subscribed, &mut known, is_written)
                .await;
            // A new subscription is hashed at once, before its resource can change.
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = service.next_watch() => {}
            }
        }
    }
}

/// The version of a database when it was last polled; `None` while there are no subscribers. The
/// version changes when another connection writes.
#[derive(Debug, Default)]
struct LastVersion(Mutex<Option<i64>>);

impl LastVersion {
    /// Reads the version, unless it is known already.
    async fn initialise(&self, store: &Store) {
        let mut version = self.0.lock().await;
        if version.is_none() {
            *version = version_of(store).await;
        }
    }

    /// The resources that are subscribed to. If there are none, the version is dropped, so that the
    /// next subscription starts from the then current one.
    async fn subscribed(&self, service: &LocalService, prefix: &str) -> Vec<String> {
        let mut version = self.0.lock().await;
        let subscribed = service.watched(prefix);
        if subscribed.is_empty() {
            *version = None;
        }
        subscribed
    }

    /// Reads the version. Returns whether the database was written to since the last time.
    async fn advance(&self, store: &Store) -> bool {
        let mut version = self.0.lock().await;
        let now = version_of(store).await;
        let before = version.take();
        *version = now.or(before);
        now.is_some() && before.is_some() && now != before
    }
}

async fn version_of(store: &Store) -> Option<i64> {
    let version = store.version_elsewhere().await;
    let failed = |error| tracing::debug!(%error, "cannot read the version of the database");
    version.map_err(failed).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use plexus_mcp_core::{Peer, Principal, Section, Service, Updates};
    use plexus_mcp_protocol::Revision;
    use plexus_mcp_protocol::messages::ClientCapabilities;
    use tokio_util::task::{AbortOnDropHandle, TaskTracker};

    use super::*;
    use crate::task::{NewTask, Task, Update};
    use crate::{DataPaths, Names, Servers, service};

    /// A service that follows the data in `folder`, and a second set of connections to the same
    /// data, which stands for another process.
    fn followed(folder: &Path) -> (AliasedService, Data, AbortOnDropHandle<()>) {
        let (service, theirs) = not_yet_followed(folder);
        let following = following(&service);
        (service, theirs, following)
    }

    fn not_yet_followed(folder: &Path) -> (AliasedService, Data) {
        let paths = DataPaths::in_directory(folder);
        let (ours, theirs) = (Data::open(&paths).unwrap(), Data::open(&paths).unwrap());
        let service = service(Names::Dotted, "1.2.3", &ours, &Servers::default()).unwrap();
        (service, theirs)
    }

    fn following(service: &AliasedService) -> AbortOnDropHandle<()> {
        let following = service.follow_external_changes();
        let following = TaskTracker::new().spawn(async move { match following.await {} });
        AbortOnDropHandle::new(following)
    }

    async fn watch(service: &AliasedService, uri: &str) -> Updates {
        let none = ClientCapabilities::none();
        let peer = Peer::new(Revision::V2025_11_25, none, None, Principal::anonymous());
        service.subscribe(&Arc::new(peer), uri).await.unwrap()
    }

    async fn add(tasks: &Tasks, description: &str) -> Task {
        let new = NewTask {
            description: description.to_owned(),
            parent_id: None,
            priority: 3,
            context: None,
        };
        tasks.create(new).await.unwrap()
    }

    async fn soon(updates: &mut Updates) -> bool {
        tokio::time::timeout(10 * POLL_INTERVAL, updates.next())
            .await
            .is_ok()
    }

    /// C46: subscribers are notified of exactly the tasks that changed or were deleted.
    #[tokio::test(start_paused = true)]
    async fn task_changes_of_other_processes_notify_subscribers() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());

        let first = add(&theirs.tasks, "first").await;
        let second = add(&theirs.tasks, "second").await;
        let mut list = watch(&service, "task://list").await;
        let mut of_first = watch(&service, &format!("task://{}", first.id)).await;
        let mut of_second = watch(&service, &format!("task://{}", second.id)).await;
        assert!(!soon(&mut list).await && !soon(&mut of_first).await);

        let update = Update {
            priority: Some(1),
            ..Update::default()
        };
        theirs.tasks.update(&*first.id, update).await.unwrap();
        assert!(soon(&mut list).await && soon(&mut of_first).await);
        assert!(!soon(&mut of_second).await);

        theirs.tasks.delete(&*second.id, false).await.unwrap();
        assert!(soon(&mut list).await && soon(&mut of_second).await);
        assert!(!soon(&mut of_first).await);
    }

    /// C46, C44: subscribers of trees are notified too; new trees are listed.
    #[tokio::test(start_paused = true)]
    async fn tree_changes_of_other_processes_notify_subscribers() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());

        let first = theirs.trees.create("them", None).await.unwrap();
        let other = theirs.trees.create("them", None).await.unwrap();
        let mut of_first = watch(&service, &format!("arbor://tree/{}", first.id)).await;
        let mut of_head = watch(&service, &format!("arbor://tree/{}/head", first.id)).await;
        let mut of_other = watch(&service, &format!("arbor://tree/{}", other.id)).await;
        assert!(!soon(&mut of_first).await && !soon(&mut of_head).await);

        let node = arbor::NewTreeNode {
            tree_id: first.id.clone(),
            parent: None,
            payload: arbor::Payload::Text("leaf".to_owned()),
            metadata: None,
        };
        let node = theirs.trees.add(node).await.unwrap();
        // The head follows the newest node.
        assert_eq!(theirs.trees.head(&*first.id).await.unwrap().id, node.id);
        assert!(soon(&mut of_first).await && soon(&mut of_head).await);
        assert!(!soon(&mut of_other).await);

        let third = theirs.trees.create("them", None).await.unwrap();
        assert!(!soon(&mut of_other).await);
        let listed = format!("arbor://tree/{}", third.id);
        let catalogue = Arc::clone(&service.catalogue().borrow());
        assert!(catalogue.list(Section::Resources).get(&listed).is_some());
    }

    /// Subscribers of nodes of the context graph are notified too.
    #[tokio::test(start_paused = true)]
    async fn context_changes_of_other_processes_notify_subscribers() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());

        let node = |text: &str| crate::context::NewNode::new(text.to_owned()).key("key");
        let stored = theirs.context.store(node("old"), "them").await.unwrap();
        let uri = format!("context://node/{}", stored.id);
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        theirs.context.store(node("new"), "them").await.unwrap();
        assert!(soon(&mut updates).await);
    }

    /// C46: changes after a confirmed subscription are notified, even if polling starts later.
    #[tokio::test(start_paused = true)]
    async fn changes_right_after_a_subscription_notify_the_subscriber() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs) = not_yet_followed(folder.path());
        let node = |text: &str| crate::context::NewNode::new(text.to_owned()).key("key");
        let stored = theirs.context.store(node("old"), "them").await.unwrap();
        let task = add(&theirs.tasks, "a task").await;
        let mut of_node = watch(&service, &format!("context://node/{}", stored.id)).await;
        let mut of_task = watch(&service, &format!("task://{}", task.id)).await;

        theirs.context.store(node("new"), "them").await.unwrap();
        theirs.tasks.delete(&*task.id, false).await.unwrap();
        let _following = following(&service);
        assert!(soon(&mut of_node).await && soon(&mut of_task).await);
        assert!(!soon(&mut of_node).await && !soon(&mut of_task).await);
    }

    /// A new subscriber is not notified of changes before its subscription.
    #[tokio::test(start_paused = true)]
    async fn changes_before_a_subscription_do_not_notify_the_subscriber() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());
        let task = add(&theirs.tasks, "a task").await;
        let uri = format!("task://{}", task.id);
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        drop(updates);
        tokio::time::sleep(2 * POLL_INTERVAL).await;

        add(&theirs.tasks, "another").await;
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        theirs.tasks.delete(&*task.id, false).await.unwrap();
        assert!(soon(&mut updates).await);
    }
}
