//! Changes that other processes make, told to those who watch.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use plexus_service::{LocalService, Raw};
use plexus_store::Store;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::aliased::Aliased;
use crate::arbor::{self, Trees};
use crate::cone::Cones;
use crate::context::Graph;
use crate::data::Data;
use crate::task::{self, Tasks};

/// How long a change may go unnoticed.
const INTERVAL: Duration = Duration::from_millis(300);

impl Aliased {
    /// Tells those who watch resources what other processes change, as a person does at a terminal.
    ///
    /// The databases are asked only while somebody watches. Dropping the future ends it.
    pub fn follow(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let (service, followed) = (self.service.clone(), Arc::clone(&self.followed));
        // Cones are listed only where they are offered.
        let lists_cones = self.tool("cone.chat").is_ok();
        async move {
            let Followed {
                data,
                tasks,
                trees,
                context,
            } = &*followed;
            let cones = lists_cones.then_some(&data.cones);
            tokio::select! {
                never = follow(&service, Kept::Tasks(&data.tasks), tasks) => never,
                never = follow(&service, Kept::Trees(&data.trees, cones), trees) => never,
                never = follow(&service, Kept::Context(&data.context), context) => never,
            }
        }
    }
}

/// Data that others may change, and since when that is told.
#[derive(Debug)]
pub(crate) struct Followed {
    data: Data,
    tasks: Elsewhere,
    trees: Elsewhere,
    context: Elsewhere,
}

impl Followed {
    pub(crate) fn new(data: &Data) -> Self {
        Self {
            data: data.clone(),
            tasks: Elsewhere::default(),
            trees: Elsewhere::default(),
            context: Elsewhere::default(),
        }
    }

    /// Somebody watches this resource: what others write from now on is told.
    pub(crate) async fn begin(&self, uri: &str) {
        let data = &self.data;
        for (kept, elsewhere) in [
            (Kept::Tasks(&data.tasks), &self.tasks),
            (Kept::Trees(&data.trees, None), &self.trees),
            (Kept::Context(&data.context), &self.context),
        ] {
            if uri.starts_with(kept.scheme()) {
                kept.attend().await;
                elsewhere.begin(kept.store()).await;
            }
        }
    }
}

/// A number that is another one if what would be shown is.
pub(crate) fn hashed<T: Serialize>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    let json = Raw::encode(value).unwrap_or_else(|_never| Raw::null());
    json.as_bytes().hash(&mut hasher);
    hasher.finish()
}

/// What is looked at again whenever something was written.
#[derive(Clone, Copy)]
enum Kept<'a> {
    Tasks(&'a Tasks),
    Trees(&'a Trees, Option<&'a Cones>),
    Context(&'a Graph),
}

/// What resources said when they were last looked at: see [`hashed`]. `None` is of one that is not
/// there.
type Known = HashMap<String, Option<u64>>;

impl<'a> Kept<'a> {
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

    /// Looks at what is watched and, if something was written since the last time, tells what is
    /// different now.
    async fn look(
        self,
        service: &LocalService,
        watched: Vec<String>,
        known: &mut Known,
        written: bool,
    ) {
        match self {
            Self::Context(graph) => {
                // The graph itself knows what changed.
                self.attend().await;
                if written {
                    graph.announce(service).await;
                }
                return;
            }
            Self::Trees(_, Some(cones)) if written => cones.offer(service).await,
            Self::Trees(trees, None) if written => trees.offer(service).await,
            Self::Tasks(_) | Self::Trees(..) => {}
        }
        known.retain(|uri, _| watched.contains(uri));
        for uri in watched {
            if !written && known.contains_key(&uri) {
                continue;
            }
            match self.state(&uri).await {
                Ok(state) if known.get(&uri) == Some(&state) => {}
                Ok(state) => {
                    if written {
                        service.resource_updated(&uri);
                    }
                    known.insert(uri, state);
                }
                Err(error) => tracing::debug!(%error, uri, "cannot tell whether it changed"),
            }
        }
    }

    /// Has the graph remember what changes.
    async fn attend(self) {
        if let Self::Context(graph) = self
            && let Err(error) = graph.attend().await
        {
            tracing::debug!(%error, "cannot tell what changes");
        }
    }

    async fn state(self, uri: &str) -> Result<Option<u64>, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Tasks(tasks) => Ok(task::state(tasks, uri).await?),
            Self::Trees(trees, _) => Ok(arbor::state(trees, uri).await?),
            Self::Context(_) => Ok(None),
        }
    }
}

async fn follow(service: &LocalService, kept: Kept<'_>, elsewhere: &Elsewhere) -> ! {
    loop {
        service.someone_watches(kept.scheme()).await;
        let mut known = Known::new();
        loop {
            let watched = elsewhere.watched(service, kept.scheme()).await;
            if watched.is_empty() {
                break;
            }
            let written = elsewhere.changed(kept.store()).await;
            kept.look(service, watched, &mut known, written).await;
            // What is new is looked at before it can change.
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = service.next_watch() => {}
            }
        }
    }
}

/// What others write to a database while somebody watches: its version when it was last asked for.
#[derive(Debug, Default)]
struct Elsewhere(Mutex<Option<i64>>);

impl Elsewhere {
    /// What is written from now on has changed, if that was not so before.
    async fn begin(&self, store: &Store) {
        let mut version = self.0.lock().await;
        if version.is_none() {
            *version = version_of(store).await;
        }
    }

    /// What is watched; if that is nothing, the next one to watch begins anew.
    async fn watched(&self, service: &LocalService, prefix: &str) -> Vec<String> {
        let mut version = self.0.lock().await;
        let watched = service.watched(prefix);
        if watched.is_empty() {
            *version = None;
        }
        watched
    }

    /// Whether anything was written since the last time.
    async fn changed(&self, store: &Store) -> bool {
        let mut version = self.0.lock().await;
        let now = version_of(store).await;
        let before = version.take();
        *version = now.or(before);
        now.is_some() && before.is_some() && now != before
    }
}

async fn version_of(store: &Store) -> Option<i64> {
    let version = store.version_elsewhere().await;
    let unknown = |error| tracing::debug!(%error, "cannot tell whether the database changed");
    version.map_err(unknown).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use plexus_mcp::Revision;
    use plexus_mcp::messages::ClientCapabilities;
    use plexus_service::{Peer, Principal, Section, Service, Updates};
    use tokio_util::task::{AbortOnDropHandle, TaskTracker};

    use super::*;
    use crate::task::{NewTask, Task, Update};
    use crate::{Names, Places, service};

    /// A service that follows the data in `folder`, which another process, so to speak, has open
    /// as well.
    fn followed(folder: &Path) -> (Aliased, Data, AbortOnDropHandle<()>) {
        let (service, theirs) = not_yet_followed(folder);
        let following = following(&service);
        (service, theirs, following)
    }

    fn not_yet_followed(folder: &Path) -> (Aliased, Data) {
        let places = Places::in_directory(folder);
        let (ours, theirs) = (Data::open(&places).unwrap(), Data::open(&places).unwrap());
        let service = service(Names::Dotted, "1.2.3", &ours).unwrap();
        (service, theirs)
    }

    fn following(service: &Aliased) -> AbortOnDropHandle<()> {
        let following = service.follow();
        let following = TaskTracker::new().spawn(async move { match following.await {} });
        AbortOnDropHandle::new(following)
    }

    async fn watch(service: &Aliased, uri: &str) -> Updates {
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
        tokio::time::timeout(10 * INTERVAL, updates.next())
            .await
            .is_ok()
    }

    /// C46: exactly what changed is told, be it changed, blocked or deleted, and nobody is told of
    /// anything when nothing changed.
    #[tokio::test(start_paused = true)]
    async fn what_others_change_is_told() {
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

    /// C46, C44: the same for trees, and what came is listed.
    #[tokio::test(start_paused = true)]
    async fn what_others_grow_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());

        let first = theirs.trees.create("them", None).await.unwrap();
        let other = theirs.trees.create("them", None).await.unwrap();
        let mut of_first = watch(&service, &format!("arbor://tree/{}", first.id)).await;
        let mut of_head = watch(&service, &format!("arbor://tree/{}/head", first.id)).await;
        let mut of_other = watch(&service, &format!("arbor://tree/{}", other.id)).await;
        assert!(!soon(&mut of_first).await && !soon(&mut of_head).await);

        let node = arbor::NewNode {
            tree_id: first.id.clone(),
            parent: None,
            payload: arbor::Payload::Text("leaf".to_owned()),
            metadata: None,
        };
        let node = theirs.trees.add(node).await.unwrap();
        // The head moves with what is added to it.
        assert_eq!(theirs.trees.head(&*first.id).await.unwrap().id, node.id);
        assert!(soon(&mut of_first).await && soon(&mut of_head).await);
        assert!(!soon(&mut of_other).await);

        let third = theirs.trees.create("them", None).await.unwrap();
        assert!(!soon(&mut of_other).await);
        let listed = format!("arbor://tree/{}", third.id);
        let catalogue = Arc::clone(&service.catalogue().borrow());
        assert!(catalogue.list(Section::Resources).get(&listed).is_some());
    }

    /// The same for memories.
    #[tokio::test(start_paused = true)]
    async fn what_others_remember_is_told() {
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

    /// C46: whoever was told that it watches misses nothing, however late we come to look.
    #[tokio::test(start_paused = true)]
    async fn what_changes_right_after_a_subscription_is_told() {
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

    /// Whoever watches after others did is told of nothing that was before.
    #[tokio::test(start_paused = true)]
    async fn what_changed_while_nobody_watched_is_not_told() {
        let folder = tempfile::tempdir().unwrap();
        let (service, theirs, _following) = followed(folder.path());
        let task = add(&theirs.tasks, "a task").await;
        let uri = format!("task://{}", task.id);
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        drop(updates);
        tokio::time::sleep(2 * INTERVAL).await;

        add(&theirs.tasks, "another").await;
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        theirs.tasks.delete(&*task.id, false).await.unwrap();
        assert!(soon(&mut updates).await);
    }
}
