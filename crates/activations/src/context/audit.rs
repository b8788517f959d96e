//! Who changed what, and why.

use plexus_store::rusqlite::{self, Transaction, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::node::rfc3339;

/// What was done to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[non_exhaustive]
pub enum Action {
    /// It was stored, or stored anew.
    Store,
    /// It was linked to another.
    Link,
    /// A link was taken away.
    Unlink,
    /// Its importance changed.
    Boost,
    /// It was forgotten, and can be restored.
    Forget,
    /// It was forgotten for good.
    Erase,
    /// It was restored.
    Restore,
    /// It was made of others.
    Merge,
    /// It was taken apart again.
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

/// Which part of the audit trail is wanted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditQuery {
    /// Only what was done to this node.
    #[serde(default)]
    pub id: Option<String>,
    /// Only actions of this kind.
    #[serde(default)]
    pub action: Option<Action>,
    /// Only the last so many hours.
    #[serde(default)]
    #[schemars(range(min = 1, max = 876_000))]
    pub last_hours: Option<u32>,
    /// How many entries to give at most, the newest first.
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

/// A part of the audit trail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditTrail {
    /// What was done, the newest first.
    pub entries: Vec<AuditEntry>,
    /// How many entries these are.
    pub count: usize,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Counts up from 1.
    pub number: i64,
    /// When it was done, in UTC, as RFC 3339 writes it.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// What was done.
    pub action: String,
    /// To which node.
    pub id: String,
    /// Who did it, in the caller's own words.
    pub caller: String,
    /// Why, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else is to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Graph {
    /// What was done to the graph.
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

/// One change, as it is made.
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

    pub(super) fn because(mut self, reason: Option<&'a str>) -> Self {
        self.reason = reason;
        self
    }

    pub(super) fn detail(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Adds it to the trail, in the transaction that makes the change.
    pub(super) fn keep(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
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
