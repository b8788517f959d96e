//! The database tables of transcripts, and queries on them.

use plexus_mcp_agents::model::{ChatMessage, MessagePart, Speaker};
use plexus_mcp_store::Migrations;
use plexus_mcp_store::StoreError;
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, params};

use super::{TranscriptError, TranscriptSummary};

/// The migrations that create the tables of transcripts.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "host",
    steps: &["
        CREATE TABLE host_transcripts (
            id TEXT NOT NULL PRIMARY KEY,
            project TEXT NOT NULL,
            head INTEGER,
            changed_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX host_transcripts_changed ON host_transcripts (project, changed_at);
        CREATE TABLE host_messages (
            number INTEGER PRIMARY KEY,
            transcript TEXT NOT NULL REFERENCES host_transcripts (id),
            parent INTEGER REFERENCES host_messages (number),
            speaker TEXT NOT NULL,
            parts TEXT NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE host_results (
            transcript TEXT NOT NULL REFERENCES host_transcripts (id),
            call TEXT NOT NULL,
            result TEXT NOT NULL
        ) STRICT;
        CREATE INDEX host_results_call ON host_results (transcript, call);
    "],
};

/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 80;
/// The most transcripts of a list.
const MAX_LISTED: u32 = 200;
/// The messages from the head of the transcript `?1` back to its first.
const PATH: &str = "
    WITH RECURSIVE path (number, parent, speaker, parts, depth) AS (
        SELECT m.number, m.parent, m.speaker, m.parts, 0
        FROM host_messages m JOIN host_transcripts t ON t.head = m.number WHERE t.id = ?1
        UNION ALL
        SELECT m.number, m.parent, m.speaker, m.parts, path.depth + 1
        FROM host_messages m JOIN path ON m.number = path.parent
    )";

/// A message as it is stored.
pub(super) struct StoredMessage {
    speaker: String,
    parts: String,
}

impl StoredMessage {
    pub(super) fn of(message: &ChatMessage) -> Result<Self, TranscriptError> {
        let parts = serde_json::to_string(&message.parts);
        Ok(Self {
            speaker: message.speaker.as_str().to_owned(),
            parts: parts.map_err(|error| unreadable(&error))?,
        })
    }

    pub(super) fn into_message(self) -> Result<ChatMessage, TranscriptError> {
        let speaker = match self.speaker.as_str() {
            "assistant" => Speaker::Assistant,
            _ => Speaker::User,
        };
        let parts: Result<Vec<MessagePart>, _> = serde_json::from_str(&self.parts);
        let parts = parts.map_err(|error| unreadable(&error))?;
        Ok(ChatMessage { speaker, parts })
    }
}

pub(super) fn begin(
    db: &Connection,
    id: &str,
    project: &str,
    now: i64,
) -> Result<(), TranscriptError> {
    db.prepare_cached(
        "INSERT INTO host_transcripts (id, project, changed_at) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![id, project, now])?;
    Ok(())
}

/// The ids of the transcripts that begin so, at most two.
pub(super) fn find(db: &Connection, beginning: &str) -> Result<Vec<String>, TranscriptError> {
    let mut statement = db.prepare_cached(
        "SELECT id FROM host_transcripts WHERE substr(id, 1, length(?1)) = ?1
         ORDER BY id <> ?1 LIMIT 2",
    )?;
    let mut ids: Vec<String> = statement
        .query_map([beginning], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if ids.first().is_some_and(|id| id == beginning) {
        ids.truncate(1);
    }
    Ok(ids)
}

pub(super) fn list(
    db: &Connection,
    project: Option<&str>,
) -> Result<Vec<TranscriptSummary>, TranscriptError> {
    let mut statement = db.prepare_cached(
        "SELECT id, project, changed_at FROM host_transcripts
         WHERE (?1 IS NULL OR project = ?1) AND head IS NOT NULL
         ORDER BY changed_at DESC, id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![project, MAX_LISTED], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let rows: Vec<(String, String, i64)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut listed = Vec::new();
    for (id, project, changed) in rows {
        let messages = messages(db, &id)?;
        let first = messages
            .iter()
            .position(|message| message.speaker == "user");
        let count = messages.len();
        let first = first.and_then(|at| messages.into_iter().nth(at));
        let title = match first {
            Some(message) => message.into_message()?.joined_text(),
            None => String::new(),
        };
        let line = title.lines().next().unwrap_or_default();
        listed.push(TranscriptSummary {
            title: line.chars().take(MAX_TITLE_CHARS).collect(),
            messages: count,
            id,
            project,
            changed,
        });
    }
    Ok(listed)
}

pub(super) fn messages(db: &Connection, id: &str) -> Result<Vec<StoredMessage>, TranscriptError> {
    let query = format!("{PATH} SELECT speaker, parts FROM path ORDER BY depth DESC");
    let mut statement = db.prepare_cached(&query)?;
    let rows = statement.query_map([id], |row| {
        Ok(StoredMessage {
            speaker: row.get(0)?,
            parts: row.get(1)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn add(
    db: &Connection,
    id: &str,
    message: &StoredMessage,
    is_root: bool,
    now: i64,
) -> Result<(), TranscriptError> {
    let head = head(db, id)?.filter(|_| !is_root);
    db.prepare_cached(
        "INSERT INTO host_messages (transcript, parent, speaker, parts, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![id, head, message.speaker, message.parts, now])?;
    set_head(db, id, Some(db.last_insert_rowid()), now)
}

pub(super) fn keep_result(
    db: &Connection,
    id: &str,
    call: &str,
    result: &str,
) -> Result<(), TranscriptError> {
    db.prepare_cached("INSERT INTO host_results (transcript, call, result) VALUES (?1, ?2, ?3)")?
        .execute([id, call, result])?;
    Ok(())
}

/// Moves the head to the parent of the `prompts`-last message in which the user said something.
pub(super) fn rewind(
    db: &Connection,
    id: &str,
    prompts: usize,
    now: i64,
) -> Result<(), TranscriptError> {
    let query = format!("{PATH} SELECT parent, speaker, parts FROM path ORDER BY depth");
    let mut statement = db.prepare_cached(&query)?;
    let rows = statement.query_map([id], |row| {
        let stored = StoredMessage {
            speaker: row.get(1)?,
            parts: row.get(2)?,
        };
        Ok((row.get::<_, Option<i64>>(0)?, stored))
    })?;
    let mut left = prompts;
    for row in rows {
        let (parent, stored) = row?;
        let message = stored.into_message()?;
        if message.speaker == Speaker::User && !message.joined_text().is_empty() {
            left = left.saturating_sub(1);
            if left == 0 {
                return set_head(db, id, parent, now);
            }
        }
    }
    Ok(())
}

fn head(db: &Connection, id: &str) -> Result<Option<i64>, TranscriptError> {
    let head = db
        .prepare_cached("SELECT head FROM host_transcripts WHERE id = ?1")?
        .query_row([id], |row| row.get::<_, Option<i64>>(0))
        .optional()?;
    head.ok_or_else(|| TranscriptError::NotFound(id.to_owned()))
}

fn set_head(db: &Connection, id: &str, head: Option<i64>, now: i64) -> Result<(), TranscriptError> {
    db.prepare_cached("UPDATE host_transcripts SET head = ?2, changed_at = ?3 WHERE id = ?1")?
        .execute(params![id, head, now])?;
    Ok(())
}

fn unreadable(error: &serde_json::Error) -> TranscriptError {
    TranscriptError::Unreadable(error.to_string())
}

impl From<rusqlite::Error> for TranscriptError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(StoreError::from(error))
    }
}
