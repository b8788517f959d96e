//! Changes that other processes make, told to those who watch.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use plexus_service::LocalService;
use plexus_store::Store;

use crate::aliased::Aliased;
use crate::context::Graph;
use crate::data::Data;
use crate::task::{self, Tasks};

/// How long a change may go unnoticed.
const INTERVAL: Duration = Duration::from_millis(300);

impl Aliased {
    /// Tells those who watch resources what other processes change, as a person does at a terminal.
    ///
    /// The databases are asked only while somebody watches. Dropping the future ends it.
    pub fn follow(&self, data: &Data) -> impl Future<Output = Infallible> + Send + use<> {
        let (tasks, context) = (data.tasks.clone(), data.context.clone());
        let service = self.service.clone();
        async move {
            tokio::select! {
                never = follow_tasks(&service, &tasks) => never,
                never = follow_context(&service, &context) => never,
            }
        }
    }
}

async fn follow_tasks(service: &LocalService, tasks: &Tasks) -> ! {
    loop {
        service.someone_watches("task://").await;
        let mut elsewhere = Elsewhere::of(tasks.database()).await;
        let mut known = HashMap::new();
        loop {
            let watched = service.watched("task://");
            if watched.is_empty() {
                break;
            }
            known.retain(|uri, _| watched.contains(uri));
            let changed = elsewhere.changed().await;
            for uri in watched {
                if !changed && known.contains_key(&uri) {
                    continue;
                }
                match task::state(tasks, &uri).await {
                    Ok(state) if known.get(&uri) == Some(&state) => {}
                    Ok(state) => {
                        if changed {
                            service.resource_updated(&uri);
                        }
                        known.insert(uri, state);
                    }
                    Err(error) => tracing::debug!(%error, uri, "cannot tell whether it changed"),
                }
            }
            // What is new is looked at before it can change.
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = service.next_watch() => {}
            }
        }
    }
}

async fn follow_context(service: &LocalService, graph: &Graph) -> ! {
    loop {
        service.someone_watches("context://").await;
        let mut elsewhere = Elsewhere::of(graph.database()).await;
        if let Err(error) = graph.attend().await {
            tracing::debug!(%error, "cannot tell what changes");
        }
        while !service.watched("context://").is_empty() {
            if elsewhere.changed().await {
                graph.announce(service).await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// What others write to a database.
struct Elsewhere<'a> {
    store: &'a Store,
    version: Option<i64>,
}

impl<'a> Elsewhere<'a> {
    async fn of(store: &'a Store) -> Self {
        let version = None;
        let mut elsewhere = Self { store, version };
        elsewhere.changed().await;
        elsewhere
    }

    /// Whether anything was written since the last time.
    async fn changed(&mut self) -> bool {
        match self.store.version_elsewhere().await {
            Ok(version) => self
                .version
                .replace(version)
                .is_some_and(|before| before != version),
            Err(error) => {
                tracing::debug!(%error, "cannot tell whether the database changed");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plexus_mcp::Revision;
    use plexus_mcp::messages::ClientCapabilities;
    use plexus_service::{Peer, Principal, Service, Updates};
    use tokio_util::task::{AbortOnDropHandle, TaskTracker};

    use super::*;
    use crate::task::{NewTask, Task, Update};
    use crate::{Names, Places, service};

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
        let places = Places::in_directory(folder.path());
        let (ours, theirs) = (Data::open(&places).unwrap(), Data::open(&places).unwrap());
        let service = service(Names::Dotted, "1.2.3", &ours).unwrap();
        let following = service.follow(&ours);
        let following = TaskTracker::new().spawn(async move { match following.await {} });
        let _following = AbortOnDropHandle::new(following);

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

    /// The same for memories.
    #[tokio::test(start_paused = true)]
    async fn what_others_remember_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_directory(folder.path());
        let (ours, theirs) = (Data::open(&places).unwrap(), Data::open(&places).unwrap());
        let service = service(Names::Dotted, "1.2.3", &ours).unwrap();
        let following = service.follow(&ours);
        let following = TaskTracker::new().spawn(async move { match following.await {} });
        let _following = AbortOnDropHandle::new(following);

        let node = |text: &str| crate::context::NewNode::new(text.to_owned()).key("key");
        let stored = theirs.context.store(node("old"), "them").await.unwrap();
        let uri = format!("context://node/{}", stored.id);
        let mut updates = watch(&service, &uri).await;
        assert!(!soon(&mut updates).await);
        theirs.context.store(node("new"), "them").await.unwrap();
        assert!(soon(&mut updates).await);
    }
}
