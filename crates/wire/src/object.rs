use std::fmt;

use bytes::{BufMut, BytesMut};
use memchr::memchr;

use crate::scan::Members;
use crate::string;
use crate::{Kind, Raw};

/// The members of one JSON object, in order, values undecoded: read, edit, write back.
///
/// Members that are not touched keep their bytes, the spelling of the key included, and share them
/// with the value they were parsed from.
///
/// ```
/// use plexus_wire::{Limits, Object, Raw};
///
/// let arrived = Raw::parse(r#"{"name":"hub__add", "arguments":{"a":1.50}}"#.into(), &Limits::default())?;
/// let mut params = Object::parse(&arrived)?;
/// params.set("name", Raw::encode("add")?);
/// assert_eq!(params.into_raw().as_str(), r#"{"name":"add","arguments":{"a":1.50}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Object {
    members: Vec<Member>,
}

/// Why a value cannot be read as an [`Object`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The value is of another type.
    #[error("not an object")]
    NotAnObject,
    /// Two members have the same key, so the object has no one meaning.
    #[error("duplicate key {0:?}")]
    DuplicateKey(Box<str>),
    /// A key has no text: it holds half of a surrogate pair.
    #[error("a key is not unicode text")]
    Key(#[source] serde_json::Error),
}

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits an object into its members.
    pub fn parse(raw: &Raw) -> Result<Self, ObjectError> {
        if raw.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        // Few objects in messages have more members.
        let mut members = Vec::with_capacity(8);
        for (key, value) in Members::of(raw.as_bytes()) {
            let member = Member::read(raw.at(key), raw.at(value)).map_err(ObjectError::Key)?;
            members.push(member);
        }
        let object = Self { members };
        match object.duplicate_key() {
            Some(key) => Err(ObjectError::DuplicateKey(key.into())),
            None => Ok(object),
        }
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        let member = self.members.iter().find(|member| member.is_named(key))?;
        Some(&member.value)
    }

    /// Whether there is a member `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Replaces the value under `key` where it stands and returns the old one, or appends a member.
    pub fn set(&mut self, key: impl AsRef<str>, value: Raw) -> Option<Raw> {
        let key = key.as_ref();
        let present = self.members.iter_mut().find(|member| member.is_named(key));
        if let Some(member) = present {
            return Some(std::mem::replace(&mut member.value, value));
        }
        self.members.push(Member::new(key, value));
        None
    }

    /// Takes out the member `key`; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self
            .members
            .iter()
            .position(|member| member.is_named(key))?;
        Some(self.members.remove(at).value)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.members
            .iter()
            .map(|member| (member.name(), &member.value))
    }

    /// Writes the object, without white space between its members.
    pub fn into_raw(self) -> Raw {
        if self.members.is_empty() {
            return Raw::empty_object();
        }
        let size: usize = self
            .members
            .iter()
            .map(|member| member.key.len() + member.value.len() + 2)
            .sum();
        let mut out = BytesMut::with_capacity(size + 1);
        let mut separator = b'{';
        for member in &self.members {
            out.put_u8(separator);
            out.extend_from_slice(member.key.as_bytes());
            out.put_u8(b':');
            out.extend_from_slice(member.value.as_bytes());
            separator = b',';
        }
        out.put_u8(b'}');
        Raw::from_written(out.freeze())
    }

    /// A key that occurs twice. Sorting keeps a hostile object of many keys from costing its square.
    fn duplicate_key(&self) -> Option<&str> {
        // Sorting pays only where there are many.
        const FEW: usize = 16;
        if self.members.len() <= FEW {
            let mut seen = self.members.iter().enumerate();
            let repeated = seen.find(|(index, member)| {
                let before = self.members.iter().take(*index);
                before.into_iter().any(|other| other.has_name_of(member))
            });
            return repeated.map(|(_, member)| member.name());
        }
        let mut names: Vec<&str> = self.members.iter().map(Member::name).collect();
        names.sort_unstable();
        names
            .array_windows()
            .find_map(|[one, next]| (one == next).then_some(*one))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[derive(Clone)]
struct Member {
    /// The key as written, quotes included.
    key: Raw,
    /// The key's text, only if it was written with escapes.
    unescaped: Option<Box<str>>,
    value: Raw,
}

impl Member {
    fn new(name: &str, value: Raw) -> Self {
        let mut literal = BytesMut::with_capacity(name.len() + 2);
        string::write(&mut literal, name);
        let is_escaped = literal.len() != name.len() + 2;
        Self {
            key: Raw::from_written(literal.freeze()),
            unescaped: is_escaped.then(|| name.into()),
            value,
        }
    }

    /// A member as it is written.
    fn read(key: Raw, value: Raw) -> Result<Self, serde_json::Error> {
        let is_escaped = memchr(b'\\', key.as_bytes()).is_some();
        let unescaped = is_escaped.then(|| key.decode()).transpose()?;
        Ok(Self {
            key,
            unescaped,
            value,
        })
    }

    fn name(&self) -> &str {
        match &self.unescaped {
            Some(name) => name,
            None => string::between_quotes(self.key.as_str()),
        }
    }

    /// As comparing [`Member::name`], but does not look at bytes that differ in length.
    fn is_named(&self, name: &str) -> bool {
        match &self.unescaped {
            Some(own) => **own == *name,
            None => {
                self.key.len() == name.len() + 2
                    && self.key.as_bytes().get(1..=name.len()) == Some(name.as_bytes())
            }
        }
    }

    fn has_name_of(&self, other: &Self) -> bool {
        match (&self.unescaped, &other.unescaped) {
            (None, None) => self.key == other.key,
            _ => self.is_named(other.name()),
        }
    }
}

#[cfg(test)]
mod tests;
