use std::fmt;

use bytes::BytesMut;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use crate::{Raw, string};

/// A JSON-RPC id, also used for progress tokens: a string or an integer.
///
/// Ids compare by JSON type and value, so `"1"` is not `1`. Integers of any size are kept exactly;
/// `-0` is the integer `0` and is written so. Fractions, exponents (`1.0` and `1e0` included),
/// null and every other type are not ids.
///
/// Deserialising needs the text of the number, so it works with `serde_json`'s text deserialisers
/// only: not out of a buffered, flattened or untagged field.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Id(Repr);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Repr {
    Integer(i64),
    /// The digits of an integer that `i64` cannot hold.
    Large(Box<str>),
    String(Box<str>),
}

impl Id {
    /// The text, if the id is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::String(text) => Some(text),
            Repr::Integer(_) | Repr::Large(_) => None,
        }
    }

    /// The number, if the id is an integer in the range of `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Integer(number) => Some(*number),
            Repr::Large(_) | Repr::String(_) => None,
        }
    }

    /// The id as a JSON value.
    pub fn to_raw(&self) -> Raw {
        let mut out = BytesMut::new();
        self.write(&mut out);
        Raw::from_written(out.freeze())
    }

    /// Appends the id as JSON.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        match &self.0 {
            Repr::Integer(number) => write_integer(out, *number),
            Repr::Large(digits) => out.extend_from_slice(digits.as_bytes()),
            Repr::String(text) => string::write(out, text),
        }
    }

    /// Reads the JSON text of one value.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        if json.starts_with(b"\"") {
            return string::read(json).map(|text| text.as_ref().into());
        }
        let digits = json.strip_prefix(b"-").unwrap_or(json);
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let json = str::from_utf8(json).ok()?;
        Some(Self(match json.parse() {
            Ok(number) => Repr::Integer(number),
            Err(_) => Repr::Large(json.into()),
        }))
    }
}

/// Appends a decimal integer.
pub(crate) fn write_integer(out: &mut BytesMut, number: i64) {
    out.extend_from_slice(number.to_string().as_bytes());
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self(Repr::Integer(number))
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        match i64::try_from(number) {
            Ok(number) => number.into(),
            Err(_) => Self(Repr::Large(number.to_string().into())),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self(Repr::String(text.into()))
    }
}

impl From<String> for Id {
    fn from(text: String) -> Self {
        Self(Repr::String(text.into()))
    }
}

/// The id as JSON text: a string id shows its quotes.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Integer(number) => number.fmt(f),
            Repr::Large(digits) => f.write_str(digits),
            Repr::String(_) => f.write_str(self.to_raw().as_str()),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Integer(number) => serializer.serialize_i64(*number),
            Repr::Large(digits) => {
                let number: &RawValue = serde_json::from_str(digits).map_err(ser::Error::custom)?;
                number.serialize(serializer)
            }
            Repr::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(json.get().as_bytes())
            .ok_or_else(|| de::Error::custom("an id must be a string or an integer"))
    }
}

#[cfg(test)]
mod tests;
