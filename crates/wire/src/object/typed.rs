//! From members to a type.

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde_json::Error;

use super::Object;
use crate::Raw;

impl Object {
    /// Deserialises the object. As its members are known, only their values are read, and of long
    /// strings little more than how long they are.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.is_edited {
            self.to_raw().decode()
        } else {
            T::deserialize(Json::Whole(self))
        }
    }
}

enum Json<'de> {
    /// An object that nobody edited.
    Whole(&'de Object),
    /// What one of its members is.
    Value(&'de Raw),
}

impl<'de> Json<'de> {
    /// For what is not read faster here.
    fn reader(&self) -> serde_json::Deserializer<serde_json::de::SliceRead<'de>> {
        serde_json::Deserializer::from_slice(match self {
            Self::Whole(object) => &object.source,
            Self::Value(value) => value.as_bytes(),
        })
    }
}

/// Methods that are left to `serde_json`.
macro_rules! elsewhere {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            self.reader().$method($($argument,)* visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Json<'de> {
    type Error = Error;

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Whole(object) => {
                let members = object
                    .iter()
                    .map(|(name, value)| (name, Json::Value(value)));
                MapDeserializer::new(members).deserialize_map(visitor)
            }
            Self::Value(_) => self.reader().deserialize_map(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Whole(_) => self.deserialize_map(visitor),
            Self::Value(_) => self.reader().deserialize_struct(name, fields, visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Value(value) if let Some(text) = value.text() => visitor.visit_str(&text),
            _ => self.reader().deserialize_str(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Value(value) if value.as_bytes() == b"null" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    elsewhere! {
        deserialize_any()
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier()
    }
}

impl<'de> IntoDeserializer<'de, Error> for Json<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::testing::raw;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        text: String,
        letter: Option<char>,
        #[serde(default)]
        words: Vec<String>,
        inner: Option<Inner>,
        way: Option<Way>,
        raw: Option<Raw>,
        number: Option<Number>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        text: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Number(i64);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Way {
        Up,
        Down(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Text { text: String },
    }

    fn decoded<T: DeserializeOwned>(json: &str) -> Option<T> {
        Object::parse(&raw(json)).unwrap().decode().ok()
    }

    /// It is what `serde_json` makes of the whole text, whatever type is wanted.
    #[test]
    fn it_agrees_with_serde_json() {
        for json in [
            r#"{"text":"a"}"#,
            r#"{"text":"\u00e9\n\"", "letter":"x", "words":["a","\\"], "inner":{"text":null}, "number":7}"#,
            r#"{"text":"é😀", "way":"up", "raw":{"a": 1.50}, "inner":null}"#,
            r#"{"text":"", "way":{"down":3}, "raw":"\u0041", "letter":null}"#,
            r#"{"text":1}"#,
            r#"{"text":null}"#,
            r#"{"text":"\ud800"}"#,
            r#"{"text":"a","letter":"ab"}"#,
            r#"{"text":"a","number":"7"}"#,
            r#"{"text":"a","unknown":1}"#,
            r#"{"te\u0078t":"a"}"#,
            r#"{"kind":"Text","text":"a"}"#,
            r#"{"down":3}"#,
            "{}",
        ] {
            let whole = raw(json);
            assert_eq!(decoded(json), whole.decode::<Arguments>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<Inner>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<Way>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<Tagged>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<Value>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<Raw>().ok(), "{json}");
            assert_eq!(decoded(json), whole.decode::<String>().ok(), "{json}");
            assert_eq!(
                decoded(json),
                whole.decode::<Option<Inner>>().ok(),
                "{json}"
            );
            let map = whole.decode::<BTreeMap<String, Value>>();
            assert_eq!(decoded(json), map.ok(), "{json}");
        }
    }

    #[test]
    fn an_edited_object_is_decoded_as_it_is_now() {
        let mut object = Object::parse(&raw(r#"{"text":"a"}"#)).unwrap();
        object.set("text", raw(r#""b""#));
        let text = Some("b".to_owned());
        assert_eq!(object.decode::<Inner>().unwrap(), Inner { text });
    }
}
