use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr;
use serde::de::DeserializeOwned;

use crate::scan::Members;
use crate::string;
use crate::{Kind, Raw};

/// The members of one JSON object in order, with undecoded values, to read, edit and write back.
///
/// Members that are not edited keep their bytes, with the spelling of the key, and share them with
/// the value they were parsed from.
///
/// ```
/// use plexus_mcp_wire::{Limits, Object, Raw};
///
/// let arrived = Raw::parse(r#"{"name":"hub__add", "arguments":{"a":1.50}}"#.into(), &Limits::default())?;
/// let mut params = Object::parse(&arrived)?;
/// params.set("name", Raw::encode("add")?);
/// assert_eq!(params.to_raw().as_str(), r#"{"name":"add","arguments":{"a":1.50}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Object {
    /// The text that the object was parsed from; keys are ranges in it.
    source: Bytes,
    members: Vec<Member>,
    /// Whether the object differs from `source`.
    is_edited: bool,
}

/// Why a value cannot be read as an [`Object`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The value is of another type.
    #[error("not an object")]
    NotAnObject,
    /// Two members have the same key, so the object is ambiguous.
    #[error("duplicate key {0:?}")]
    DuplicateKey(Box<str>),
    /// A key holds an unpaired surrogate.
    #[error("a key is not unicode text")]
    Key(#[source] serde_json::Error),
}

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self {
            source: Raw::empty_object().into_bytes(),
            members: Vec::new(),
            is_edited: false,
        }
    }

    /// Splits an object into its members.
    pub fn parse(raw: &Raw) -> Result<Self, ObjectError> {
        if raw.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        let mut members = Vec::new();
        for (key, value) in Members::of(raw.as_bytes()) {
            let key = Key::read(raw.as_bytes(), key).map_err(ObjectError::Key)?;
            let value = raw.at(value);
            members.push(Member { key, value });
        }
        let object = Self {
            source: raw.clone().into_bytes(),
            members,
            is_edited: false,
        };
        match object.duplicate_key() {
            Some(key) => Err(ObjectError::DuplicateKey(key.into())),
            None => Ok(object),
        }
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        let at = self.position(key)?;
        self.members.get(at).map(|member| &member.value)
    }

    /// The value under `key`, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Raw> {
        let at = self.position(key)?;
        self.is_edited = true;
        self.members.get_mut(at).map(|member| &mut member.value)
    }

    /// The text under `key`, if that is a string.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key)?.text()
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

    /// Replaces the value under `key` in its place and returns the old one, or appends a member.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: Raw) -> Option<Raw> {
        let key = key.into();
        if let Some(present) = self.get_mut(&key) {
            return Some(std::mem::replace(present, value));
        }
        let key = Key::Named(key);
        self.is_edited = true;
        self.members.push(Member { key, value });
        None
    }

    /// Takes out the member `key`; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self.position(key)?;
        self.is_edited = true;
        Some(self.members.remove(at).value)
    }

    /// Keeps only the members whose keys satisfy `is_kept`, in their order.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        let source = &self.source;
        let before = self.members.len();
        self.members
            .retain(|member| is_kept(member.key.name(source)));
        self.is_edited |= self.members.len() != before;
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.members
            .iter()
            .map(|member| (member.key.name(&self.source), &member.value))
    }

    /// The values of the members in order, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Raw> {
        self.is_edited = true;
        self.members.iter_mut().map(|member| &mut member.value)
    }

    /// The object as one value: the bytes it was parsed from if it was not edited, else written
    /// without white space between its members.
    pub fn to_raw(&self) -> Raw {
        if !self.is_edited {
            return Raw::from_written(self.source.clone());
        }
        if self.members.is_empty() {
            return Raw::empty_object();
        }
        let mut out = BytesMut::with_capacity(self.size());
        self.write(&mut out);
        Raw::from_written(out.freeze())
    }

    /// Deserialises the object.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.to_raw().decode()
    }

    /// An estimate of the written size, in bytes.
    pub(crate) fn size(&self) -> usize {
        let members = self.members.iter();
        let sizes = members.map(|member| member.key.size() + member.value.len() + 4);
        sizes.sum::<usize>() + 2
    }

    /// Appends the object, without white space between its members.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        let mut separator = b'{';
        for Member { key, value } in &self.members {
            out.put_u8(separator);
            key.write(&self.source, out);
            out.put_u8(b':');
            out.extend_from_slice(value.as_bytes());
            separator = b',';
        }
        if self.members.is_empty() {
            out.put_u8(separator);
        }
        out.put_u8(b'}');
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.members
            .iter()
            .position(|member| member.key.is(&self.source, key))
    }

    /// A key that occurs twice. Sorting avoids quadratic time for a hostile object with many keys.
    fn duplicate_key(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names
            .array_windows()
            .find_map(|[one, next]| (one == next).then_some(*one))
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A member of an object.
#[derive(Clone)]
struct Member {
    key: Key,
    value: Raw,
}

/// A key, as it was received or set.
#[derive(Clone)]
enum Key {
    /// A range of the source, without escapes.
    Plain(Range<usize>),
    /// A range of the source with escapes, and the decoded text.
    Escaped(Range<usize>, Box<str>),
    /// Set by the program.
    Named(Cow<'static, str>),
}

impl Key {
    /// Reads the key at a range of `source`, quotes included.
    fn read(source: &[u8], place: Range<usize>) -> Result<Self, serde_json::Error> {
        let spelled = inside(source, &place);
        if memchr(b'\\', spelled).is_none() {
            return Ok(Self::Plain(place));
        }
        let literal = source.get(place.clone()).unwrap_or_default();
        let text = serde_json::from_slice(literal)?;
        Ok(Self::Escaped(place, text))
    }

    fn name<'a>(&'a self, source: &'a [u8]) -> &'a str {
        match self {
            Self::Plain(place) => str::from_utf8(inside(source, place)).unwrap_or_default(),
            Self::Escaped(_, name) => name,
            Self::Named(name) => name,
        }
    }

    /// Compares with [`Key::name`]; keys of another length are not read.
    fn is(&self, source: &[u8], name: &str) -> bool {
        match self {
            Self::Plain(place) => inside(source, place) == name.as_bytes(),
            Self::Escaped(_, own) => **own == *name,
            Self::Named(own) => *own == *name,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Plain(place) | Self::Escaped(place, _) => place.len(),
            Self::Named(name) => name.len() + 2,
        }
    }

    /// Appends the key with its original spelling.
    fn write(&self, source: &[u8], out: &mut BytesMut) {
        match self {
            Self::Plain(place) | Self::Escaped(place, _) => {
                out.extend_from_slice(source.get(place.clone()).unwrap_or_default());
            }
            Self::Named(name) => string::write(out, name),
        }
    }
}

/// The bytes between the quotes at a range of `source`.
fn inside<'a>(source: &'a [u8], place: &Range<usize>) -> &'a [u8] {
    source
        .get(place.start + 1..place.end - 1)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
