//! The values that a field allows, and how they are written as text.

use std::collections::HashMap;

use plexus_mcp_wire::{Kind, Object, Raw};

use crate::convert::edit::items;

/// How many commas of one value are looked at when a comma-separated text is split; a value with
/// more must be written in a JSON array. Bounds the work that an answer can cause.
const MAX_COMMAS_IN_VALUE: usize = 16;

/// The values that a field or the items of a list allow.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    all: Vec<Choice>,
    /// Index of a choice by its value or title, as written.
    exact: HashMap<String, usize>,
    /// The same in lower case; `None` if several choices have it.
    folded: HashMap<String, Option<usize>>,
    /// The most commas in one value or title.
    commas: usize,
}

/// One allowed value.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) value: Raw,
    /// The value as text: a string as it is, anything else as JSON.
    pub(super) text: String,
    pub(super) title: Option<String>,
}

impl Choices {
    /// The choices of a schema: `enum`, with `enumNames` or not, or `oneOf` or `anyOf` with a
    /// `const` in each member. `None` if the schema has none of these.
    pub(super) fn of(schema: &Object) -> Option<Self> {
        let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"));
        let all = match (titled.and_then(items), schema.get("enum").and_then(items)) {
            (Some(members), _) => members.iter().map(Choice::titled).collect::<Option<_>>()?,
            (None, Some(values)) => {
                let titles = schema.get("enumNames").and_then(items).unwrap_or_default();
                let titles = titles.iter().map(|title| title.text().map(Into::into));
                let titles = titles.chain(std::iter::repeat(None));
                let choice = |(value, title)| Choice::new(value, title);
                values.into_iter().zip(titles).map(choice).collect()
            }
            (None, None) => return None,
        };
        Some(Self::new(all))
    }

    fn new(all: Vec<Choice>) -> Self {
        let mut exact: HashMap<_, _> = HashMap::new();
        for (index, choice) in all.iter().enumerate() {
            exact.entry(choice.text.clone()).or_insert(index);
        }
        let mut titles: HashMap<&str, Option<usize>> = HashMap::new();
        let mut folded: HashMap<String, Option<usize>> = HashMap::new();
        for (index, choice) in all.iter().enumerate() {
            for word in choice.words() {
                let known = folded.entry(word.to_lowercase()).or_insert(Some(index));
                *known = known.filter(|known| *known == index);
            }
            if let Some(title) = &choice.title {
                let known = titles.entry(title).or_insert(Some(index));
                *known = known.filter(|known| *known == index);
            }
        }
        // A value is never taken for the title of another choice.
        for (title, index) in titles {
            if let Some(index) = index {
                exact.entry(title.to_owned()).or_insert(index);
            }
        }
        let words = all.iter().flat_map(Choice::words);
        let commas = words.map(|word| word.matches(',').count()).max();
        Self {
            exact,
            folded,
            commas: commas.unwrap_or(0).min(MAX_COMMAS_IN_VALUE),
            all,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.all.iter()
    }

    /// Whether every value is a string.
    pub(super) fn are_strings(&self) -> bool {
        self.iter()
            .all(|choice| choice.value.kind() == Kind::String)
    }

    /// Whether a comma in a text may be part of a value.
    pub(super) fn have_commas(&self) -> bool {
        self.commas > 0
    }

    /// The choice that `written` names: by its value, else its title, else the only one that has it
    /// in another case.
    pub(super) fn find(&self, written: &str) -> Option<&Choice> {
        let folded = || self.folded.get(&written.to_lowercase()).copied().flatten();
        let index = self.exact.get(written).copied().or_else(folded)?;
        self.all.get(index)
    }

    /// The choices in a comma-separated text, each once.
    ///
    /// # Errors
    /// A part of the text is not a choice: that part.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<Vec<&Choice>, &'a str> {
        let mut named = Named::default();
        // The start of each comma-separated part.
        let commas = text.match_indices(',').map(|(comma, _)| comma + 1);
        let bounds: Vec<usize> = std::iter::once(0).chain(commas).collect();
        let end_of = |part: usize| bounds.get(part + 1).map_or(text.len(), |next| next - 1);
        let mut part = 0;
        while let Some(start) = bounds.get(part) {
            let written = |width: usize| {
                let end = end_of(part + width - 1);
                text.get(*start..end).unwrap_or_default().trim()
            };
            // The longest part that names a choice: a value may have commas of its own.
            let widest = (self.commas + 1).min(bounds.len() - part);
            let found = (1..=widest)
                .rev()
                .find_map(|width| Some((width, self.find(written(width))?)));
            match found {
                Some((width, choice)) => {
                    named.add(choice);
                    part += width;
                }
                None if written(1).is_empty() => part += 1,
                None => return Err(written(1)),
            }
        }
        Ok(named.choices)
    }

    /// The choices that the elements of a list name, each once.
    ///
    /// # Errors
    /// The element that names none.
    pub(super) fn named_by(&self, elements: &[Raw]) -> Result<Vec<&Choice>, String> {
        let mut named = Named::default();
        for element in elements {
            let written = as_text(element);
            match self.find(&written).or_else(|| self.find(written.trim())) {
                Some(choice) => named.add(choice),
                None => return Err(written),
            }
        }
        Ok(named.choices)
    }
}

impl Choice {
    fn new(value: Raw, title: Option<String>) -> Self {
        let text = as_text(&value);
        let title = title.filter(|title| *title != text);
        Self { value, text, title }
    }

    /// A member of `oneOf` or `anyOf`.
    fn titled(member: &Raw) -> Option<Self> {
        let mut member = Object::parse(member).ok()?;
        let title = member.text("title").map(Into::into);
        Some(Self::new(member.remove("const")?, title))
    }

    /// The texts that select the choice.
    fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_str()).chain(self.title.as_deref())
    }
}

/// Choices in the order in which they were named, without repetitions.
#[derive(Default)]
struct Named<'a> {
    choices: Vec<&'a Choice>,
    texts: std::collections::HashSet<&'a str>,
}

impl<'a> Named<'a> {
    fn add(&mut self, choice: &'a Choice) {
        if self.texts.insert(&choice.text) {
            self.choices.push(choice);
        }
    }
}

/// A value as a person writes it: a string as it is, anything else as JSON.
pub(super) fn as_text(value: &Raw) -> String {
    match value.text() {
        Some(text) => text.into_owned(),
        None => value.as_str().to_owned(),
    }
}
