//! The audit trail: changes of nodes, with their callers and reasons.

use plexus_mcp_store::rusqlite::{self, Transaction, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::node::rfc3339;

/// A kind of change to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[non_exhaustive]
pub enum Action {
    /// The node was stored or replaced.
    Store,
    /// The node was linked to another.
    Link,
    /// A link of the node was removed.
    Unlink,
    /// The importance of the node changed.
    Boost,
    /// The node was forgotten, and can be restored.
    Forget,
    /// The node was deleted for good.
    Erase,
    /// The node was restored.
    Restore,
    /// The node was made by a merge of others.
    Merge,
    /// The merge that made the node was undone.
    Unmerge,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Link => "link",
            Self::Unlink => "unlink",
            Self::Boost => "boost",
            Self::Forget => "forget",
            Self::Erase => "erase",
            Self::Restore => "restore",
            Self::Merge => "merge",
            Self::Unmerge => "unmerge",
        }
    }
}

/// Selects entries of the audit trail.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditQuery {
    /// Only changes of this node.
    #[serde(default)]
    pub id: Option<String>,
    /// Only changes of this kind.
    #[serde(default)]
    pub action: Option<Action>,
    /// Only changes within this many hours.
    #[serde(default)]
    #[schemars(range(min = 1, max = 876_000))]
    pub last_hours: Option<u32>,
    /// The maximum number of entries, the newest first.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    pub limit: u32,
}

impl Default for AuditQuery {
    fn default() -> Self {
        Self {
            id: None,
            action: None,
            last_hours: None,
            limit: default_limit(),
        }
    }
}

/// Entries of the audit trail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditTrail {
    /// The changes, the newest first.
    pub entries: Vec<AuditEntry>,
    /// The number of entries.
    pub count: usize,
}

/// One entry of the audit trail: a change to a node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The number of the entry. Entries are numbered from 1.
    pub number: i64,
    /// When the change was made, in UTC, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The kind of change.
    pub action: String,
    /// The id of the changed node.
    pub id: String,
    /// The caller that made the change, as it named itself.
    pub caller: String,
    /// The reason for the change, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Further details of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Graph {
    /// Returns the entries of the audit trail that match `query`.
    pub async fn audit(&self, query: AuditQuery) -> Result<AuditTrail, GraphError> {
        let hour = 3_600_000;
        let since = query
            .last_hours
            .map(|hours| self.now() - i64::from(hours) * hour);
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT number, at, action, node, caller, reason, detail FROM context_audit
                 WHERE (:id IS NULL OR node = :id) AND (:action IS NULL OR action = :action)
                     AND (:since IS NULL OR at >= :since)
                 ORDER BY number DESC LIMIT :limit",
            )?;
            let entries = statement.query_map(
                named_params! {
                    ":id": query.id,
                    ":action": query.action.map(Action::as_str),
                    ":since": since,
                    ":limit": query.limit,
                },
                |row| {
                    Ok(AuditEntry {
                        number: row.get("number")?,
                        at: rfc3339(row.get("at")?),
                        action: row.get("action")?,
                        id: row.get("node")?,
                        caller: row.get("caller")?,
                        reason: row.get("reason")?,
                        detail: row.get("detail")?,
                    })
                },
            )?;
            let entries: Vec<_> = entries.collect::<rusqlite::Result<_>>()?;
            let count = entries.len();
            Ok(AuditTrail { entries, count })
        })
        .await
    }
}

/// An entry of the audit trail that is about to be written.
#[derive(Debug)]
pub(super) struct Record<'a> {
    at: i64,
    action: Action,
    id: &'a str,
    caller: &'a str,
    reason: Option<&'a str>,
    detail: Option<String>,
}

impl<'a> Record<'a> {
    pub(super) fn new(at: i64, action: Action, id: &'a str, caller: &'a str) -> Self {
        Self {
            at,
            action,
            id,
            caller,
            reason: None,
            detail: None,
        }
    }

    pub(super) fn reason(mut self, reason: Option<&'a str>) -> Self {
        self.reason = reason;
        self
    }

    pub(super) fn detail(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Writes the entry, in the transaction that makes the change.
    pub(super) fn insert(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "INSERT INTO context_audit (at, action, node, caller, reason, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((
                self.at,
                self.action.as_str(),
                self.id,
                self.caller,
                self.reason,
                self.detail,
            ))?;
        Ok(())
    }
}

fn default_limit() -> u32 {
    50
}
