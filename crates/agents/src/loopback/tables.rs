//! The database table of permission requests, and queries on it.

use jiff::Timestamp;
use plexus_mcp_store::Migrations;
use plexus_mcp_store::rusqlite::types::{FromSqlError, Type};
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Row};
use plexus_mcp_wire::{Limits, Raw};

use super::error::LoopbackError;
use super::permissions::{Decision, Pending, Request};
use plexus_mcp_builtins::support::timestamp_text;

/// The migrations that create the table of requests. Times are texts of one length, which sort by
/// time.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "loopback",
    steps: &["
        CREATE TABLE permission_requests (
            id TEXT NOT NULL PRIMARY KEY,
            session_id TEXT,
            tool_name TEXT NOT NULL,
            tool_use_id TEXT,
            input TEXT NOT NULL,
            created_at TEXT NOT NULL,
            expires_at TEXT NOT NULL,
            behavior TEXT CHECK (behavior IN ('allow', 'deny', 'withdrawn')),
            message TEXT,
            updated_input TEXT
        ) STRICT;
        CREATE INDEX permission_requests_by_age ON permission_requests (created_at);
    "],
};

const COLUMNS: &str = "id, session_id, tool_name, tool_use_id, input, created_at, expires_at";

pub(super) fn insert(
    db: &Connection,
    id: &str,
    request: &Request,
    created_at: Timestamp,
    expires_at: Timestamp,
) -> Result<Pending, LoopbackError> {
    let Request {
        session_id,
        tool_name,
        tool_use_id,
        input,
    } = request;
    db.execute(
        &format!("INSERT INTO permission_requests ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
        (
            id,
            session_id,
            tool_name,
            tool_use_id,
            input.as_str(),
            timestamp_text(created_at),
            timestamp_text(expires_at),
        ),
    )?;
    Ok(Pending {
        approval_id: id.to_owned(),
        session_id: session_id.clone(),
        tool_name: tool_name.clone(),
        tool_use_id: tool_use_id.clone(),
        input: input.clone(),
        created_at: timestamp_text(created_at),
        expires_at: timestamp_text(expires_at),
    })
}

/// Deletes the requests that were made before `time`.
pub(super) fn forget(db: &Connection, time: Timestamp) -> Result<(), LoopbackError> {
    db.execute(
        "DELETE FROM permission_requests WHERE created_at < ?1",
        [timestamp_text(time)],
    )?;
    Ok(())
}

/// The requests without an answer, the oldest first.
pub(super) fn pending(
    db: &Connection,
    session_id: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Pending>, LoopbackError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM permission_requests WHERE behavior IS NULL AND expires_at > ?1 \
         AND (?2 IS NULL OR session_id = ?2) ORDER BY created_at, id"
    ))?;
    let found = statement.query_map((timestamp_text(now), session_id), read)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Ends a pending request.
pub(super) fn end(
    db: &Connection,
    id: &str,
    ending: &Ending,
    now: Timestamp,
) -> Result<(), LoopbackError> {
    let (behavior, message, updated_input) = match ending {
        Ending::Withdrawn => ("withdrawn", None, None),
        Ending::Decided(Decision::Deny { message }) => ("deny", Some(message.as_str()), None),
        Ending::Decided(Decision::Allow { updated_input }) => {
            ("allow", None, updated_input.as_ref().map(Raw::as_str))
        }
    };
    let changed = db.execute(
        "UPDATE permission_requests SET behavior = ?2, message = ?3, updated_input = ?4 \
         WHERE id = ?1 AND behavior IS NULL AND expires_at > ?5",
        (id, behavior, message, updated_input, timestamp_text(now)),
    )?;
    if changed == 1 {
        return Ok(());
    }
    let known = db
        .query_row(
            "SELECT 1 FROM permission_requests WHERE id = ?1",
            [id],
            |_| Ok(()),
        )
        .optional()?;
    Err(match known {
        Some(()) => LoopbackError::Over(id.to_owned()),
        None => LoopbackError::NotFound(id.to_owned()),
    })
}

/// How a request ends.
pub(super) enum Ending {
    Decided(Decision),
    Withdrawn,
}

/// The decision on a request, if there is one.
pub(super) fn decision(db: &Connection, id: &str) -> Result<Option<Decision>, LoopbackError> {
    let found = db
        .prepare_cached(
            "SELECT behavior, message, updated_input FROM permission_requests WHERE id = ?1",
        )?
        .query_row([id], |row| {
            let behavior: Option<String> = row.get(0)?;
            Ok(match behavior.as_deref() {
                Some("allow") => {
                    let input: Option<String> = row.get(2)?;
                    let updated_input = input.map(|input| json(2, input)).transpose()?;
                    Some(Decision::Allow { updated_input })
                }
                Some("deny") => {
                    let message: Option<String> = row.get(1)?;
                    let message = message.unwrap_or_default();
                    Some(Decision::Deny { message })
                }
                _ => None,
            })
        })
        .optional()?;
    Ok(found.flatten())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Pending> {
    Ok(Pending {
        approval_id: row.get(0)?,
        session_id: row.get(1)?,
        tool_name: row.get(2)?,
        tool_use_id: row.get(3)?,
        input: json(4, row.get(4)?)?,
        created_at: row.get(5)?,
        expires_at: row.get(6)?,
    })
}

fn json(column: usize, text: String) -> rusqlite::Result<Raw> {
    Raw::parse(text.into(), &Limits::default()).map_err(|error| {
        let error = FromSqlError::other(error);
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
