use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of scopes: the words of an OAuth `scope`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// The words of `text`.
    pub fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `scope` is one of them.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether all of `others` are among them.
    pub fn covers(&self, others: &Self) -> bool {
        self.0.is_superset(&others.0)
    }

    /// Those of both (AUTH26-10).
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        Self(self.0.union(&others.0).cloned().collect())
    }

    /// One more.
    pub fn insert(&mut self, scope: &str) {
        self.0.insert(scope.to_owned());
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<&'a str> for Scopes {
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        Self(scopes.into_iter().map(str::to_owned).collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{scope}")?;
        }
        Ok(())
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A list is against the rules, but some issuers have one.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Words(String),
            List(Vec<String>),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Words(words) => Self::parse(&words),
            Written::List(list) => list.iter().map(String::as_str).collect(),
        })
    }
}
