//! Converts named strings, such as prompt arguments, to the type that a handler takes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// A map of strings, or a struct whose members are strings, numbers, booleans, enums without data,
/// or options of these.
pub(super) fn typed<T: DeserializeOwned>(strings: &BTreeMap<String, String>) -> Result<T, Error> {
    let members = strings.iter().map(|(name, text)| {
        let value = Text { name, text };
        (name.as_str(), value)
    });
    T::deserialize(MapDeserializer::new(members))
}

#[derive(Clone, Copy)]
struct Text<'a> {
    name: &'a str,
    text: &'a str,
}

impl Text<'_> {
    fn parse<T: FromStr<Err: Display>>(self) -> Result<T, Error> {
        self.text.parse().map_err(|error| self.unfit(error))
    }

    fn unfit(self, error: impl Display) -> Error {
        Error::custom(format_args!("{}: {error}", self.name))
    }
}

impl IntoDeserializer<'_, Error> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parse {
    ($($method:ident $visit:ident,)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
                visitor.$visit(self.parse()?)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor
            .visit_str(self.text)
            .map_err(|error: Error| self.unfit(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant = self.text.into_deserializer();
        visitor
            .visit_enum(variant)
            .map_err(|error: Error| self.unfit(error))
    }

    parse! {
        deserialize_bool visit_bool,
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_i128 visit_i128,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
        deserialize_u128 visit_u128,
        deserialize_f32 visit_f32,
        deserialize_f64 visit_f64,
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything {
        text: String,
        number: u32,
        fraction: Option<f64>,
        flag: bool,
        choice: Choice,
        wrapped: Wrapped,
        absent: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Yes,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(i8);

    fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        owned.collect()
    }

    const VALID_STRINGS: [(&str, &str); 7] = [
        ("text", "7"),
        ("number", "7"),
        ("fraction", "0.5"),
        ("flag", "true"),
        ("choice", "yes"),
        ("wrapped", "-7"),
        ("unknown", "ignored"),
    ];

    #[test]
    fn strings_become_what_a_struct_wants() {
        let expected = Everything {
            text: "7".to_owned(),
            number: 7,
            fraction: Some(0.5),
            flag: true,
            choice: Choice::Yes,
            wrapped: Wrapped(-7),
            absent: None,
        };
        assert_eq!(typed(&strings(&VALID_STRINGS)), Ok(expected));
    }

    #[test]
    fn strings_stay_a_map_of_strings() {
        let strings = strings(&VALID_STRINGS);
        assert_eq!(typed(&strings), Ok(strings));
    }

    /// The error message names the argument that is wrong.
    #[test]
    fn conversion_errors_name_the_argument() {
        for name in ["number", "fraction", "flag", "choice", "wrapped"] {
            let mut strings = strings(&VALID_STRINGS);
            strings.insert(name.to_owned(), "x".to_owned());
            let error = typed::<Everything>(&strings).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
        }
        let error = typed::<Everything>(&strings(&[])).unwrap_err().to_string();
        assert_eq!(error, "missing field `text`");
    }
}
