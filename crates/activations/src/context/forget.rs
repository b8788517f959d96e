//! Letting nodes go, getting them back, and saying how much they matter.

use plexus_store::rusqlite::{self, OptionalExtension, Transaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::graph::Graph;
use super::node::rfc3339;
use super::remember::{live, require};
use super::sync::{next_revision, touch};

/// For how long what is forgotten can be restored, and a merge be undone: 30 days (§3.1).
pub(super) const KEPT: i64 = 30 * 24 * 3_600_000;

/// Which node to forget, and how.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Forget {
    /// Which node.
    pub id: String,
    /// Whether it can be restored for 30 days. If not, its content is gone at once.
    #[serde(default = "yes")]
    pub soft_delete: bool,
    /// Why.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,
}

impl Forget {
    /// The node of this id, restorable.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            soft_delete: true,
            reason: None,
        }
    }
}

/// That a node is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Forgotten {
    /// Which node.
    pub id: String,
    /// Until when it can be restored, in UTC, as RFC 3339 writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub restorable_until: Option<String>,
}

/// That a node is back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Restored {
    /// Which node.
    pub id: String,
    /// Whether it had been forgotten.
    pub restored: bool,
}

/// How much more, or less, a node matters.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to say")]
pub struct Boost {
    /// Which node.
    pub id: String,
    /// What to add to its importance, which stays between 0 and 1.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub delta: f64,
}

/// How much a node matters now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Boosted {
    /// Which node.
    pub id: String,
    /// Its importance before.
    pub old_importance: f64,
    /// Its importance now.
    pub new_importance: f64,
}

impl Graph {
    /// Forgets a node.
    pub async fn forget(&self, request: Forget, caller: &str) -> Result<Forgotten, GraphError> {
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let Forget {
                id,
                soft_delete,
                reason,
            } = request;
            let action = if soft_delete {
                require(transaction, &id)?;
                let_go(transaction, &id, now)?;
                Action::Forget
            } else {
                erase(transaction, &id, now)?;
                Action::Erase
            };
            let record = Record::new(now, action, &id, &caller).because(reason.as_deref());
            record.keep(transaction)?;
            purge(transaction, now)?;
            let restorable_until = soft_delete.then(|| rfc3339(now + KEPT));
            Ok(Forgotten {
                id,
                restorable_until,
            })
        })
        .await
    }

    /// Gets a forgotten node back. One that is there stays as it is.
    pub async fn restore(&self, id: &str, caller: &str) -> Result<Restored, GraphError> {
        let now = self.now();
        let id = id.to_owned();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let restored = bring_back(transaction, &id, now)?;
            if restored {
                let record = Record::new(now, Action::Restore, &id, &caller);
                record.keep(transaction)?;
            } else {
                require(transaction, &id)?;
            }
            Ok(Restored { id, restored })
        })
        .await
    }

    /// Changes how much a node matters.
    pub async fn boost(&self, request: Boost, caller: &str) -> Result<Boosted, GraphError> {
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let Boost { id, delta } = request;
            if !(-1.0..=1.0).contains(&delta) {
                return Err(GraphError::Invalid {
                    member: "delta",
                    rule: "from -1 to 1",
                });
            }
            let old_importance = live(transaction, &id)?.importance;
            let new_importance = (old_importance + delta).clamp(0.0, 1.0);
            transaction
                .prepare_cached("UPDATE context_nodes SET importance = ?2 WHERE id = ?1")?
                .execute((&id, new_importance))?;
            touch(transaction, &id)?;
            let record = Record::new(now, Action::Boost, &id, &caller)
                .detail(format!("importance {old_importance} -> {new_importance}"));
            record.keep(transaction)?;
            Ok(Boosted {
                id,
                old_importance,
                new_importance,
            })
        })
        .await
    }
}

/// Forgets a live node, restorably.
pub(super) fn let_go(transaction: &Transaction<'_>, id: &str, now: i64) -> rusqlite::Result<()> {
    touch_neighbours(transaction, id)?;
    let revision = next_revision(transaction)?;
    transaction
        .prepare_cached(
            "UPDATE context_nodes SET state = 'forgotten', purge_at = ?2, revision = ?3
             WHERE id = ?1 AND state = 'live'",
        )?
        .execute((id, now + KEPT, revision))?;
    Ok(())
}

/// Restores a forgotten node, unless it is too late. Tells whether it did.
pub(super) fn bring_back(
    transaction: &Transaction<'_>,
    id: &str,
    now: i64,
) -> rusqlite::Result<bool> {
    touch_neighbours(transaction, id)?;
    let revision = next_revision(transaction)?;
    let restored = transaction
        .prepare_cached(
            "UPDATE context_nodes SET state = 'live', purge_at = NULL, revision = ?3
             WHERE id = ?1 AND state = 'forgotten' AND purge_at > ?2",
        )?
        .execute((id, now, revision))?;
    Ok(restored > 0)
}

/// Removes what nobody can get back any more.
pub(super) fn purge(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM context_nodes WHERE purge_at <= ?1")?
        .execute([now])?;
    transaction
        .prepare_cached("DELETE FROM context_merges WHERE undo_until <= ?1")?
        .execute([now])?;
    Ok(())
}

/// Forgets a node for good, even one that is only forgotten yet.
fn erase(transaction: &Transaction<'_>, id: &str, now: i64) -> Result<(), GraphError> {
    touch_neighbours(transaction, id)?;
    let revision = next_revision(transaction)?;
    let erased = transaction
        .prepare_cached(
            "UPDATE context_nodes SET state = 'erased', purge_at = ?2, revision = ?3, content = '',
                 key = NULL, tags = '[]', rationale = NULL, vector = NULL, embedder = NULL
             WHERE id = ?1 AND state <> 'erased' RETURNING id",
        )?
        .query_row((id, now + KEPT, revision), |_| Ok(()))
        .optional()?;
    erased.ok_or_else(|| GraphError::NotFound(id.to_owned()))?;
    transaction
        .prepare_cached("DELETE FROM context_links WHERE source = ?1 OR target = ?1")?
        .execute([id])?;
    Ok(())
}

/// Nodes are shown with their links to what is not forgotten, so these change too.
fn touch_neighbours(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    let mut neighbours = transaction.prepare_cached(
        "SELECT target FROM context_links WHERE source = ?1
         UNION SELECT source FROM context_links WHERE target = ?1",
    )?;
    let neighbours = neighbours.query_map([id], |row| row.get(0))?;
    for neighbour in neighbours.collect::<rusqlite::Result<Vec<String>>>()? {
        touch(transaction, &neighbour)?;
    }
    Ok(())
}

fn yes() -> bool {
    true
}
