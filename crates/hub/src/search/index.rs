//! Finding tools by words: BM25 over their names, titles, descriptions and arguments.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plexus_service::Entry;
use plexus_wire::{Object, Raw};
use serde::Deserialize;

/// How much a word counts by where it stands.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const TEXT: f64 = 1.0;
/// A word that only begins with what is looked for counts less.
const BEGINNING: f64 = 0.5;
/// The shortest word whose longer forms are found as well.
const MIN_BEGINNING: usize = 3;
/// How soon a word that occurs again counts no more, and how much long texts count less.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The words of all tools of a catalogue.
pub(crate) struct Index {
    tools: Vec<Words>,
    average_length: f64,
}

struct Words {
    key: Arc<str>,
    weights: HashMap<String, f64>,
    length: f64,
}

impl Index {
    pub(crate) fn new(tools: &[Entry]) -> Self {
        let tools: Vec<_> = tools.iter().map(Words::of).collect();
        let total: f64 = tools.iter().map(|words| words.length).sum();
        Self {
            average_length: (total / number(tools.len().max(1))).max(1.0),
            tools,
        }
    }

    /// The tools that have any of the words, best first, and in the order of the list where they
    /// are equally good. A query without words finds all.
    pub(crate) fn find(&self, query: &str) -> Vec<Arc<str>> {
        let wanted: BTreeSet<_> = words(query).collect();
        if wanted.is_empty() {
            return self
                .tools
                .iter()
                .map(|tool| Arc::clone(&tool.key))
                .collect();
        }
        let mut scores = vec![0.0; self.tools.len()];
        for word in &wanted {
            let found: Vec<f64> = self.tools.iter().map(|tool| tool.weight(word)).collect();
            let having = number(found.iter().filter(|weight| **weight > 0.0).count());
            let rarity = (1.0 + (number(found.len()) - having + 0.5) / (having + 0.5)).ln();
            for ((score, weight), tool) in scores.iter_mut().zip(found).zip(&self.tools) {
                let length = 1.0 - LENGTH + LENGTH * tool.length / self.average_length;
                *score += rarity * weight * (SATURATION + 1.0) / (weight + SATURATION * length);
            }
        }
        let mut ranked: Vec<_> = scores.into_iter().zip(&self.tools).collect();
        ranked.retain(|(score, _)| *score > 0.0);
        ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        ranked
            .into_iter()
            .map(|(_, tool)| Arc::clone(&tool.key))
            .collect()
    }
}

impl Words {
    fn of(tool: &Entry) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Definition {
            title: Option<String>,
            description: Option<String>,
            input_schema: Option<Raw>,
        }
        let read: Definition = tool.definition.decode().unwrap_or_default();
        let mut known = Self {
            key: Arc::clone(&tool.key),
            weights: HashMap::new(),
            length: 0.0,
        };
        known.add(&tool.key, NAME);
        known.add(&read.title.unwrap_or_default(), TITLE);
        known.add(&read.description.unwrap_or_default(), TEXT);
        let member = |raw: &Raw, name: &str| Object::parse(raw).ok()?.get(name).cloned();
        let schema = read.input_schema.as_ref();
        let arguments = schema.and_then(|schema| member(schema, "properties"));
        let arguments = arguments.and_then(|raw| Object::parse(&raw).ok());
        for (argument, _) in arguments.iter().flat_map(Object::iter) {
            known.add(argument, TEXT);
        }
        known
    }

    fn add(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            *self.weights.entry(word).or_default() += weight;
            self.length += 1.0;
        }
    }

    fn weight(&self, wanted: &str) -> f64 {
        if let Some(weight) = self.weights.get(wanted) {
            return *weight;
        }
        if wanted.len() < MIN_BEGINNING {
            return 0.0;
        }
        let longer = self
            .weights
            .iter()
            .filter(|(word, _)| word.starts_with(wanted));
        longer
            .map(|(_, weight)| weight * BEGINNING)
            .fold(0.0, f64::max)
    }
}

/// The words of a text, in lower case and in the singular. Names are taken apart where they are
/// put together: `createIssue` and `create_issue` are both two words.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let is_hump = c.is_uppercase() && before.is_lowercase();
        if (is_hump || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(|word| match word.strip_suffix('s') {
        Some(singular) if singular.len() >= MIN_BEGINNING && !singular.ends_with('s') => {
            singular.to_owned()
        }
        _ => word,
    })
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use plexus_service::Section;
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
        index.find(query).iter().map(ToString::to_string).collect()
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
        assert_eq!(found(&index, " ?").len(), 4, "all, in their order");
    }
}
