use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::{memchr, memmem};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use simdutf8::basic::from_utf8;

use crate::decode::{checked_text, syntax_error};
use crate::scan::{Elements, Members};
use crate::{DecodeError, Limits, string};

/// One JSON value as received bytes: a reference-counted slice, always valid JSON in UTF-8.
///
/// Cloning and slicing share the bytes of the message the value came in. Equality and hash are of
/// the bytes: `1.0` and `1.00` differ.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

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
        serde_json::to_vec(value).map(|json| Self(json.into()))
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        let mut out = BytesMut::with_capacity(text.len() + 2);
        string::write(&mut out, text);
        Self(out.freeze())
    }

    /// Deserialises the value, borrowing from it where `T` can.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.as_bytes())
    }

    /// The text of a string value. A string with an unpaired surrogate has none.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.kind() != Kind::String {
            return None;
        }
        string::read(self.as_bytes())
    }

    /// The value's JSON text as bytes. No UTF-8 check is needed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
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

    /// The value's JSON text as owned bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The length of the JSON text in bytes; never zero.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a JSON value has at least one byte"
    )]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The type of the value, from its first byte.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.0)
    }

    /// `null`, without allocating.
    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// `{}`, without allocating.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// A constant of the program that is one JSON value. Only builds with debug assertions check
    /// that.
    pub fn from_static(text: &'static str) -> Self {
        Self::from_written(Bytes::from_static(text.as_bytes()))
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
        Self::slice(&self.0, part.get().as_bytes())
    }

    /// As [`Raw::part`], from bytes that may be more than one JSON value.
    pub(crate) fn slice(source: &Bytes, part: &[u8]) -> Self {
        let (outer, inner) = (source.as_ptr_range(), part.as_ptr_range());
        if outer.start <= inner.start && inner.end <= outer.end {
            Self(source.slice_ref(part))
        } else {
            Self(Bytes::copy_from_slice(part))
        }
    }

    /// The elements of an array; `None` for any other type.
    pub fn elements(&self) -> Option<impl Iterator<Item = Self>> {
        let places = (self.kind() == Kind::Array).then(|| Elements::of(self.as_bytes()))?;
        Some(places.map(|place| self.at(place)))
    }

    /// Whether this object may have a member with one of these keys, none of which needs escapes.
    /// If not, the caller need not parse it. Does not allocate.
    pub fn may_contain_key(&self, keys: &[&str]) -> bool {
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

    /// Whether the JSON text contains this text anywhere.
    pub fn contains_text(&self, text: &str) -> bool {
        memmem::find(self.as_bytes(), text.as_bytes()).is_some()
    }

    /// A copy of the value in its own buffer, for values that are kept. A slice of a message would
    /// keep the whole receive buffer allocated.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(self.as_bytes()))
    }

    /// The value at a range that [`Members`](crate::scan::Members) found in this one.
    pub(crate) fn at(&self, place: Range<usize>) -> Self {
        Self::at_place(&self.0, place)
    }

    /// The value that was found at a place of `source`.
    pub(crate) fn at_place(source: &Bytes, place: Range<usize>) -> Self {
        Self(source.slice(place))
    }

    /// Wraps bytes that the caller wrote as one JSON value.
    pub(crate) fn from_written(json: Bytes) -> Self {
        debug_assert!(
            serde_json::from_slice::<&RawValue>(&json).is_ok(),
            "{json:?} is not one JSON value"
        );
        Self(json)
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
/// This scans the text again; [`crate::encode`] does not.
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
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests;
