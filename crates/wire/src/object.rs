mod typed;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::check::{Spelled, plain_words};
use crate::copy::append;
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
/// assert_eq!(params.to_raw().as_str(), r#"{"name":"add","arguments":{"a":1.50}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Object {
    /// What it was parsed from, and where its keys are spelled.
    source: Bytes,
    members: Vec<Member>,
    /// Whether it is no longer what it was parsed from.
    is_edited: bool,
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
        let mut members = Member::room_for_some();
        for (key, value) in Members::of(raw.as_bytes()) {
            let key = Key::read(raw.as_bytes(), key).map_err(ObjectError::Key)?;
            let value = raw.at(value);
            members.push(Member::new(key, value));
        }
        Self::of(raw.clone(), members)
    }

    /// The object that `raw` is, with these members.
    pub(crate) fn of(raw: Raw, members: Vec<Member>) -> Result<Self, ObjectError> {
        let object = Self {
            source: raw.into_bytes(),
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

    /// The object under `key`, taken apart; nobody has to look for its members who was the first to
    /// ask for them.
    ///
    /// # Errors
    /// The value is no object, or has no one meaning.
    pub fn take_apart(&mut self, key: &str) -> Option<Result<Self, ObjectError>> {
        let at = self.position(key)?;
        let member = self.members.get_mut(at)?;
        Some(match member.members.take() {
            Some(members) => Self::of(member.value.clone(), members),
            None => Self::parse(&member.value),
        })
    }

    /// The value under `key`, to be replaced.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Raw> {
        let at = self.position(key)?;
        self.is_edited = true;
        self.members.get_mut(at).map(Member::value_mut)
    }

    /// The text under `key`, if that is a string.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        let Member {
            value,
            has_no_escapes,
            ..
        } = self.members.get(self.position(key)?)?;
        if *has_no_escapes && value.kind() == Kind::String {
            return string::read_plain(value.as_bytes()).map(Cow::Borrowed);
        }
        value.text()
    }

    /// The string under `key` as it is written, if it has a text: one with half a surrogate pair has
    /// none. Cheaper than to have the text.
    pub fn text_as_written(&self, key: &str) -> Option<&Raw> {
        let member = self.members.get(self.position(key)?)?;
        let value = &member.value;
        let is_text = value.kind() == Kind::String
            && (member.has_no_escapes || !value.mentions("\\") || value.text().is_some());
        is_text.then_some(value)
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
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: Raw) -> Option<Raw> {
        let key = key.into();
        if let Some(present) = self.get_mut(&key) {
            return Some(std::mem::replace(present, value));
        }
        let key = Key::Named(key);
        self.is_edited = true;
        self.members.push(Member::new(key, value));
        None
    }

    /// Takes out the member `key`; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self.position(key)?;
        self.is_edited = true;
        Some(self.members.remove(at).value)
    }

    /// Leaves only the members of whose keys `is_kept` holds; they keep their order.
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

    /// The values of the members in order, to be replaced.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Raw> {
        self.is_edited = true;
        self.members.iter_mut().map(Member::value_mut)
    }

    /// The object as one value: the bytes it was parsed from if nothing was edited, else written
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

    /// About how many bytes it takes to write it.
    pub(crate) fn size(&self) -> usize {
        let members = self.members.iter();
        let sizes = members.map(|member| member.key.size() + member.value.len() + 4);
        sizes.sum::<usize>() + 2
    }

    /// Appends the object, without white space between its members.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        let mut separator = b'{';
        for Member { key, value, .. } in &self.members {
            out.put_u8(separator);
            key.write(&self.source, out);
            out.put_u8(b':');
            append(out, value.as_bytes());
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

    /// A key that occurs twice. Sorting keeps a hostile object of many keys from costing its square.
    fn duplicate_key(&self) -> Option<&str> {
        // Sorting pays only where there are many.
        const FEW: usize = 16;
        if self.members.len() <= FEW {
            let mut seen = self.members.iter().enumerate();
            let repeated = seen.find(|(index, member)| {
                let mut before = self.members.iter().take(*index);
                before.any(|other| other.key.equals(&self.source, &member.key))
            });
            return repeated.map(|(_, member)| member.key.name(&self.source));
        }
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
pub(crate) struct Member {
    key: Key,
    value: Raw,
    /// Whether the value is known to be no string with escapes.
    has_no_escapes: bool,
    /// The members of the object that the value is, if somebody has seen them.
    members: Option<Vec<Member>>,
}

impl Member {
    /// One as it stands in the object that begins at `start` of `source`, by the places of its key
    /// and its value there.
    pub(crate) fn in_object(
        source: &Bytes,
        start: usize,
        key: &Spelled,
        value: &Spelled,
    ) -> Result<Self, serde_json::Error> {
        let place = key.place.start - start..key.place.end - start;
        let key = if key.has_escapes {
            Key::read_escaped(source.get(start..).unwrap_or_default(), place)?
        } else {
            Key::Plain(place)
        };
        Ok(Self {
            key,
            value: Raw::at_place(source, value.place.clone()),
            has_no_escapes: !value.has_escapes,
            members: None,
        })
    }

    fn new(key: Key, value: Raw) -> Self {
        Self {
            key,
            value,
            has_no_escapes: false,
            members: None,
        }
    }

    /// The same, whose value is an object with these members, if they are known.
    pub(crate) fn with_members(mut self, members: Option<Vec<Self>>) -> Self {
        self.members = members;
        self
    }

    /// The value, to be replaced.
    fn value_mut(&mut self) -> &mut Raw {
        self.has_no_escapes = false;
        self.members = None;
        &mut self.value
    }

    /// A list for the members of an object; few in messages have more.
    pub(crate) fn room_for_some() -> Vec<Self> {
        Vec::with_capacity(8)
    }
}

/// A key, as it arrived or as it was set.
#[derive(Clone)]
enum Key {
    /// Spelled in the source, without escapes.
    Plain(Range<usize>),
    /// Spelled in the source, with escapes.
    Escaped(Range<usize>, Box<str>),
    /// Not from the source.
    Named(Cow<'static, str>),
}

impl Key {
    /// A key as `source` spells it at a place, quotes included.
    fn read(source: &[u8], place: Range<usize>) -> Result<Self, serde_json::Error> {
        let spelled = inside(source, &place);
        if plain_words(spelled).0 == spelled.len() {
            return Ok(Self::Plain(place));
        }
        Self::read_escaped(source, place)
    }

    /// The same for one that has escapes.
    fn read_escaped(source: &[u8], place: Range<usize>) -> Result<Self, serde_json::Error> {
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

    /// As comparing [`Key::name`], without looking at what differs in length.
    fn is(&self, source: &[u8], name: &str) -> bool {
        match self {
            Self::Plain(place) => inside(source, place) == name.as_bytes(),
            Self::Escaped(_, own) => **own == *name,
            Self::Named(own) => *own == *name,
        }
    }

    fn equals(&self, source: &[u8], other: &Self) -> bool {
        match other {
            Self::Plain(place) => match self {
                Self::Plain(own) => inside(source, own) == inside(source, place),
                _ => self.is(source, other.name(source)),
            },
            Self::Escaped(..) | Self::Named(_) => self.is(source, other.name(source)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Plain(place) | Self::Escaped(place, _) => place.len(),
            Self::Named(name) => name.len() + 2,
        }
    }

    /// Appends it as it was spelled.
    fn write(&self, source: &[u8], out: &mut BytesMut) {
        match self {
            Self::Plain(place) | Self::Escaped(place, _) => {
                out.extend_from_slice(source.get(place.clone()).unwrap_or_default());
            }
            Self::Named(name) => string::write(out, name),
        }
    }
}

/// What stands between the quotes at a place of `source`.
fn inside<'a>(source: &'a [u8], place: &Range<usize>) -> &'a [u8] {
    source
        .get(place.start + 1..place.end - 1)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
