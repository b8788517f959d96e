//! Making one node of several, undoably.

use std::collections::HashSet;

use plexus_store::rusqlite::{self, OptionalExtension, Transaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::forget::{KEPT, bring_back, let_go};
use super::graph::Graph;
use super::node::{NewNode, Node, Strings, hash, rfc3339, searchable};
use super::remember::{is_live, live, put};

/// What a merged node keeps of those it is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the strategies that the documents name"
)]
pub enum MergeStrategy {
    /// All lines and tags, in the order of the sources; as important as the most important.
    #[default]
    Union,
    /// The lines and tags that all have; as important as the least important.
    Intersection,
    /// All lines and tags, those of important sources first; as important as the sources are on
    /// average, each weighted by its own importance.
    WeightedAverage,
}

/// What to make one node of.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Merge {
    /// The nodes to make it of, all of one namespace. They are forgotten, and come back if the merge
    /// is undone.
    #[schemars(length(min = 2, max = 10))]
    pub source_ids: Vec<String>,
    /// The key of the merged node.
    #[schemars(length(min = 1, max = 256))]
    pub target_name: String,
    /// What the merged node keeps.
    #[serde(default)]
    pub strategy: MergeStrategy,
    /// Why they belong together.
    #[schemars(length(min = 1, max = 1024))]
    pub rationale: String,
}

/// A merged node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Merged {
    /// What the merged node is known by.
    pub id: String,
    /// With this the merge can be undone.
    pub reversal_hash: String,
    /// Until when, in UTC, as RFC 3339 writes it.
    #[schemars(extend("format" = "date-time"))]
    pub reversible_until: String,
}

/// A merge that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unmerged {
    /// The nodes that are back.
    pub restored: Vec<String>,
    /// The merged node, which is forgotten and can be restored in its turn.
    pub forgotten: String,
}

impl Graph {
    /// Makes one node of several. Their links become its links.
    pub async fn merge(&self, request: Merge, caller: &str) -> Result<Merged, GraphError> {
        let plan = self.read({
            let request = request.clone();
            move |db| planned(&sources(db, &request)?, &request)
        });
        // The vector is made outside the transaction, which others wait for.
        let planned = plan.await?;
        planned.check()?;
        let vector = self
            .embed(searchable(
                planned.key.as_deref(),
                &planned.tags,
                &planned.content,
            ))
            .await;
        let embedder = self.embedder().name().to_owned();
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let sources = sources(transaction, &request)?;
            let node = self::planned(&sources, &request)?;
            node.check()?;
            // If a source changed meanwhile, the vector is made when the graph is opened again.
            let vector = vector
                .filter(|_| node == planned)
                .map(|vector| (vector, embedder));
            let id = node.id();
            if is_live(transaction, &id)? {
                return Err(GraphError::KeyTaken(request.target_name));
            }
            put(transaction, &id, &node, vector, now)?;
            for source in &sources {
                take_over_links(transaction, &source.id, &id)?;
                let_go(transaction, &source.id, now)?;
            }
            let ids = request.source_ids.join(" ");
            let reversal_hash = hash(&["merge", &id, &ids, &now.to_string()]);
            transaction
                .prepare_cached("INSERT OR REPLACE INTO context_merges VALUES (?1, ?2, ?3, ?4)")?
                .execute((
                    &reversal_hash,
                    &id,
                    Strings(request.source_ids.clone()),
                    now + KEPT,
                ))?;
            let record = Record::new(now, Action::Merge, &id, &caller)
                .because(Some(&request.rationale))
                .detail(format!("of {ids}"));
            record.keep(transaction)?;
            Ok(Merged {
                id,
                reversal_hash,
                reversible_until: rfc3339(now + KEPT),
            })
        })
        .await
    }

    /// Undoes a merge: the sources are back, the merged node is forgotten.
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
            let_go(transaction, &forgotten, now)?;
            let mut restored = Vec::new();
            for source in sources.0 {
                // One that somebody restored or stored anew meanwhile stays as it is.
                if bring_back(transaction, &source, now)? {
                    restored.push(source);
                }
            }
            let record = Record::new(now, Action::Unmerge, &forgotten, &caller)
                .detail(format!("restored {}", restored.join(" ")));
            record.keep(transaction)?;
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

/// What the merged node will be.
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

/// Everything once, in order.
fn union<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    let all = lists.iter().flatten().copied();
    all.filter(|item| item.is_empty() || seen.insert(*item))
        .collect()
}

/// What is in every list, in the order of the first.
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

/// Copies the links of a source to the merged node. The originals stay where they are, for the day
/// the merge is undone; nobody sees links of nodes that are forgotten.
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
