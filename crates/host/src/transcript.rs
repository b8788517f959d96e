//! Transcripts: the conversations of agents, stored as they happen.
//!
//! A transcript is a tree of messages. Its head is the last message of the conversation; going back
//! moves the head, and nothing is deleted. Each message is stored before the agent goes on, so a
//! program that is killed loses nothing but the answer that was being written.

mod tables;

use std::path::Path;

use plexus_mcp_agents::model::ChatMessage;
use plexus_mcp_store::rusqlite;
use plexus_mcp_store::{Store, StoreError};
use plexus_mcp_wire::Raw;

pub use tables::MIGRATIONS;
use tables::StoredMessage;

/// Where transcripts are stored.
#[derive(Debug, Clone)]
pub struct Transcripts {
    store: Store,
}

/// The transcript of one conversation.
#[derive(Debug, Clone)]
pub struct Transcript {
    store: Option<Store>,
    id: String,
}

/// A transcript in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptSummary {
    /// Its id.
    pub id: String,
    /// The directory that the agent worked in.
    pub project: String,
    /// The beginning of the first prompt.
    pub title: String,
    /// When it was changed last, in milliseconds since 1970.
    pub changed: i64,
    /// How many messages it has, from the first to the head.
    pub messages: usize,
}

/// Why a transcript cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such transcript.
    #[error("there is no conversation {0:?}")]
    NotFound(String),
    /// Several transcripts match.
    #[error("several conversations begin with {0:?}; give more of the id")]
    Ambiguous(String),
    /// A stored message cannot be read.
    #[error("a stored message cannot be read: {0}")]
    Unreadable(String),
}

impl Transcripts {
    /// Transcripts in this store, which must have been opened with [`MIGRATIONS`].
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Transcripts in the database of this data directory, which is opened when it is needed.
    pub fn in_directory(directory: &Path) -> Self {
        let path = directory.join(plexus_mcp_store::FILE_NAME);
        Self::new(Store::at(&path, &[MIGRATIONS]))
    }

    /// Begins a transcript for an agent that works in `project`.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn begin(&self, project: &str) -> Result<Transcript, TranscriptError> {
        let id = uuid::Uuid::now_v7().to_string();
        let (new, project) = (id.clone(), project.to_owned());
        let now = now();
        let work = move |db: &rusqlite::Transaction<'_>| tables::begin(db, &new, &project, now);
        self.store.write(work).await?;
        Ok(Transcript {
            store: Some(self.store.clone()),
            id,
        })
    }

    /// The transcript with this id, or whose id begins so.
    ///
    /// # Errors
    /// There is not exactly one.
    pub async fn find(&self, id: &str) -> Result<Transcript, TranscriptError> {
        let wanted = id.to_owned();
        let found = self.store.read(move |db| tables::find(db, &wanted)).await?;
        let not_found = || TranscriptError::NotFound(id.to_owned());
        let store = Some(self.store.clone());
        match found.as_slice() {
            [] => Err(not_found()),
            [id] => Ok(Transcript {
                store,
                id: id.clone(),
            }),
            _ => Err(TranscriptError::Ambiguous(id.to_owned())),
        }
    }

    /// The transcripts of a project, or of all, the one that was changed last first.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn list(
        &self,
        project: Option<&str>,
    ) -> Result<Vec<TranscriptSummary>, TranscriptError> {
        let project = project.map(str::to_owned);
        let work = move |db: &rusqlite::Connection| tables::list(db, project.as_deref());
        self.store.read(work).await
    }
}

impl Transcript {
    /// A transcript that is stored nowhere, such as that of a sub-agent.
    pub fn unstored() -> Self {
        Self {
            store: None,
            id: uuid::Uuid::now_v7().to_string(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The messages from the first to the head.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn messages(&self) -> Result<Vec<ChatMessage>, TranscriptError> {
        let Some(store) = &self.store else {
            return Ok(Vec::new());
        };
        let id = self.id.clone();
        let stored = store.read(move |db| tables::messages(db, &id)).await?;
        stored
            .into_iter()
            .map(StoredMessage::into_message)
            .collect()
    }

    /// Adds a message behind the head, and makes it the head.
    pub(crate) async fn add(&self, message: &ChatMessage) -> Result<(), TranscriptError> {
        self.write(message, false).await
    }

    /// Begins the conversation again with a message that stands for all before. They stay in the
    /// tree.
    pub(crate) async fn replace_by(&self, message: &ChatMessage) -> Result<(), TranscriptError> {
        self.write(message, true).await
    }

    async fn write(&self, message: &ChatMessage, is_root: bool) -> Result<(), TranscriptError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let message = StoredMessage::of(message)?;
        let id = self.id.clone();
        let now = now();
        let work =
            move |db: &rusqlite::Transaction<'_>| tables::add(db, &id, &message, is_root, now);
        store.write(work).await
    }

    /// Stores the result of a call as the server gave it.
    pub(crate) async fn keep_result(&self, call: &str, raw: &Raw) -> Result<(), TranscriptError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let (id, call, raw) = (self.id.clone(), call.to_owned(), raw.as_str().to_owned());
        let work = move |db: &rusqlite::Transaction<'_>| tables::keep_result(db, &id, &call, &raw);
        store.write(work).await
    }

    /// Moves the head back by so many messages of the user, and everything after them. The next
    /// prompt begins a branch there.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn rewind(&self, prompts: usize) -> Result<(), TranscriptError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let id = self.id.clone();
        let now = now();
        let work = move |db: &rusqlite::Transaction<'_>| tables::rewind(db, &id, prompts, now);
        store.write(work).await
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
