//! The database tables of the task list, and queries on them.

use plexus_mcp_store::Migrations;
use plexus_mcp_store::rusqlite::types::{
    FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef,
};
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Params, Row, ToSql};

use super::error::TaskError;
use super::model::{Task, TaskStatus};

/// The migrations that create the tables of the task list.
///
/// - Times are RFC 3339 texts of one length, which sort by time and are readable in the file.
/// - `open_blockers` is the number of blockers that are not completed. Triggers keep it, so that an
///   index has exactly the tasks that are ready.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "task",
    steps: &["
        CREATE TABLE tasks (
            id TEXT NOT NULL PRIMARY KEY,
            parent_id TEXT REFERENCES tasks (id),
            description TEXT NOT NULL,
            context TEXT,
            priority INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 5),
            status TEXT NOT NULL
                CHECK (status IN ('pending', 'in_progress', 'completed', 'failed')),
            result TEXT,
            created_at TEXT NOT NULL,
            started_at TEXT,
            completed_at TEXT,
            updated_at TEXT NOT NULL,
            claimed_by TEXT,
            claimed_until TEXT,
            CHECK ((claimed_by IS NULL) = (claimed_until IS NULL)),
            CHECK (claimed_by IS NULL OR status = 'in_progress'),
            CHECK ((completed_at IS NULL) = (status IN ('pending', 'in_progress')))
        ) STRICT;
        CREATE INDEX tasks_by_parent ON tasks (parent_id);
        CREATE INDEX tasks_by_urgency ON tasks (status, priority, created_at);

        CREATE TABLE task_blockers (
            task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
            blocked_by_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
            PRIMARY KEY (task_id, blocked_by_id),
            CHECK (task_id <> blocked_by_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX task_blockers_by_blocker ON task_blockers (blocked_by_id);
    ", "
        ALTER TABLE tasks ADD COLUMN open_blockers INTEGER NOT NULL DEFAULT 0;
        UPDATE tasks SET open_blockers = (
            SELECT count(*) FROM task_blockers JOIN tasks AS blocker ON blocker.id = blocked_by_id
            WHERE task_id = tasks.id AND blocker.status <> 'completed'
        );
        CREATE TRIGGER task_blocker_added AFTER INSERT ON task_blockers BEGIN
            UPDATE tasks SET open_blockers = (
                SELECT count(*) FROM task_blockers JOIN tasks AS blocker ON blocker.id = blocked_by_id
                WHERE task_id = NEW.task_id AND blocker.status <> 'completed'
            ) WHERE id = NEW.task_id;
        END;
        CREATE TRIGGER task_blocker_removed AFTER DELETE ON task_blockers BEGIN
            UPDATE tasks SET open_blockers = (
                SELECT count(*) FROM task_blockers JOIN tasks AS blocker ON blocker.id = blocked_by_id
                WHERE task_id = OLD.task_id AND blocker.status <> 'completed'
            ) WHERE id = OLD.task_id;
        END;
        CREATE TRIGGER task_blocker_completed AFTER UPDATE OF status ON tasks
        WHEN (OLD.status = 'completed') <> (NEW.status = 'completed') BEGIN
            UPDATE tasks SET open_blockers = (
                SELECT count(*) FROM task_blockers JOIN tasks AS blocker ON blocker.id = blocked_by_id
                WHERE task_id = tasks.id AND blocker.status <> 'completed'
            ) WHERE id IN (SELECT task_id FROM task_blockers WHERE blocked_by_id = NEW.id);
        END;
        CREATE INDEX tasks_ready ON tasks (priority, created_at, id)
            WHERE status = 'pending' AND open_blockers = 0;
        CREATE INDEX tasks_by_claim ON tasks (claimed_until) WHERE status = 'in_progress';
    ", "
        DROP INDEX tasks_by_claim;
        CREATE INDEX tasks_claimed ON tasks (priority, created_at, id, claimed_until)
            WHERE status = 'in_progress' AND open_blockers = 0;
    "],
};

const COLUMNS: &str = "id, parent_id, description, context, priority, status, result, created_at, \
    started_at, completed_at, updated_at, claimed_by, claimed_until";

/// The maximum size of the text in one list, in bytes. A larger task is listed alone.
const MAX_LISTED_BYTES: usize = 10 * 1024 * 1024;

/// Reads the task of this id.
pub(super) fn find(db: &Connection, id: &str) -> Result<Task, TaskError> {
    let mut found = select(db, "WHERE id = ?1", [id])?;
    found
        .pop()
        .ok_or_else(|| TaskError::NotFound(id.to_owned()))
}

/// Reads the tasks that the SQL `clauses` select, as many as fit into one response.
pub(super) fn select(
    db: &Connection,
    clauses: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<Task>> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM tasks {clauses}"))?;
    let mut tasks = Vec::new();
    let mut size = 0;
    for task in statement.query_map(params, read)? {
        let mut task = task?;
        let texts = [&task.context, &task.result].into_iter().flatten();
        size += task.description.len() + texts.map(String::len).sum::<usize>();
        if size > MAX_LISTED_BYTES && !tasks.is_empty() {
            break;
        }
        task.blocked_by = blockers(db, &task.id)?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// Fails unless a task has this id.
pub(super) fn must_exist(db: &Connection, id: &str) -> Result<(), TaskError> {
    let found = db
        .prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?
        .query_row([id], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| TaskError::NotFound(id.to_owned()))
}

/// The ids that a statement returns.
pub(super) fn ids(
    db: &Connection,
    statement: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare_cached(statement)?;
    let ids = statement.query_map(params, |row| row.get(0))?;
    ids.collect()
}

fn blockers(db: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    let statement =
        "SELECT blocked_by_id FROM task_blockers WHERE task_id = ?1 ORDER BY blocked_by_id";
    ids(db, statement, [id])
}

fn read(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get("id")?,
        parent_id: row.get("parent_id")?,
        description: row.get("description")?,
        context: row.get("context")?,
        priority: row.get("priority")?,
        status: row.get("status")?,
        result: row.get("result")?,
        created_at: row.get("created_at")?,
        started_at: row.get("started_at")?,
        completed_at: row.get("completed_at")?,
        updated_at: row.get("updated_at")?,
        blocked_by: Vec::new(),
        claimed_by: row.get("claimed_by")?,
        claimed_until: row.get("claimed_until")?,
    })
}

impl ToSql for TaskStatus {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for TaskStatus {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::from_name(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}
