//! Forgets and restores nodes, and changes their importance.

use plexus_mcp_store::rusqlite::{self, OptionalExtension, Transaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::graph::Graph;
use super::node::rfc3339;
use super::nodes::{live, require};
use super::revisions::{next_revision, touch};

/// For how long a forgotten node can be restored and a merge can be undone: 30 days.
pub(super) const RESTORE_PERIOD_MS: i64 = 30 * 24 * 3_600_000;

/// A request to forget a node.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Forget {
    /// The id of the node.
    pub id: String,
    /// Whether the node can be restored for 30 days. If not, its content is deleted at once.
    #[serde(default = "yes")]
    pub soft_delete: bool,
    /// The reason, for the audit trail.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,
}

impl Forget {
    /// Forgets the node of this id in such a way that it can be restored.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            soft_delete: true,
            reason: None,
        }
    }
}

/// The result of forgetting a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Forgotten {
    /// The id of the node.
    pub id: String,
    /// The time until which the node can be restored, in UTC, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub restorable_until: Option<String>,
}

/// The result of restoring a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Restored {
    /// The id of the node.
    pub id: String,
    /// Whether the node was restored; false if it was not forgotten.
    pub restored: bool,
}

/// A request to change the importance of a node.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the request needs no other members"
)]
pub struct Boost {
    /// The id of the node.
    pub id: String,
    /// The amount to add to the importance, which stays between 0 and 1.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub delta: f64,
}

/// The result of changing the importance of a node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Boosted {
    /// The id of the node.
    pub id: String,
    /// The importance before the change.
    pub old_importance: f64,
    /// The importance after the change.
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
                soft_delete_node(transaction, &id, now)?;
                Action::Forget
            } else {
                erase(transaction, &id, now)?;
                Action::Erase
            };
            let record = Record::new(now, action, &id, &caller).reason(reason.as_deref());
            record.insert(transaction)?;
            purge(transaction, now)?;
            let restorable_until = soft_delete.then(|| rfc3339(now + RESTORE_PERIOD_MS));
            Ok(Forgotten {
                id,
                restorable_until,
            })
        })
        .await
    }

    /// Restores a forgotten node. A node that is not forgotten stays as it is.
    pub async fn restore(&self, id: &str, caller: &str) -> Result<Restored, GraphError> {
        let now = self.now();
        let id = id.to_owned();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let restored = restore_node(transaction, &id, now)?;
            if restored {
                let record = Record::new(now, Action::Restore, &id, &caller);
                record.insert(transaction)?;
            } else {
                require(transaction, &id)?;
            }
            Ok(Restored { id, restored })
        })
        .await
    }

    /// Changes the importance of a node.
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
            record.insert(transaction)?;
            Ok(Boosted {
                id,
                old_importance,
                new_importance,
            })
        })
        .await
    }
}

/// Forgets a live node in such a way that it can be restored.
pub(super) fn soft_delete_node(
    transaction: &Transaction<'_>,
    id: &str,
    now: i64,
) -> rusqlite::Result<()> {
    touch_neighbours(transaction, id)?;
    let revision = next_revision(transaction)?;
    transaction
        .prepare_cached(
            "UPDATE context_nodes SET state = 'forgotten', purge_at = ?2, revision = ?3
             WHERE id = ?1 AND state = 'live'",
        )?
        .execute((id, now + RESTORE_PERIOD_MS, revision))?;
    Ok(())
}

/// Restores a forgotten node, unless its restore period is over. Returns whether it did.
pub(super) fn restore_node(
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

/// Deletes nodes and merges whose restore period is over.
pub(super) fn purge(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM context_nodes WHERE purge_at <= ?1")?
        .execute([now])?;
    transaction
        .prepare_cached("DELETE FROM context_merges WHERE undo_until <= ?1")?
        .execute([now])?;
    Ok(())
}

/// Deletes a node for good, even if it is already forgotten.
fn erase(transaction: &Transaction<'_>, id: &str, now: i64) -> Result<(), GraphError> {
    touch_neighbours(transaction, id)?;
    let revision = next_revision(transaction)?;
    let erased = transaction
        .prepare_cached(
            "UPDATE context_nodes SET state = 'erased', purge_at = ?2, revision = ?3, content = '',
                 key = NULL, tags = '[]', rationale = NULL, vector = NULL, embedder = NULL
             WHERE id = ?1 AND state <> 'erased' RETURNING id",
        )?
        .query_row((id, now + RESTORE_PERIOD_MS, revision), |_| Ok(()))
        .optional()?;
    erased.ok_or_else(|| GraphError::NotFound(id.to_owned()))?;
    transaction
        .prepare_cached("DELETE FROM context_links WHERE source = ?1 OR target = ?1")?
        .execute([id])?;
    Ok(())
}

/// Gives the neighbours of a node a new revision: a node is shown with its links to live nodes, so
/// the neighbours change too.
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
