//! The database tables of the cones, and queries on them.

use jiff::Timestamp;
use plexus_mcp_core::{Limits, Raw};
use plexus_mcp_store::Migrations;
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Row};

use super::cones::Cone;
use super::error::ConeError;
use plexus_mcp_builtins::arbor;

/// The migrations that create the tables of the cones, in the database of the trees.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "cone",
    steps: &["
        CREATE TABLE cones (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            model_id TEXT NOT NULL,
            system_prompt TEXT,
            base_url TEXT,
            max_tokens INTEGER CHECK (max_tokens > 0),
            metadata TEXT,
            tree_id TEXT NOT NULL UNIQUE REFERENCES arbor_trees (id),
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL
        ) STRICT;
    "],
};

/// The maximum number of cones that the error for an ambiguous name lists.
const MAX_MATCHES: u32 = 10;

/// Reads the cone of this id.
pub(super) fn find(db: &Connection, id: &str, now: Timestamp) -> Result<Option<Cone>, ConeError> {
    let found = db
        .prepare_cached("SELECT * FROM cones WHERE id = ?1")?
        .query_row([id], read)
        .optional()?;
    let Some(mut cone) = found else {
        return Ok(None);
    };
    cone.head = arbor::summary_in(db, &cone.tree_id, now)?.head;
    Ok(Some(cone))
}

/// Reads the cone that `identifier` denotes: the cone of this id, or of this name, or the only cone
/// whose name or id begins with it.
pub(super) fn lookup(db: &Connection, identifier: &str, now: Timestamp) -> Result<Cone, ConeError> {
    let not_found = || ConeError::NotFound(identifier.to_owned());
    let exact = db
        .prepare_cached(
            "SELECT id FROM cones WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1",
        )?
        .query_row([identifier], |row| row.get::<_, String>(0))
        .optional()?;
    let id = match exact {
        Some(id) => id,
        None if identifier.is_empty() => return Err(not_found()),
        None => only(db, identifier)?.ok_or_else(not_found)?,
    };
    find(db, &id, now)?.ok_or_else(not_found)
}

/// All cones, by name.
pub(super) fn all(db: &Connection, now: Timestamp) -> Result<Vec<Cone>, ConeError> {
    let mut statement = db.prepare_cached("SELECT * FROM cones ORDER BY name")?;
    let cones = statement.query_map([], read)?;
    let mut cones: Vec<Cone> = cones.collect::<rusqlite::Result<_>>()?;
    for cone in &mut cones {
        cone.head = arbor::summary_in(db, &cone.tree_id, now)?.head;
    }
    Ok(cones)
}

/// The id of the only cone whose name or id begins with `beginning`, if there is one.
fn only(db: &Connection, beginning: &str) -> Result<Option<String>, ConeError> {
    let mut statement = db.prepare_cached(
        "SELECT id, name FROM cones
         WHERE substr(name, 1, length(?1)) = ?1 OR substr(id, 1, length(?1)) = ?1
         ORDER BY name LIMIT ?2",
    )?;
    let fitting = statement.query_map((beginning, MAX_MATCHES), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut fitting: Vec<(String, String)> = fitting.collect::<rusqlite::Result<_>>()?;
    if fitting.len() > 1 {
        let matches = fitting
            .iter()
            .map(|(id, name)| format!("{name:?} ({id})"))
            .collect();
        return Err(ConeError::Ambiguous {
            identifier: beginning.to_owned(),
            matches,
        });
    }
    Ok(fitting.pop().map(|(id, _)| id))
}

/// Reads a cone without its head, which the caller looks up.
fn read(row: &Row<'_>) -> rusqlite::Result<Cone> {
    let metadata: Option<String> = row.get("metadata")?;
    let metadata = metadata.and_then(|text| Raw::parse(text.into(), &Limits::default()).ok());
    Ok(Cone {
        id: row.get("id")?,
        name: row.get("name")?,
        model_id: row.get("model_id")?,
        system_prompt: row.get("system_prompt")?,
        base_url: row.get("base_url")?,
        max_tokens: row.get("max_tokens")?,
        metadata,
        tree_id: row.get("tree_id")?,
        head: String::new(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
