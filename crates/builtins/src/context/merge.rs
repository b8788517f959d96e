//! Merges several nodes into one, and undoes merges.

use std::collections::HashSet;

use plexus_mcp_store::rusqlite::{self, OptionalExtension, Transaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::forget::{RESTORE_PERIOD_MS, restore_node, soft_delete_node};
use super::graph::Graph;
use super::node::{NewNode, Node, Strings, hash, rfc3339, searchable};
use super::nodes::{is_live, live, put};

/// How the content of a merged node is made from its sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the strategies are fixed by the specification"
)]
pub enum MergeStrategy {
    /// All lines and tags, in the order of the sources; the importance is the maximum.
    #[default]
    Union,
    /// The lines and tags that all sources have; the importance is the minimum.
    Intersection,
    /// All lines and tags, those of important sources first; the importance is the average of the
    /// sources, each weighted by its own importance.
    WeightedAverage,
}

/// A request to merge several nodes into one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Merge {
    /// The ids of the nodes to merge, all of one namespace. They are forgotten, and restored if the
    /// merge is undone.
    #[schemars(length(min = 2, max = 10))]
    pub source_ids: Vec<String>,
    /// The key of the merged node.
    #[schemars(length(min = 1, max = 256))]
    pub target_name: String,
    /// How the content of the merged node is made.
    #[serde(default)]
    pub strategy: MergeStrategy,
    /// Why the nodes belong together.
    #[schemars(length(min = 1, max = 1024))]
    pub rationale: String,
}

/// The result of merging nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Merged {
    /// The id of the merged node.
    pub id: String,
    /// The hash with which the merge can be undone.
    pub reversal_hash: String,
    /// The time until which the merge can be undone, in UTC, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub reversible_until: String,
}

/// The result of undoing a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unmerged {
    /// The ids of the sources that were restored.
    pub restored: Vec<String>,
    /// The id of the merged node, which is forgotten now and can be restored.
    pub forgotten: String,
}

impl Graph {
    /// Merges several nodes into one, which also gets their links.
    pub async fn merge(&self, request: Merge, caller: &str) -> Result<Merged, GraphError> {
        let plan = self.read({
            let request = request.clone();
            move |db| planned(&sources(db, &request)?, &request)
        });
        // The vector is made before the transaction, so that other writers do not wait for it.
        let planned = plan.await?;
        planned.check()?;
        let vector = self
            .vectorize(searchable(
                planned.key.as_deref(),
                &planned.tags,
                &planned.content,
            ))
            .await;
        let vectorizer = self.vectorizer().name().to_owned();
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let sources = sources(transaction, &request)?;
            let node = self::planned(&sources, &request)?;
            node.check()?;
            // If a source changed meanwhile, the vector is made when the graph is next opened.
            let vector = vector
                .filter(|_| node == planned)
                .map(|vector| (vector, vectorizer));
            let id = node.id();
            if is_live(transaction, &id)? {
                return Err(GraphError::KeyTaken(request.target_name));
            }
            put(transaction, &id, &node, vector, now)?;
            for source in &sources {
                take_over_links(transaction, &source.id, &id)?;
                soft_delete_node(transaction, &source.id, now)?;
            }
            let ids = request.source_ids.join(" ");
            let reversal_hash = hash(&["merge", &id, &ids, &now.to_string()]);
            transaction
                .prepare_cached("INSERT OR REPLACE INTO context_merges VALUES (?1, ?2, ?3, ?4)")?
                .execute((
                    &reversal_hash,
                    &id,
                    Strings(request.source_ids.clone()),
                    now + RESTORE_PERIOD_MS,
                ))?;
            let record = Record::new(now, Action::Merge, &id, &caller)
                .reason(Some(&request.rationale))
                .detail(format!("of {ids}"));
            record.insert(transaction)?;
            Ok(Merged {
                id,
                reversal_hash,
                reversible_until: rfc3339(now + RESTORE_PERIOD_MS),
            })
        })
        .await
    }

    /// Undoes a merge: the sources are restored, and the merged node is forgotten.
    pub async fn unmerge(&self, reversal_hash: &str, caller: &str) -> Result<Unmerged, GraphError> {
        let now = self.now();
        let hash = reversal_hash.to_owned();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let merge: Option<(String, Strings)> = transaction
                .prepare_cached(
                    "DELETE FROM context_merges WHERE hash = ?1 AND undo_until > ?2
                     RETURNING merged, sources",
                )?
                .query_row((&hash, now), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (forgotten, sources) = merge.ok_or(GraphError::UnknownMerge(hash))?;
            soft_delete_node(transaction, &forgotten, now)?;
            let mut restored = Vec::new();
            for source in sources.0 {
                // A source that was restored or stored again meanwhile stays as it is.
                if restore_node(transaction, &source, now)? {
                    restored.push(source);
                }
            }
            let record = Record::new(now, Action::Unmerge, &forgotten, &caller)
                .detail(format!("restored {}", restored.join(" ")));
            record.insert(transaction)?;
            Ok(Unmerged {
                restored,
                forgotten,
            })
        })
        .await
    }
}

fn sources(db: &rusqlite::Connection, request: &Merge) -> Result<Vec<Node>, GraphError> {
    let ids = &request.source_ids;
    let invalid = |rule| GraphError::Invalid {
        member: "source_ids",
        rule,
    };
    let repeats = |(at, id)| ids.iter().take(at).any(|earlier| earlier == id);
    if !(2..=10).contains(&ids.len()) || ids.iter().enumerate().any(repeats) {
        return Err(invalid("2 to 10 different nodes"));
    }
    let sources = ids.iter().map(|id| live(db, id));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut namespaces = sources.iter().map(|source| &source.namespace);
    let first = namespaces.next();
    if namespaces.any(|namespace| Some(namespace) != first) {
        return Err(invalid("nodes of one namespace"));
    }
    Ok(sources)
}

/// The node that the merge will store.
fn planned(sources: &[Node], request: &Merge) -> Result<NewNode, GraphError> {
    let mut ordered: Vec<&Node> = sources.iter().collect();
    if request.strategy == MergeStrategy::WeightedAverage {
        ordered.sort_by(|a, b| b.importance.total_cmp(&a.importance));
    }
    let lines: Vec<Vec<&str>> = ordered
        .iter()
        .map(|node| node.content.lines().collect())
        .collect();
    let tags: Vec<Vec<&str>> = ordered
        .iter()
        .map(|node| node.tags.iter().map(String::as_str).collect())
        .collect();
    let importances = || sources.iter().map(|node| node.importance);
    let (lines, tags, importance) = match request.strategy {
        MergeStrategy::Union => (
            union(&lines),
            union(&tags),
            importances().fold(0.0, f64::max),
        ),
        MergeStrategy::Intersection => {
            let common = intersection(&lines);
            if common.is_empty() {
                return Err(GraphError::NothingInCommon);
            }
            (
                common,
                intersection(&tags),
                importances().fold(1.0, f64::min),
            )
        }
        MergeStrategy::WeightedAverage => {
            let total: f64 = importances().sum();
            let squares: f64 = importances()
                .map(|importance| importance * importance)
                .sum();
            let average = if total > 0.0 { squares / total } else { 0.0 };
            (union(&lines), union(&tags), average)
        }
    };
    let mut node = NewNode::new(lines.join("\n")).key(&request.target_name);
    if let Some(first) = ordered.first() {
        node.namespace.clone_from(&first.namespace);
        node.modality = first.modality;
    }
    node.tags = tags.into_iter().map(str::to_owned).collect();
    node.tags.truncate(32);
    node.importance = importance.clamp(0.0, 1.0);
    node.rationale = Some(request.rationale.clone());
    Ok(node)
}

/// The distinct entries of all lists, in order of first occurrence.
fn union<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    let all = lists.iter().flatten().copied();
    all.filter(|item| item.is_empty() || seen.insert(*item))
        .collect()
}

/// The entries that every list has, in the order of the first list.
fn intersection<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let Some((first, others)) = lists.split_first() else {
        return Vec::new();
    };
    let others: Vec<HashSet<&str>> = others
        .iter()
        .map(|list| list.iter().copied().collect())
        .collect();
    let in_all = |item: &&str| others.iter().all(|list| list.contains(item));
    first.iter().copied().filter(in_all).collect()
}

/// Copies the links of a source to the merged node. The original links stay, for an undo; links of
/// forgotten nodes are not shown.
fn take_over_links(
    transaction: &Transaction<'_>,
    source: &str,
    merged: &str,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO context_links (source, relation, target, weight, created_at)
             SELECT ?2, relation, target, weight, created_at FROM context_links
             WHERE source = ?1 AND target <> ?2
             ON CONFLICT DO UPDATE SET weight = max(weight, excluded.weight)",
        )?
        .execute((source, merged))?;
    transaction
        .prepare_cached(
            "INSERT INTO context_links (source, relation, target, weight, created_at)
             SELECT source, relation, ?2, weight, created_at FROM context_links
             WHERE target = ?1 AND source <> ?2
             ON CONFLICT DO UPDATE SET weight = max(weight, excluded.weight)",
        )?
        .execute((source, merged))?;
    Ok(())
}
