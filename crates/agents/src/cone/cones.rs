//! [`Cones`]: creates, finds, changes and deletes cones.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plexus_mcp_core::{LocalService, Raw};
use plexus_mcp_store::rusqlite::{Connection, OptionalExtension};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::ConeError;
use super::tables;
use crate::model::{ModelId, Models};
use plexus_mcp_builtins::arbor::{Trees, WriteTransaction};
use plexus_mcp_builtins::support::timestamp_text;

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A stored conversation with a language model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Cone {
    /// The cone's id. Ids sort by age.
    pub id: String,
    /// The cone's name, which no other cone has.
    pub name: String,
    /// The model.
    pub model_id: String,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The base URL of the model's API, if not that of its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The maximum number of tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The metadata that was given for the cone: a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// The tree that holds the conversation.
    pub tree_id: String,
    /// The node where the conversation continues.
    pub head: String,
    /// When the cone was created.
    pub created_at: String,
    /// When the cone was last changed.
    pub updated_at: String,
}

/// A cone to be created.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct NewCone {
    /// The name of the cone, which no other cone may have.
    pub name: String,
    /// The model.
    pub model_id: String,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The base URL of the model's API, if not that of its provider.
    pub base_url: Option<String>,
    /// The maximum number of tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The metadata of the cone: a JSON object.
    pub metadata: Option<Raw>,
}

/// The result of moving the head of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct HeadMoved {
    /// The cone's id.
    pub cone_id: String,
    /// The head before.
    pub old_head: String,
    /// The head now.
    pub new_head: String,
}

/// The stored conversations, which several clients and processes may share. Cheap to clone.
///
/// Every method that writes is atomic: it makes all of its changes or none.
#[derive(Clone)]
pub struct Cones {
    pub(super) trees: Trees,
    pub(super) models: Models,
    /// A lock for each cone with a running chat. Chats with one cone run one after the other, so
    /// that each includes the previous one.
    chat_locks: Arc<Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>>,
    /// Held while the lists of a service are updated.
    pub(super) listing: Arc<tokio::sync::Mutex<()>>,
}

impl Cones {
    /// Uses the cones in the store of `trees`, which was opened with
    /// [`MIGRATIONS`](super::MIGRATIONS), and these `models`.
    pub fn new(trees: Trees, models: Models) -> Self {
        Self {
            trees,
            models,
            chat_locks: Arc::default(),
            listing: Arc::default(),
        }
    }

    /// The same cones, notifying the subscribers of `service` of changes in their trees.
    pub(super) fn notifying(&self, service: Option<&LocalService>) -> Self {
        Self {
            trees: self.trees.notifying(service),
            ..self.clone()
        }
    }

    /// Creates a cone, with an empty tree to which it holds a reference.
    ///
    /// # Errors
    /// The model id, the name or another member is not valid.
    pub async fn create(&self, new: NewCone) -> Result<Cone, ConeError> {
        ModelId::parse(&new.model_id)?;
        if let Some(url) = &new.base_url {
            Models::check_base_url(url)?;
        }
        let name = new.name.trim().to_owned();
        let is_long = name.chars().count() > MAX_NAME_CHARS;
        if name.is_empty() || is_long || name.chars().any(char::is_control) {
            return Err(ConeError::BadName);
        }
        let new = NewCone { name, ..new };
        self.trees.change(move |change| create(change, new)).await
    }

    /// Returns the cone of this id or name, or the only cone whose id or name begins with it.
    ///
    /// # Errors
    /// No cone matches, or several do.
    pub async fn get(&self, identifier: impl Into<String>) -> Result<Cone, ConeError> {
        let (identifier, now) = (identifier.into(), self.trees.now());
        self.read(move |db| tables::lookup(db, &identifier, now))
            .await
    }

    /// Returns all cones, by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self) -> Result<Vec<Cone>, ConeError> {
        let now = self.trees.now();
        self.read(move |db| tables::all(db, now)).await
    }

    /// Deletes a cone, and returns it. Its tree stays, but the cone no longer holds a reference.
    ///
    /// # Errors
    /// No cone matches, or several do.
    pub async fn delete(&self, identifier: impl Into<String>) -> Result<Cone, ConeError> {
        let identifier = identifier.into();
        self.trees
            .change(move |change| {
                let cone = tables::lookup(change.db, &identifier, change.now)?;
                change
                    .db
                    .prepare_cached("DELETE FROM cones WHERE id = ?1")?
                    .execute([&cone.id])?;
                change.release_all(&cone.tree_id, &cone.id)?;
                Ok(cone)
            })
            .await
    }

    /// Makes another node of the cone's tree the head, where the conversation continues.
    ///
    /// # Errors
    /// No cone matches, or its tree has no such node.
    pub async fn set_head(
        &self,
        identifier: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<HeadMoved, ConeError> {
        let (identifier, node) = (identifier.into(), node_id.into());
        self.trees
            .change(move |change| {
                let cone = tables::lookup(change.db, &identifier, change.now)?;
                change.set_head(&cone.tree_id, &node)?;
                touch(change, &cone.id)?;
                Ok(HeadMoved {
                    cone_id: cone.id,
                    old_head: cone.head,
                    new_head: node,
                })
            })
            .await
    }

    /// Waits until no other chat with the cone is running in this process.
    pub(super) async fn lock_chat(&self, id: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut chat_locks = self
                .chat_locks
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            chat_locks.retain(|_, lock| lock.strong_count() > 0);
            let known = chat_locks.get(id).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::default();
                chat_locks.insert(id.to_owned(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ConeError> + Send + 'static,
    ) -> Result<T, ConeError> {
        self.trees.store().read(work).await
    }
}

impl fmt::Debug for Cones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cones")
            .field("trees", &self.trees)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// Sets the time of the last change.
pub(super) fn touch(change: &WriteTransaction<'_>, id: &str) -> Result<(), ConeError> {
    change
        .db
        .prepare_cached("UPDATE cones SET updated_at = ?2 WHERE id = ?1")?
        .execute((id, timestamp_text(change.now)))?;
    Ok(())
}

fn create(change: &mut WriteTransaction<'_>, new: NewCone) -> Result<Cone, ConeError> {
    let taken = change
        .db
        .prepare_cached("SELECT 1 FROM cones WHERE name = ?1")?
        .query_row([&new.name], |_| Ok(()))
        .optional()?;
    if taken.is_some() {
        return Err(ConeError::NameTaken(new.name));
    }
    let id = change.new_id().to_string();
    let named = serde_json::json!({ "name": new.name, "cone_id": id });
    let named = Raw::encode(&named).map_err(|_no_json| ConeError::BadName)?;
    let tree = change.create(&id, Some(&named))?;
    // The head is set explicitly, so that nodes that others add to the tree do not move it.
    change.set_head(&tree.id, &tree.root)?;
    let metadata = new
        .metadata
        .as_ref()
        .map(WriteTransaction::checked)
        .transpose()?;
    change
        .db
        .prepare_cached(
            "INSERT INTO cones (id, name, model_id, system_prompt, base_url, max_tokens, metadata,
                                tree_id, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
        )?
        .execute((
            &id,
            &new.name,
            &new.model_id,
            new.system_prompt.filter(|prompt| !prompt.is_empty()),
            &new.base_url,
            new.max_tokens,
            metadata,
            &tree.id,
            timestamp_text(change.now),
        ))?;
    tables::find(change.db, &id, change.now)?.ok_or(ConeError::NotFound(id))
}
