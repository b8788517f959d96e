//! Full-text search over tools: BM25 over their names, titles, descriptions and arguments.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use plexus_mcp_core::Entry;
use plexus_mcp_core::bm25::{self, Bm25};
use plexus_mcp_wire::{Object, Raw};
use serde::Deserialize;

/// How often a word counts, by the field it is in.
const NAME_WEIGHT: f32 = 3.0;
const TITLE_WEIGHT: f32 = 2.0;
const TEXT_WEIGHT: f32 = 1.0;
/// The weight of a longer word that begins with the query word, relative to an exact match.
const PREFIX_MATCH_FACTOR: f32 = 0.5;
/// The shortest word of a query that matches longer words, in bytes.
const MIN_PREFIX_LENGTH: usize = 3;

/// An inverted index: for each word, the tools that have it.
pub(crate) struct Index {
    tools: Vec<IndexedTool>,
    /// In the order of the words, so that those with a prefix are neighbours.
    postings: BTreeMap<String, Vec<Posting>>,
    bm25: Bm25,
}

struct IndexedTool {
    key: Arc<str>,
    /// The number of its words.
    length: u32,
}

/// A tool that has a word.
struct Posting {
    /// The position of the tool in the list.
    tool: usize,
    /// How often it has the word, by the weight of the field.
    weight: f32,
}

impl Index {
    pub(crate) fn new(tools: &[Entry]) -> Self {
        let mut indexed = Vec::with_capacity(tools.len());
        let mut postings: BTreeMap<String, Vec<Posting>> = BTreeMap::new();
        for (tool, entry) in tools.iter().enumerate() {
            let words = ToolWords::new(entry);
            for (word, weight) in words.weights {
                postings
                    .entry(word)
                    .or_default()
                    .push(Posting { tool, weight });
            }
            indexed.push(IndexedTool {
                key: Arc::clone(&entry.key),
                length: words.length,
            });
        }
        let total_length = indexed.iter().map(|tool| u64::from(tool.length)).sum();
        Self {
            bm25: Bm25::new(indexed.len(), total_length),
            tools: indexed,
            postings,
        }
    }

    /// The tools that have any word of the query, best first; equally good ones in the order of the
    /// list. A query without words finds all tools.
    ///
    /// Only as much is sorted as the iterator is advanced.
    pub(crate) fn find(&self, query: &str) -> impl Iterator<Item = &Arc<str>> {
        let query: BTreeSet<_> = words(query).collect();
        let mut scores = vec![0.0; self.tools.len()];
        for word in &query {
            self.add_scores(word, &mut scores);
        }
        let mut ranked: BinaryHeap<Ranked> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0 || query.is_empty())
            .map(|(tool, score)| Ranked { score, tool })
            .collect();
        std::iter::from_fn(move || ranked.pop())
            .filter_map(|Ranked { tool, .. }| Some(&self.tools.get(tool)?.key))
    }

    /// Adds what one word of the query contributes to the score of each tool. A tool without the
    /// word itself may have words that begin with it; the heaviest of them counts.
    fn add_scores(&self, word: &str, scores: &mut [f32]) {
        let mut weights = vec![0.0_f32; self.tools.len()];
        if word.len() >= MIN_PREFIX_LENGTH {
            let range = (Bound::Excluded(word), Bound::Unbounded);
            let longer = self.postings.range::<str, _>(range);
            for (_, postings) in longer.take_while(|(known, _)| known.starts_with(word)) {
                for posting in postings {
                    if let Some(weight) = weights.get_mut(posting.tool) {
                        *weight = weight.max(posting.weight * PREFIX_MATCH_FACTOR);
                    }
                }
            }
        }
        for posting in self.postings.get(word).into_iter().flatten() {
            if let Some(weight) = weights.get_mut(posting.tool) {
                *weight = posting.weight;
            }
        }
        let containing = weights.iter().filter(|weight| **weight > 0.0).count();
        let term_weight = self.bm25.term_weight(containing);
        for ((score, weight), tool) in scores.iter_mut().zip(weights).zip(&self.tools) {
            *score += self.bm25.term_score(term_weight, weight, tool.length);
        }
    }
}

/// A tool in a heap of search results: the greatest is the best.
struct Ranked {
    score: f32,
    tool: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then_with(|| other.tool.cmp(&self.tool))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The words of one tool.
#[derive(Default)]
struct ToolWords {
    weights: HashMap<String, f32>,
    length: u32,
}

impl ToolWords {
    fn new(tool: &Entry) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Definition {
            title: Option<String>,
            description: Option<String>,
            input_schema: Option<Raw>,
        }
        let definition: Definition = tool.definition.decode().unwrap_or_default();
        let mut words = Self::default();
        words.add(&tool.key, NAME_WEIGHT);
        words.add(&definition.title.unwrap_or_default(), TITLE_WEIGHT);
        words.add(&definition.description.unwrap_or_default(), TEXT_WEIGHT);
        let member = |raw: &Raw, name: &str| Object::parse(raw).ok()?.get(name).cloned();
        let schema = definition.input_schema.as_ref();
        let arguments = schema.and_then(|schema| member(schema, "properties"));
        let arguments = arguments.and_then(|raw| Object::parse(&raw).ok());
        for (argument, _) in arguments.iter().flat_map(Object::iter) {
            words.add(argument, TEXT_WEIGHT);
        }
        words
    }

    fn add(&mut self, text: &str, weight: f32) {
        for word in words(text) {
            *self.weights.entry(word).or_default() += weight;
            self.length = self.length.saturating_add(1);
        }
    }
}

/// The words of a text, in lower case and in the singular. Compound names are split: `createIssue`
/// and `create_issue` are both two words.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = bm25::words(text).flat_map(bm25::camel_case_parts);
    parts.map(|part| singular(part.to_lowercase()))
}

fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(singular) if singular.len() >= MIN_PREFIX_LENGTH && !singular.ends_with('s') => {
            singular.to_owned()
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use plexus_mcp_core::Section;
    use serde_json::json;

    use super::*;

    fn index(tools: &[(&str, &str, &[&str])]) -> Index {
        let entry = |(name, description, arguments): &(&str, &str, &[&str])| {
            let properties: serde_json::Map<_, _> = arguments
                .iter()
                .map(|argument| ((*argument).to_owned(), json!({})))
                .collect();
            let definition = json!({
                "name": name,
                "description": description,
                "inputSchema": {"type": "object", "properties": properties},
            });
            Entry::new(Section::Tools, Raw::encode(&definition).unwrap()).unwrap()
        };
        Index::new(&tools.iter().map(entry).collect::<Vec<_>>())
    }

    fn found(index: &Index, query: &str) -> Vec<String> {
        index.find(query).map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_taken_apart() {
        let of = |text| words(text).collect::<Vec<_>>();
        assert_eq!(of("createIssue"), ["create", "issue"]);
        assert_eq!(of("git__git_log"), ["git", "git", "log"]);
        assert_eq!(
            of("Lists the ISSUES of HTTPServer, é!"),
            ["list", "the", "issue", "of", "httpserver", "é"]
        );
        assert_eq!(of("class address bus"), ["class", "address", "bus"]);
        assert_eq!(of(" __ "), [""; 0]);
    }

    #[test]
    fn the_best_come_first() {
        let index = index(&[
            (
                "mail__send",
                "Sends a message about an issue",
                &["to", "subject"],
            ),
            (
                "github__createIssue",
                "Opens a ticket in a repository",
                &["title"],
            ),
            ("github__list_issues", "Lists issues", &["state"]),
            ("time__now", "Says what time it is", &[]),
        ]);
        assert_eq!(found(&index, "create an issue")[0], "github__createIssue");
        assert_eq!(found(&index, "list issue")[0], "github__list_issues");
        // By an argument, and by the beginning of a word.
        assert_eq!(found(&index, "subject"), ["mail__send"]);
        assert_eq!(found(&index, "repo"), ["github__createIssue"]);
        assert_eq!(found(&index, "weather"), [""; 0]);
        let all = found(&index, " ?");
        assert_eq!(all.len(), 4);
        assert_eq!(all[3], "time__now", "in the order of the list");
    }
}
