//! Where cones are made, found and changed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plexus_service::{LocalService, Raw};
use plexus_store::rusqlite::{Connection, OptionalExtension};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::ConeError;
use super::tables;
use crate::arbor::{Change, Trees};
use crate::ledger::written;
use crate::model::{ModelId, Models};

/// The most characters of a name.
const MAX_NAME: usize = 100;

/// A conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Cone {
    /// The cone's id. Ids sort by age.
    pub id: String,
    /// Its name, which no other has.
    pub name: String,
    /// The model that answers.
    pub model_id: String,
    /// How it is to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Where the model is served, if not where its provider usually is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// How much it may say at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// The tree that has the conversation.
    pub tree_id: String,
    /// The node where the conversation goes on.
    pub head: String,
    /// When it was created.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
}

/// A cone to be created.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct NewCone {
    /// Its name, which no other may have.
    pub name: String,
    /// The model that answers.
    pub model_id: String,
    /// How it is to answer.
    pub system_prompt: Option<String>,
    /// Where the model is served, if not where its provider usually is.
    pub base_url: Option<String>,
    /// How much it may say at once.
    pub max_tokens: Option<u32>,
    /// What else is known of it: a JSON object.
    pub metadata: Option<Raw>,
}

/// Where a head was and is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Moved {
    /// The cone's id.
    pub cone_id: String,
    /// Where the conversation would have gone on.
    pub old_head: String,
    /// Where it goes on.
    pub new_head: String,
}

/// Conversations, which several clients and processes may share. Cheap to clone.
///
/// Every method that changes something does all of it or, if it fails, nothing.
#[derive(Clone)]
pub struct Cones {
    pub(super) trees: Trees,
    pub(super) models: Models,
    /// Who chats with which cone here. Chats with one cone take turns, so that each knows what was
    /// said before it.
    turns: Arc<Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>>,
    /// Held while what a service lists is brought up to date.
    pub(super) listing: Arc<tokio::sync::Mutex<()>>,
}

impl Cones {
    /// The cones in the store of `trees`, which was opened with [`MIGRATIONS`](super::MIGRATIONS),
    /// asking `models`.
    pub fn new(trees: Trees, models: Models) -> Self {
        Self {
            trees,
            models,
            turns: Arc::default(),
            listing: Arc::default(),
        }
    }

    /// The same cones, telling the subscribers of `service` what changes in their trees.
    pub(super) fn announcing_to(&self, service: Option<&LocalService>) -> Self {
        Self {
            trees: self.trees.announcing_to(service),
            ..self.clone()
        }
    }

    /// A new cone, with an empty tree that it holds.
    ///
    /// # Errors
    /// Nobody serves such a model, or the name or another member cannot be used.
    pub async fn create(&self, new: NewCone) -> Result<Cone, ConeError> {
        ModelId::parse(&new.model_id)?;
        if let Some(url) = &new.base_url {
            Models::check_base_url(url)?;
        }
        let name = new.name.trim().to_owned();
        let is_long = name.chars().count() > MAX_NAME;
        if name.is_empty() || is_long || name.chars().any(char::is_control) {
            return Err(ConeError::BadName);
        }
        let new = NewCone { name, ..new };
        self.trees.change(move |change| create(change, new)).await
    }

    /// The cone of this id or name, or the only one whose id or name begins so.
    ///
    /// # Errors
    /// There is none, or several.
    pub async fn get(&self, identifier: impl Into<String>) -> Result<Cone, ConeError> {
        let (identifier, now) = (identifier.into(), self.trees.now());
        self.read(move |db| tables::lookup(db, &identifier, now))
            .await
    }

    /// All cones, by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self) -> Result<Vec<Cone>, ConeError> {
        let now = self.trees.now();
        self.read(move |db| tables::all(db, now)).await
    }

    /// Deletes a cone, and gives it back as it was. Its tree stays, but the cone no longer holds it.
    ///
    /// # Errors
    /// There is none, or several.
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

    /// Lets the conversation go on from another node of the cone's tree.
    ///
    /// # Errors
    /// There is no such cone, or no such node in its tree.
    pub async fn set_head(
        &self,
        identifier: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Moved, ConeError> {
        let (identifier, node) = (identifier.into(), node_id.into());
        self.trees
            .change(move |change| {
                let cone = tables::lookup(change.db, &identifier, change.now)?;
                change.set_head(&cone.tree_id, &node)?;
                touch(change, &cone.id)?;
                Ok(Moved {
                    cone_id: cone.id,
                    old_head: cone.head,
                    new_head: node,
                })
            })
            .await
    }

    /// Waits until no other chat with the cone is under way here.
    pub(super) async fn turn(&self, id: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(id).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(id.to_owned(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
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

/// Remembers when a cone was changed.
pub(super) fn touch(change: &Change<'_>, id: &str) -> Result<(), ConeError> {
    change
        .db
        .prepare_cached("UPDATE cones SET updated_at = ?2 WHERE id = ?1")?
        .execute((id, written(change.now)))?;
    Ok(())
}

fn create(change: &mut Change<'_>, new: NewCone) -> Result<Cone, ConeError> {
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
    // From the start the head is where it is put, whatever others add to the tree.
    change.set_head(&tree.id, &tree.root)?;
    let metadata = new.metadata.as_ref().map(Change::checked).transpose()?;
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
            written(change.now),
        ))?;
    tables::find(change.db, &id, change.now)?.ok_or(ConeError::NotFound(id))
}
