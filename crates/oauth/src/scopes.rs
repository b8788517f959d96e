use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of OAuth scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// Parses a `scope` parameter: scopes separated by spaces.
    pub fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().collect()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `scope` is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether the set contains all of `others`.
    pub fn covers(&self, others: &Self) -> bool {
        self.0.is_superset(&others.0)
    }

    /// The scopes of both sets (AUTH26-10).
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        Self(self.0.union(&others.0).cloned().collect())
    }

    /// Adds a scope.
    pub fn insert(&mut self, scope: &str) {
        self.0.insert(scope.to_owned());
    }

    /// Iterates over the scopes in order.
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
        // RFC 6749 has a string; some issuers send a list.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ScopeFormat {
            Text(String),
            List(Vec<String>),
        }
        Ok(match ScopeFormat::deserialize(deserializer)? {
            ScopeFormat::Text(text) => Self::parse(&text),
            ScopeFormat::List(list) => list.iter().map(String::as_str).collect(),
        })
    }
}
