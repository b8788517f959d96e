//! The text of a call's arguments, which patterns are matched against.

use std::cell::OnceCell;
use std::fmt;

use globset::GlobMatcher;
use plexus_mcp_wire::Raw;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A call's arguments, parsed when the first pattern needs them.
pub(super) struct Arguments<'a> {
    raw: &'a Raw,
    texts: OnceCell<Option<Texts>>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(raw: &'a Raw) -> Self {
        Self {
            raw,
            texts: OnceCell::new(),
        }
    }

    /// Whether the whole JSON or any string matches. Arguments that cannot be parsed count as a
    /// match.
    pub(super) fn any_matches(&self, glob: &GlobMatcher) -> bool {
        self.texts().is_none_or(|texts| {
            glob.is_match(&texts.json) || texts.strings.iter().any(|text| glob.is_match(text))
        })
    }

    /// Whether the whole JSON matches, or it contains strings and all of them match.
    pub(super) fn all_match(&self, glob: &GlobMatcher) -> bool {
        self.texts().is_some_and(|texts| {
            let all = texts.strings.iter().all(|text| glob.is_match(text));
            glob.is_match(&texts.json) || (all && !texts.strings.is_empty())
        })
    }

    fn texts(&self) -> Option<&Texts> {
        self.texts.get_or_init(|| Texts::read(self.raw)).as_ref()
    }
}

/// JSON without white space and needless escapes; `None` if it is nested too deep, or has invalid
/// strings or numbers.
pub(super) fn plain_json(raw: &Raw) -> Option<String> {
    Texts::read(raw).map(|texts| texts.json)
}

/// All strings of a JSON value. Duplicate members are all kept, because it is not known which of
/// them the server uses.
#[derive(Default)]
struct Texts {
    json: String,
    strings: Vec<String>,
}

impl Texts {
    fn read(raw: &Raw) -> Option<Self> {
        let mut texts = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(raw.as_bytes());
        texts.deserialize_into(&mut deserializer).ok()?;
        Some(texts)
    }

    fn deserialize_into<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        Value(self).deserialize(from)
    }

    fn write<E: Error>(&mut self, value: &(impl serde::Serialize + ?Sized)) -> Result<(), E> {
        let text = serde_json::to_string(value).map_err(E::custom)?;
        self.json.push_str(&text);
        Ok(())
    }
}

/// The next value to collect.
struct Value<'a>(&'a mut Texts);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.write(&())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.write(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.write(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.write(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.write(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.strings.push(value.to_owned());
        self.0.write(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.json.push('[');
        let mut separator = "";
        loop {
            let end = self.0.json.len();
            self.0.json.push_str(separator);
            if items.next_element_seed(Value(self.0))?.is_none() {
                self.0.json.truncate(end);
                break;
            }
            separator = ",";
        }
        self.0.json.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.json.push('{');
        let mut separator = "";
        while let Some(key) = members.next_key::<String>()? {
            self.0.json.push_str(separator);
            self.0.write(&key)?;
            self.0.json.push(':');
            members.next_value_seed(Value(self.0))?;
            separator = ",";
        }
        self.0.json.push('}');
        Ok(())
    }
}
