//! The database table of sessions, and queries on it.

use plexus_mcp_store::Migrations;
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Params, Row};

use super::error::ClaudeCodeError;
use super::sessions::Session;

/// The migrations that create the table of sessions. Times are RFC 3339 texts of one length, which
/// sort by time. `busy_until` and the claim are a lease: a process that was suspended past that time
/// may have lost the session to another.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "claudecode",
    steps: &[
        "
        CREATE TABLE claudecode_sessions (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            working_dir TEXT NOT NULL,
            model TEXT,
            system_prompt TEXT,
            loopback_enabled INTEGER NOT NULL CHECK (loopback_enabled IN (0, 1)),
            agent_session_id TEXT,
            forks INTEGER NOT NULL CHECK (forks IN (0, 1)),
            forked_from TEXT,
            chats INTEGER NOT NULL,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            busy_until TEXT
        ) STRICT;
    ",
        "
        ALTER TABLE claudecode_sessions ADD COLUMN busy_by TEXT;
    ",
    ],
};

const COLUMNS: &str = "id, name, working_dir, model, system_prompt, loopback_enabled, \
    agent_session_id, forks, forked_from, chats, created_at, updated_at";

/// Reads the session of this name or id.
pub(super) fn find(db: &Connection, name: &str) -> Result<Session, ClaudeCodeError> {
    let found = select(
        db,
        "WHERE name = ?1 OR id = ?1 ORDER BY name = ?1 DESC",
        [name],
    )?;
    let mut found = found.into_iter();
    found
        .next()
        .ok_or_else(|| ClaudeCodeError::NotFound(name.to_owned()))
}

/// All sessions, in the order in which they were created.
pub(super) fn all(db: &Connection) -> Result<Vec<Session>, ClaudeCodeError> {
    select(db, "ORDER BY created_at, id", [])
}

pub(super) fn insert(db: &Connection, session: &Session) -> Result<(), ClaudeCodeError> {
    let taken = db
        .query_row(
            "SELECT 1 FROM claudecode_sessions WHERE name = ?1 OR id = ?1",
            [&session.name],
            |_| Ok(()),
        )
        .optional()?;
    if taken.is_some() {
        return Err(ClaudeCodeError::Taken(session.name.clone()));
    }
    db.execute(
        &format!(
            "INSERT INTO claudecode_sessions ({COLUMNS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        ),
        (
            &session.id,
            &session.name,
            &session.working_dir,
            &session.model,
            &session.system_prompt,
            session.loopback_enabled,
            &session.agent_session_id,
            session.forks,
            &session.forked_from,
            session.chats,
            &session.created_at,
            &session.updated_at,
        ),
    )?;
    Ok(())
}

/// Locks the session until the time `until` under this claim. Returns whether it was free.
pub(super) fn claim(
    db: &Connection,
    id: &str,
    now: &str,
    until: &str,
    claim: &str,
) -> Result<bool, ClaudeCodeError> {
    let claimed = db.execute(
        "UPDATE claudecode_sessions SET busy_until = ?3, busy_by = ?4 \
         WHERE id = ?1 AND (busy_until IS NULL OR busy_until <= ?2)",
        (id, now, until, claim),
    )?;
    Ok(claimed == 1)
}

/// Extends or ends the lock of a session. Returns whether it was still held under this claim.
pub(super) fn set_busy(
    db: &Connection,
    claim: &str,
    until: Option<&str>,
) -> Result<bool, ClaudeCodeError> {
    let changed = db.execute(
        "UPDATE claudecode_sessions SET busy_until = ?2 WHERE busy_by = ?1",
        (claim, until),
    )?;
    Ok(changed == 1)
}

/// Stores the agent's id of the conversation and counts the chat, unless the claim was lost.
pub(super) fn set_agent_session(
    db: &Connection,
    claim: &str,
    agent_session_id: &str,
    now: &str,
) -> Result<(), ClaudeCodeError> {
    db.execute(
        "UPDATE claudecode_sessions SET agent_session_id = ?2, forks = 0, chats = chats + 1, \
         updated_at = ?3 WHERE busy_by = ?1",
        (claim, agent_session_id, now),
    )?;
    Ok(())
}

pub(super) fn delete(db: &Connection, id: &str) -> Result<(), ClaudeCodeError> {
    db.execute("DELETE FROM claudecode_sessions WHERE id = ?1", [id])?;
    Ok(())
}

fn select(
    db: &Connection,
    clauses: &str,
    params: impl Params,
) -> Result<Vec<Session>, ClaudeCodeError> {
    let statement = format!("SELECT {COLUMNS} FROM claudecode_sessions {clauses}");
    let mut statement = db.prepare_cached(&statement)?;
    let found = statement.query_map(params, read)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        name: row.get(1)?,
        working_dir: row.get(2)?,
        model: row.get(3)?,
        system_prompt: row.get(4)?,
        loopback_enabled: row.get(5)?,
        agent_session_id: row.get(6)?,
        forks: row.get(7)?,
        forked_from: row.get(8)?,
        chats: row.get(9)?,
        created_at: row.get(10)?,
        updated_at: row.get(11)?,
    })
}
