use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use plexus_mcp_store::StoreError;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;
use crate::task::MIGRATIONS;

const MINUTE: Duration = Duration::from_mins(1);

/// A task list with a clock that only [`Self::advance`] moves.
struct Fixture {
    folder: TempDir,
    tasks: Tasks,
    milliseconds: Arc<AtomicI64>,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let milliseconds = Arc::new(AtomicI64::new(1_800_000_000_000));
        let tasks = open(&folder, &milliseconds);
        Self {
            folder,
            tasks,
            milliseconds,
        }
    }

    /// A second handle to the same list, which stands for another process.
    fn elsewhere(&self) -> Tasks {
        open(&self.folder, &self.milliseconds)
    }

    fn advance(&self, time: Duration) {
        let milliseconds = i64::try_from(time.as_millis()).unwrap();
        self.milliseconds.fetch_add(milliseconds, Ordering::Relaxed);
    }

    async fn add(&self, description: &str) -> Task {
        self.tasks.create(new(description)).await.unwrap()
    }

    async fn add_urgent(&self, description: &str, priority: u8) -> Task {
        let new = NewTask {
            priority,
            ..new(description)
        };
        self.tasks.create(new).await.unwrap()
    }

    async fn add_part(&self, parent: &Task, description: &str) -> Task {
        let new = NewTask {
            parent_id: Some(parent.id.clone()),
            ..new(description)
        };
        self.tasks.create(new).await.unwrap()
    }

    async fn set(&self, task: &Task, status: TaskStatus) -> Task {
        let update = Update {
            status: Some(status),
            ..Update::default()
        };
        self.tasks.update(&*task.id, update).await.unwrap()
    }

    async fn next(&self) -> Vec<String> {
        descriptions(self.tasks.next(10).await.unwrap())
    }

    async fn all(&self) -> Vec<String> {
        let found = self.tasks.list(everything()).await.unwrap();
        assert_eq!(found.total, found.tasks.len() as u64);
        descriptions(found.tasks)
    }
}

fn open(folder: &TempDir, milliseconds: &Arc<AtomicI64>) -> Tasks {
    let store = Store::open(&folder.path().join("plexus.db"), &[MIGRATIONS]).unwrap();
    let milliseconds = Arc::clone(milliseconds);
    let clock = move || {
        let now = milliseconds.load(Ordering::Relaxed);
        Timestamp::from_millisecond(now).unwrap()
    };
    Tasks::with_clock(store, Arc::new(clock))
}

fn new(description: &str) -> NewTask {
    NewTask {
        description: description.to_owned(),
        parent_id: None,
        priority: 3,
        context: None,
    }
}

fn everything() -> TaskFilter {
    TaskFilter {
        status: None,
        parent_id: None,
        limit: 1000,
    }
}

fn descriptions(tasks: Vec<Task>) -> Vec<String> {
    tasks.into_iter().map(|task| task.description).collect()
}

fn message<T: fmt::Debug>(outcome: Result<T, TaskError>) -> String {
    outcome.unwrap_err().to_string()
}

/// S002-21: a new task has a status, and its members have the names of the specification.
#[tokio::test]
async fn a_new_task_is_pending_and_has_its_times() {
    let list = Fixture::new();
    let task = list.add("Mow the lawn").await;
    assert!(task.id.starts_with("task_"));
    assert_eq!(task.status, TaskStatus::Pending);
    assert_eq!(task.priority, 3);
    assert_eq!(task.created_at, "2027-01-15T08:00:00.000Z");
    assert_eq!(task.updated_at, task.created_at);
    assert_eq!((&task.started_at, &task.completed_at), (&None, &None));
    assert_eq!(list.tasks.get(task.id.as_str()).await.unwrap(), task);
    // Another process sees the same task.
    assert_eq!(list.elsewhere().get(task.id.as_str()).await.unwrap(), task);
}

/// Ids sort by age, even within a millisecond.
#[tokio::test]
async fn ids_are_in_order() {
    let list = Fixture::new();
    let mut ids = Vec::new();
    for number in 0..50 {
        if number % 10 == 0 {
            list.advance(Duration::from_millis(1));
        }
        ids.push(list.add("x").await.id);
    }
    assert!(ids.is_sorted());
}

/// `started_at` and `completed_at` are set.
#[tokio::test]
async fn states_leave_their_times() {
    let list = Fixture::new();
    let task = list.add("Mow the lawn").await;
    list.advance(MINUTE);
    let started = list.set(&task, TaskStatus::InProgress).await;
    assert_eq!(
        started.started_at.as_deref(),
        Some("2027-01-15T08:01:00.000Z")
    );
    list.advance(MINUTE);
    // A second start keeps the time of the first.
    let again = list.set(&task, TaskStatus::InProgress).await;
    assert_eq!(again, started);
    for over in [TaskStatus::Completed, TaskStatus::Failed] {
        let ended = list.set(&task, over).await;
        assert_eq!(ended.started_at, started.started_at);
        assert_eq!(
            ended.completed_at.as_deref(),
            Some("2027-01-15T08:02:00.000Z")
        );
        assert_eq!(ended.updated_at, "2027-01-15T08:02:00.000Z");
    }
    let resumed = list.set(&task, TaskStatus::InProgress).await;
    assert_eq!(resumed.started_at, started.started_at);
    assert_eq!(resumed.completed_at, None);
    let reopened = list.set(&task, TaskStatus::Pending).await;
    assert_eq!((reopened.started_at, reopened.completed_at), (None, None));
}

#[tokio::test]
async fn updates_change_only_the_given_fields() {
    let list = Fixture::new();
    let task = list.add("Mow the lawn").await;
    list.advance(MINUTE);
    let untouched = list.tasks.update(&*task.id, Update::default()).await;
    assert_eq!(untouched.unwrap(), task);

    let update = Update {
        context: Some("The mower is in the shed".to_owned()),
        result: Some("Short grass".to_owned()),
        priority: Some(1),
        ..Update::default()
    };
    let changed = list.tasks.update(&*task.id, update).await.unwrap();
    assert_eq!(changed.context.as_deref(), Some("The mower is in the shed"));
    assert_eq!(changed.result.as_deref(), Some("Short grass"));
    assert_eq!(changed.description, "Mow the lawn");
    assert_eq!((changed.priority, changed.status), (1, TaskStatus::Pending));
    assert_eq!(changed.updated_at, "2027-01-15T08:01:00.000Z");

    let emptied = Update {
        context: Some(String::new()),
        ..Update::default()
    };
    let emptied = list.tasks.update(&*task.id, emptied).await.unwrap();
    assert_eq!((emptied.context, emptied.result), (None, changed.result));
}

#[tokio::test]
async fn a_description_says_something() {
    let list = Fixture::new();
    let task = list.add("Mow the lawn").await;
    let blank = Update {
        description: Some(" \n".to_owned()),
        ..Update::default()
    };
    let expected = "a task needs a description";
    assert_eq!(message(list.tasks.update(&*task.id, blank).await), expected);
    assert_eq!(message(list.tasks.create(new("\t")).await), expected);
    assert_eq!(list.all().await, ["Mow the lawn"]);
}

/// Tasks are listed by priority, and then the newest first.
#[tokio::test]
async fn lists_are_in_order_and_filtered() {
    let list = Fixture::new();
    let mut parts = Vec::new();
    let house = list.add_urgent("house", 2).await;
    for (number, priority) in [(1, 3), (2, 1), (3, 3), (4, 1)] {
        list.advance(Duration::from_millis(1));
        let mut new = new(&format!("part {number}"));
        new.parent_id = Some(house.id.clone());
        new.priority = priority;
        parts.push(list.tasks.create(new).await.unwrap());
    }
    let expected = ["part 4", "part 2", "house", "part 3", "part 1"];
    assert_eq!(list.all().await, expected);

    let first = TaskFilter {
        parent_id: Some(house.id.clone()),
        limit: 2,
        ..everything()
    };
    let found = list.tasks.list(first.clone()).await.unwrap();
    assert_eq!(found.total, 4);
    assert_eq!(descriptions(found.tasks), ["part 4", "part 2"]);

    list.set(&parts[0], TaskStatus::Completed).await;
    let completed = TaskFilter {
        status: Some(TaskStatus::Completed),
        ..first
    };
    let found = list.tasks.list(completed).await.unwrap();
    assert_eq!(descriptions(found.tasks), ["part 1"]);
}

/// S002-22: the error for an unknown task has its id.
#[tokio::test]
async fn unknown_tasks_are_named() {
    let list = Fixture::new();
    let known = list.add("known").await;
    let known = known.id.as_str();
    let tasks = &list.tasks;
    let parent_id = Some("task_xyz".to_owned());
    let part = NewTask {
        parent_id: parent_id.clone(),
        ..new("part")
    };
    let parts = TaskFilter {
        parent_id,
        ..everything()
    };
    let messages = [
        message(tasks.get("task_xyz").await),
        message(tasks.update("task_xyz", Update::default()).await),
        message(tasks.delete("task_xyz", true).await),
        message(tasks.create(part).await),
        message(tasks.list(parts).await),
        message(tasks.add_blocker("task_xyz", known).await),
        message(tasks.add_blocker(known, "task_xyz").await),
        message(tasks.remove_blocker("task_xyz", known).await),
        message(tasks.remove_blocker(known, "task_xyz").await),
        message(tasks.blockers("task_xyz").await),
        message(tasks.claim(Some("task_xyz".to_owned()), "a", MINUTE).await),
        message(tasks.renew("task_xyz", "a", MINUTE).await),
        message(tasks.release("task_xyz", "a").await),
    ];
    for message in messages {
        assert_eq!(message, "task not found: task_xyz");
    }
    assert_eq!(list.all().await, ["known"]);
}

/// A parent is deleted with its subtasks, or not at all.
#[tokio::test]
async fn a_parent_is_deleted_with_its_children_or_not_at_all() {
    let list = Fixture::new();
    let house = list.add("house").await;
    let roof = list.add_part(&house, "roof").await;
    let tile = list.add_part(&roof, "tile").await;
    let other = list.add("other").await;
    let party = list.add("party").await;
    list.tasks.add_blocker(&*party.id, &*tile.id).await.unwrap();

    let id = &house.id;
    assert_eq!(
        message(list.tasks.delete(id.as_str(), false).await),
        format!("task {id} has 2 subtasks; to delete them too, pass cascade: true")
    );
    assert_eq!(list.all().await.len(), 5);

    let deleted = list.tasks.delete(id.as_str(), true).await.unwrap();
    assert_eq!(deleted, [house.id, roof.id, tile.id]);
    assert_eq!(list.all().await, ["party", "other"]);
    // A task that was blocked by a deleted task has lost that blocker.
    let party = list.tasks.get(party.id).await.unwrap();
    assert!(party.blocked_by.is_empty());
    // A task without subtasks is deleted without `cascade`.
    list.tasks.delete(other.id, false).await.unwrap();
}

/// Cyclic blockers are refused.
#[tokio::test]
async fn no_task_waits_for_itself_however_indirectly() {
    let list = Fixture::new();
    let [a, b, c] = [
        list.add("a").await.id,
        list.add("b").await.id,
        list.add("c").await.id,
    ];
    let tasks = &list.tasks;
    assert_eq!(
        message(tasks.add_blocker(&*a, &*a).await),
        format!("a task cannot block itself: {a}")
    );
    tasks.add_blocker(&*b, &*a).await.unwrap();
    tasks.add_blocker(&*c, &*b).await.unwrap();
    for blocker in [&b, &c] {
        assert_eq!(
            message(tasks.add_blocker(&*a, blocker.as_str()).await),
            format!("task {blocker} already waits for {a}, so it cannot block it")
        );
    }
    // Two paths to the same task are no cycle, and adding a blocker twice is no error.
    for _ in 0..2 {
        let blocked = tasks.add_blocker(&*c, &*a).await.unwrap();
        assert_eq!(blocked.blocked_by, [a.as_str(), b.as_str()]);
    }
    assert_eq!(descriptions(tasks.blockers(&*c).await.unwrap()), ["a", "b"]);

    let freed = tasks.remove_blocker(&*c, &*b).await.unwrap();
    assert_eq!(freed.blocked_by, [a.as_str()]);
    assert_eq!(
        message(tasks.remove_blocker(&*c, &*b).await),
        format!("task {c} is not blocked by {b}")
    );
}

#[tokio::test]
async fn blocked_tasks_are_not_offered_as_next() {
    let list = Fixture::new();
    let foundation = list.add_urgent("foundation", 4).await;
    list.advance(MINUTE);
    let roof = list.add_urgent("roof", 1).await;
    let fence = list.add_urgent("fence", 4).await;
    list.tasks
        .add_blocker(&*roof.id, &*foundation.id)
        .await
        .unwrap();
    assert_eq!(list.next().await, ["foundation", "fence"]);
    let expected = format!("task {} is blocked by {}", roof.id, foundation.id);
    let claimed = list.tasks.claim(Some(roof.id.clone()), "ann", MINUTE).await;
    assert_eq!(message(claimed), expected);

    // A failed task still blocks.
    list.set(&foundation, TaskStatus::Failed).await;
    assert_eq!(list.next().await, ["fence"]);
    list.set(&foundation, TaskStatus::Completed).await;
    assert_eq!(list.next().await, ["roof", "fence"]);
    list.set(&fence, TaskStatus::InProgress).await;
    assert_eq!(list.next().await, ["roof"]);
}

#[tokio::test]
async fn a_claim_keeps_others_away_until_it_ends() {
    let list = Fixture::new();
    let task = list.add("task").await;
    let id = || Some(task.id.clone());
    let claimed = list.tasks.claim(id(), "ann", MINUTE).await.unwrap();
    assert_eq!(claimed.status, TaskStatus::InProgress);
    assert_eq!(claimed.started_at.as_ref(), Some(&claimed.updated_at));
    assert_eq!(claimed.claimed_by.as_deref(), Some("ann"));
    let until = "2027-01-15T08:01:00.000Z";
    assert_eq!(claimed.claimed_until.as_deref(), Some(until));

    list.advance(Duration::from_millis(59_999));
    assert!(list.next().await.is_empty());
    assert_eq!(
        message(list.tasks.claim(id(), "bob", MINUTE).await),
        format!("task {} is claimed by \"ann\" until {until}", task.id)
    );
    let nothing = list.tasks.claim(None, "bob", MINUTE).await;
    assert_eq!(message(nothing), "no task is ready to be worked on");
    for other in [
        list.tasks.renew(&*task.id, "bob", MINUTE).await,
        list.tasks.release(&*task.id, "bob").await,
    ] {
        let expected = format!("task {} is not claimed by \"bob\"", task.id);
        assert_eq!(message(other), expected);
    }

    // The claim of Ann has expired, so Bob takes over, and Ann can no longer renew it.
    list.advance(Duration::from_millis(1));
    assert_eq!(list.next().await, ["task"]);
    let taken = list.tasks.claim(None, "bob", MINUTE).await.unwrap();
    assert_eq!(taken.claimed_by.as_deref(), Some("bob"));
    assert_eq!(taken.started_at, claimed.started_at);
    assert!(list.tasks.renew(&*task.id, "ann", MINUTE).await.is_err());
}

#[tokio::test]
async fn a_claim_can_be_renewed_and_given_back() {
    let list = Fixture::new();
    let task = list.add("task").await;
    let id = task.id.as_str();
    list.tasks.claim(None, "ann", MINUTE).await.unwrap();
    list.advance(MINUTE / 2);
    let renewed = list.tasks.renew(id, "ann", MINUTE).await.unwrap();
    let until = renewed.claimed_until.as_deref();
    assert_eq!(until, Some("2027-01-15T08:01:30.000Z"));
    // The claim has expired, but no other agent has taken over.
    list.advance(2 * MINUTE);
    list.tasks.renew(id, "ann", MINUTE).await.unwrap();
    assert!(list.next().await.is_empty());
    // Claiming again renews the claim.
    let again = list.tasks.claim(Some(task.id.clone()), "ann", 2 * MINUTE);
    let until = again.await.unwrap().claimed_until;
    assert_eq!(until.as_deref(), Some("2027-01-15T08:04:30.000Z"));

    let released = list.tasks.release(id, "ann").await.unwrap();
    assert_eq!(released.status, TaskStatus::Pending);
    assert_eq!((released.claimed_by, released.started_at), (None, None));
    assert_eq!(list.next().await, ["task"]);
}

#[tokio::test]
async fn a_claim_ends_with_its_task() {
    let list = Fixture::new();
    let task = list.add("task").await;
    for status in [TaskStatus::Completed, TaskStatus::Failed] {
        list.set(&task, TaskStatus::Pending).await;
        list.tasks.claim(None, "ann", MINUTE).await.unwrap();
        let ended = list.set(&task, status).await;
        assert_eq!((ended.claimed_by, ended.claimed_until), (None, None));
        let claimed = list.tasks.claim(Some(task.id.clone()), "ann", MINUTE).await;
        let expected = format!(
            "task {} is {} and cannot be claimed",
            task.id,
            status.as_str()
        );
        assert_eq!(message(claimed), expected);
    }
}

/// Several agents in several processes share a list: every task goes to exactly one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_task_is_given_to_two() {
    let list = Fixture::new();
    for number in 0..20 {
        list.add(&format!("{number}")).await;
    }
    let elsewhere = list.elsewhere();
    let mut claims = JoinSet::new();
    for agent in 0..24 {
        let tasks = if agent % 2 == 0 {
            &list.tasks
        } else {
            &elsewhere
        };
        let tasks = tasks.clone();
        claims.spawn(async move { tasks.claim(None, format!("{agent}"), MINUTE).await });
    }
    let mut given = Vec::new();
    let mut refused = 0;
    while let Some(claimed) = claims.join_next().await {
        match claimed.unwrap() {
            Ok(task) => given.push(task.id),
            Err(TaskError::NothingReady) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    given.sort_unstable();
    given.dedup();
    assert_eq!((given.len(), refused), (20, 4));
}

/// Of two agents that make their tasks block each other at the same time, at most one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cycle_comes_about_by_haste() {
    let list = Fixture::new();
    let elsewhere = list.elsewhere();
    for _ in 0..10 {
        let [a, b] = [list.add("a").await.id, list.add("b").await.id];
        let (one, other) = tokio::join!(
            list.tasks.add_blocker(&*a, &*b),
            elsewhere.add_blocker(&*b, &*a),
        );
        assert_ne!(one.is_ok(), other.is_ok());
    }
}

/// The error of a store that fails differs from that of a missing task.
#[tokio::test]
async fn a_store_that_fails_says_what_to_do() {
    let list = Fixture::new();
    let task = list.add("task").await;
    let protect = |db: &plexus_mcp_store::rusqlite::Transaction<'_>| -> Result<(), StoreError> {
        Ok(db.pragma_update(None, "query_only", true)?)
    };
    list.tasks.store().write(protect).await.unwrap();
    let error = list.tasks.delete(&*task.id, false).await.unwrap_err();
    assert!(matches!(error, TaskError::Store(StoreError::ReadOnly)));
    assert_eq!(list.all().await, ["task"]);
}

/// A list of large tasks fits into one response, and still has the number of all tasks.
#[tokio::test]
async fn a_list_is_bounded() {
    let list = Fixture::new();
    for description in ["first", "second", "third"] {
        let context = Some("x".repeat(4_000_000));
        let large = NewTask {
            context,
            ..new(description)
        };
        list.tasks.create(large).await.unwrap();
    }
    let found = list.tasks.list(everything()).await.unwrap();
    assert_eq!(found.total, 3);
    assert_eq!(descriptions(found.tasks), ["third", "second"]);
    let huge = NewTask {
        context: Some("x".repeat(11_000_000)),
        priority: 1,
        ..new("huge")
    };
    list.tasks.create(huge).await.unwrap();
    let found = list.tasks.list(everything()).await.unwrap();
    assert_eq!(descriptions(found.tasks), ["huge"]);
}

/// The tasks that are ready are read from an index, however many tasks there are.
#[tokio::test]
async fn ready_tasks_are_read_from_an_index() {
    let fixture = Fixture::new();
    let plan: Vec<String> = fixture
        .tasks
        .read(|db| {
            let ready = format!("EXPLAIN QUERY PLAN SELECT * FROM tasks {}", claims::READY);
            let mut statement = db.prepare(&ready)?;
            let steps = statement.query_map(("2027", 1), |row| row.get("detail"))?;
            Ok(steps.collect::<Result<_, _>>()?)
        })
        .await
        .unwrap();
    let plan = plan.join("\n");
    for index in ["tasks_ready", "tasks_claimed"] {
        assert!(plan.contains(index), "{index}: {plan}");
    }
    // Neither index is sorted before its first entries are taken: only what they give is.
    assert_eq!(plan.matches("TEMP B-TREE").count(), 1, "{plan}");
    assert!(!plan.contains("SCAN tasks\n"), "{plan}");
}

/// Blockers from before the migration count.
#[tokio::test]
async fn blockers_of_an_older_file_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plexus.db");
    let older = plexus_mcp_store::Migrations {
        steps: &MIGRATIONS.steps[..1],
        ..MIGRATIONS
    };
    let store = Store::open(&path, &[older]).unwrap();
    let fill = |db: &plexus_mcp_store::rusqlite::Transaction<'_>| {
        db.execute_batch(
            "INSERT INTO tasks (id, description, priority, status, created_at, updated_at)
             VALUES ('a', 'first', 3, 'pending', '1', '1'), ('b', 'second', 3, 'pending', '2', '2');
             INSERT INTO task_blockers VALUES ('b', 'a');",
        )
        .map_err(StoreError::from)
    };
    store.write(fill).await.unwrap();
    drop(store);
    let tasks = Tasks::new(Store::open(&path, &[MIGRATIONS]).unwrap());
    assert_eq!(descriptions(tasks.next(10).await.unwrap()), ["first"]);
    tasks.delete("a", false).await.unwrap();
    assert_eq!(descriptions(tasks.next(10).await.unwrap()), ["second"]);
}
