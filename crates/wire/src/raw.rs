mod framed;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::{memchr, memmem};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use simdutf8::basic::from_utf8;

use self::framed::Framed;
use crate::decode::{checked_text, syntax_error};
use crate::scan::{Elements, Members, after_string};
use crate::{DecodeError, Limits, string};

/// One JSON value as the bytes it arrived in: a reference-counted slice, always valid JSON in UTF-8.
///
/// Cloning and slicing share the bytes of the message the value came in. Equality and hash are of
/// the bytes: `1.0` and `1.00` differ.
#[derive(Clone)]
pub struct Raw(Repr);

#[derive(Clone)]
enum Repr {
    Whole(Bytes),
    Framed(Arc<Framed>),
}

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON has these six types and no other"
)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    pub(crate) fn of(json: &[u8]) -> Self {
        match json.first() {
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            Some(b'"') => Self::String,
            Some(b'[') => Self::Array,
            Some(b'{') => Self::Object,
            _ => Self::Number,
        }
    }
}

/// To copy what is shorter costs less than to keep it in parts.
const LONG: usize = 2 * 1024;

impl Raw {
    /// Reads exactly one JSON value; the white space around it is trimmed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the value keeps a slice of the bytes, so they are given up to it"
    )]
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Self, DecodeError> {
        let text = checked_text(&bytes, limits)?;
        let value: &RawValue = serde_json::from_str(text).map_err(|error| syntax_error(&error))?;
        Ok(Self::slice(&bytes, value.get().as_bytes()))
    }

    /// Serialises a value.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|json| Self::whole(json.into()))
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        let mut out = BytesMut::with_capacity(text.len() + 2);
        string::write(&mut out, text);
        Self::whole(out.freeze())
    }

    /// Deserialises the value, borrowing from it where `T` can.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.as_bytes())
    }

    /// The text that this is, if it is a string; one with half a surrogate pair has none.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.kind() != Kind::String {
            return None;
        }
        string::read(self.as_bytes())
    }

    /// The value's JSON text as bytes: the form for the hot path.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes()
    }

    fn bytes(&self) -> &Bytes {
        match &self.0 {
            Repr::Whole(bytes) => bytes,
            Repr::Framed(framed) => framed.whole(),
        }
    }

    /// The value's JSON text.
    ///
    /// The text is known to be UTF-8, but only `unsafe` could say so for free: this checks it
    /// again, in linear time. Where bytes will do, use [`Raw::as_bytes`].
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "every constructor starts from valid UTF-8"
    )]
    pub fn as_str(&self) -> &str {
        from_utf8(self.as_bytes()).expect("a raw value is made of UTF-8 text only")
    }

    /// The value's JSON text, given away.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Repr::Whole(bytes) => bytes,
            Repr::Framed(framed) => framed.whole().clone(),
        }
    }

    /// The length of the JSON text in bytes; never zero.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a JSON value has at least one byte"
    )]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Whole(bytes) => bytes.len(),
            Repr::Framed(framed) => framed.len(),
        }
    }

    /// The type of the value, told by its first byte.
    pub fn kind(&self) -> Kind {
        match &self.0 {
            Repr::Whole(bytes) => Kind::of(bytes),
            Repr::Framed(framed) => Kind::of(&framed.parts[0]),
        }
    }

    /// `null`, without allocating.
    pub fn null() -> Self {
        Self::whole(Bytes::from_static(b"null"))
    }

    /// `{}`, without allocating.
    pub fn empty_object() -> Self {
        Self::whole(Bytes::from_static(b"{}"))
    }

    /// A text of the program itself, which is one JSON value. Only builds with debug assertions
    /// look whether it is.
    pub fn known(text: &'static str) -> Self {
        Self::from_written(Bytes::from_static(text.as_bytes()))
    }

    /// A value that is `before`, a value as it came, and `behind`: pieces of the program itself. A long
    /// value is not copied until somebody wants all of it in one piece.
    #[must_use]
    pub fn framed(before: &'static str, value: &Self, behind: &'static str) -> Self {
        let (before, behind) = (before.as_bytes(), behind.as_bytes());
        let framed = match &value.0 {
            Repr::Framed(inner) => {
                let [first, long, last] = &inner.parts;
                let first = framed::concat(&[before, &**first]);
                let last = framed::concat(&[&**last, behind]);
                [first, long.clone(), last]
            }
            Repr::Whole(long) if long.len() >= LONG => {
                let piece = Bytes::from_static;
                [piece(before), long.clone(), piece(behind)]
            }
            Repr::Whole(short) => {
                return Self::from_written(framed::concat(&[before, &**short, behind]));
            }
        };
        Self(Repr::Framed(Arc::new(Framed::new(framed))))
    }

    /// What stands before a long value, the value, and what stands behind it, if it was framed.
    pub(crate) fn parts(&self) -> Option<&[Bytes; 3]> {
        match &self.0 {
            Repr::Whole(_) => None,
            Repr::Framed(framed) => Some(&framed.parts),
        }
    }

    /// An array of these values.
    pub fn array<'a>(elements: impl IntoIterator<Item = &'a Self, IntoIter: Clone>) -> Self {
        let elements = elements.into_iter();
        let size: usize = elements.clone().map(|element| element.len() + 1).sum();
        let mut out = BytesMut::with_capacity(size + 2);
        out.put_u8(b'[');
        for (place, element) in elements.enumerate() {
            if place > 0 {
                out.put_u8(b',');
            }
            out.extend_from_slice(element.as_bytes());
        }
        out.put_u8(b']');
        Self::from_written(out.freeze())
    }

    /// A part of this value as a value of its own.
    ///
    /// Shares the bytes if `part` was borrowed from `self`, and copies it otherwise.
    #[must_use]
    pub fn part(&self, part: &RawValue) -> Self {
        Self::slice(self.bytes(), part.get().as_bytes())
    }

    /// This object with `new` instead of `old` as the value of its first member, if that is `key`,
    /// written without white space. Nothing else is read; if it is `None`, there is still
    /// [`Object`](crate::Object).
    pub fn with_first_member(&self, key: &str, old: &Self, new: &Self) -> Option<Self> {
        let bytes = self.as_bytes();
        let start = bytes.strip_prefix(b"{")?;
        let start = start.strip_prefix(Self::encode(key).ok()?.as_bytes())?;
        let rest = start.strip_prefix(b":")?.strip_prefix(old.as_bytes())?;
        if !rest.starts_with(b",") && !rest.starts_with(b"}") {
            return None;
        }
        let kept = bytes.len() - rest.len() - old.len();
        let mut edited = Vec::with_capacity(kept + new.len() + rest.len());
        edited.extend_from_slice(bytes.get(..kept)?);
        edited.extend_from_slice(new.as_bytes());
        edited.extend_from_slice(rest);
        Some(Self::from_written(edited.into()))
    }

    /// As [`Raw::part`], out of bytes that are not themselves one JSON value.
    pub(crate) fn slice(source: &Bytes, part: &[u8]) -> Self {
        let (outer, inner) = (source.as_ptr_range(), part.as_ptr_range());
        if outer.start <= inner.start && inner.end <= outer.end {
            Self::whole(source.slice_ref(part))
        } else {
            Self::whole(Bytes::copy_from_slice(part))
        }
    }

    /// The elements of the array that this is; `None` if it is none.
    pub fn elements(&self) -> Option<impl Iterator<Item = Self>> {
        let places = (self.kind() == Kind::Array).then(|| Elements::of(self.as_bytes()))?;
        Some(places.map(|place| self.at(place)))
    }

    /// Whether this object may have a member with one of these keys, none of which needs escapes; if
    /// not, there is no need to take it apart. Copies nothing.
    pub fn may_have(&self, keys: &[&str]) -> bool {
        if self.kind() != Kind::Object {
            return false;
        }
        let bytes = self.as_bytes();
        Members::of(bytes).any(|(key, _)| {
            let literal = bytes.get(key).unwrap_or_default();
            let spelled = literal.get(1..literal.len().saturating_sub(1));
            let spelled = spelled.unwrap_or_default();
            // A key with escapes may spell anything.
            memchr(b'\\', spelled).is_some() || keys.iter().any(|key| key.as_bytes() == spelled)
        })
    }

    /// Whether these letters stand anywhere in the JSON text.
    pub fn mentions(&self, letters: &str) -> bool {
        memmem::find(self.as_bytes(), letters.as_bytes()).is_some()
    }

    /// Whether this is a string between `before` and one of `after`, which together make a value of
    /// it. Nothing else is looked at.
    pub fn is_string_between(&self, before: &[u8], after: &[&[u8]]) -> bool {
        if let Repr::Framed(framed) = &self.0 {
            let [first, long, last] = &framed.parts;
            return first == before && Kind::of(long) == Kind::String && after.contains(&&**last);
        }
        let string = self.as_bytes().strip_prefix(before);
        let inside = string.and_then(|string| string.strip_prefix(b"\""));
        inside.is_some_and(|inside| after.contains(&after_string(inside)))
    }

    /// The same value in bytes of its own, for whoever keeps it: as part of a message, it keeps all
    /// of the buffer that the message came in.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::whole(Bytes::copy_from_slice(self.as_bytes()))
    }

    /// The value at a place that [`Members`](crate::scan::Members) found in this one.
    pub(crate) fn at(&self, place: Range<usize>) -> Self {
        Self::at_place(self.bytes(), place)
    }

    /// The value that was found at a place of `source`.
    pub(crate) fn at_place(source: &Bytes, place: Range<usize>) -> Self {
        Self::whole(source.slice(place))
    }

    /// Wraps bytes that the caller wrote as one JSON value.
    pub(crate) fn from_written(json: Bytes) -> Self {
        debug_assert!(
            serde_json::from_slice::<&RawValue>(&json).is_ok(),
            "{json:?} is not one JSON value"
        );
        Self::whole(json)
    }

    fn whole(json: Bytes) -> Self {
        Self(Repr::Whole(json))
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Raw {}

impl Hash for Raw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_CHARS: usize = 200;
        let text = self.as_str();
        match text.char_indices().nth(SHOWN_CHARS) {
            None => write!(f, "Raw({text})"),
            Some((end, _)) => {
                let shown = text.get(..end).unwrap_or_default();
                write!(f, "Raw({shown}… {} bytes)", self.len())
            }
        }
    }
}

/// Embeds the value verbatim, where the serialiser is `serde_json`'s.
///
/// The text is scanned once more on the way; [`crate::encode`] does not.
impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue =
            serde_json::from_slice(self.as_bytes()).map_err(ser::Error::custom)?;
        value.serialize(serializer)
    }
}

/// Copies the value's text; works with `serde_json`'s text deserialisers only.
impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        let text = String::from(Box::<str>::from(value));
        Ok(Self::whole(text.into()))
    }
}

#[cfg(test)]
mod tests;
