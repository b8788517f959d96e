//! Finds the members and elements of text that is known to be valid JSON.
//!
//! A message is validated once, when it is decoded. Code that reads its members later only needs
//! the end of each value, so this scanner skips strings and numbers without validating them again.
//! On text that is not JSON the ranges are wrong, but nothing panics.

use std::ops::Range;

use memchr::memchr2;

/// An iterator over the members of an object, in order: the byte ranges of key and value.
#[derive(Debug, Clone)]
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    /// The members of the object in `text`.
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Members<'_> {
    type Item = (Range<usize>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        // The opening brace or a comma, and whitespace, precede a key.
        let mut rest = self.text.get(self.at..)?.iter();
        let key = rest.position(|byte| *byte == b'"')? + self.at;
        let key_end = string_end(self.text, key);
        let value = value_start(self.text, key_end);
        let value_end = value_end(self.text, value);
        // There is no quote between a value and the next key.
        self.at = value_end;
        Some((key..key_end, value..value_end))
    }
}

/// An iterator over the elements of an array, in order: their byte ranges.
#[derive(Debug, Clone)]
pub(crate) struct Elements<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Elements<'a> {
    /// The elements of the array in `text`.
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let start = memchr::memchr(b'[', text);
        Self {
            text,
            at: start.map_or(text.len(), |start| start + 1),
        }
    }
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let between = |byte: &u8| matches!(byte, b',' | b' ' | b'\t' | b'\n' | b'\r');
        let start = self.at + rest.iter().position(|byte| !between(byte))?;
        if self.text.get(start) == Some(&b']') {
            return None;
        }
        let end = value_end(self.text, start);
        // Advance even if the text is not JSON.
        self.at = end.max(start + 1);
        Some(start..end)
    }
}

/// The text after the string whose opening quote was just read.
pub(crate) fn after_string(mut text: &[u8]) -> &[u8] {
    loop {
        let at = memchr2(b'"', b'\\', text).unwrap_or(text.len());
        let skipped = match text.get(at) {
            None => return &[],
            Some(b'"') => return text.get(at + 1..).unwrap_or_default(),
            Some(_) => at + 2,
        };
        text = text.get(skipped..).unwrap_or_default();
    }
}

/// The end of the string that starts at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let inside = text.get(start + 1..).unwrap_or_default();
    text.len() - after_string(inside).len()
}

/// The start of the value whose key ends at `key_end`.
fn value_start(text: &[u8], key_end: usize) -> usize {
    let between = text.get(key_end..).unwrap_or_default();
    let spaces = between
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':'));
    key_end + spaces.count()
}

/// The end of the value that starts at `start`.
fn value_end(text: &[u8], start: usize) -> usize {
    match text.get(start) {
        Some(b'"') => string_end(text, start),
        Some(b'{' | b'[') => container_end(text, start),
        _ => {
            let literal = text.get(start..).unwrap_or_default();
            let is_part =
                |byte: &&u8| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            start + literal.iter().take_while(is_part).count()
        }
    }
}

/// The end of the object or array that starts at `start`.
fn container_end(text: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut rest = text.get(start..).unwrap_or_default();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'"' => rest = after_string(rest),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::{Elements, Members, Range};
    use crate::testing::{json, json_object};

    fn at(text: &str, place: Range<usize>) -> &str {
        text.get(place).unwrap()
    }

    fn members(text: &str) -> Vec<(&str, &str)> {
        let places = Members::of(text.as_bytes());
        places
            .map(|(key, value)| (at(text, key), at(text, value)))
            .collect()
    }

    #[test]
    fn finds_keys_and_values_whatever_stands_between() {
        assert_eq!(members("{}"), []);
        assert_eq!(members(" { \n } "), []);
        let text = "{ \"a\" :\t1 ,\"b\":[\"]\",{\"}\":\"\\\"\"}]\r\n, \"c\\\"\" : \"x,\\\\\",\"d\":-1.5e3}";
        let expected = [
            ("\"a\"", "1"),
            ("\"b\"", "[\"]\",{\"}\":\"\\\"\"}]"),
            ("\"c\\\"\"", "\"x,\\\\\""),
            ("\"d\"", "-1.5e3"),
        ];
        assert_eq!(members(text), expected);
    }

    #[test]
    fn finds_elements() {
        let elements = |text: &'static str| -> Vec<&str> {
            let places = Elements::of(text.as_bytes());
            places.map(|place| at(text, place)).collect()
        };
        assert_eq!(elements(" [ ] "), Vec::<&str>::new());
        let expected = ["1", "\",\"", "[2,[]]", "{\"a\":[]}", "null"];
        assert_eq!(elements("[1 ,\",\",[2,[]]\n,{\"a\":[]}, null]"), expected);
    }

    #[test]
    fn text_that_is_no_json_ends_the_search() {
        for text in [
            "",
            "\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":[",
            "{\"a\":\"\\",
            "}]",
        ] {
            assert!(Members::of(text.as_bytes()).count() <= 1, "{text}");
        }
        for text in ["", "[", "[1", "[}", "[}}}", "[\"", "1,2"] {
            assert!(Elements::of(text.as_bytes()).count() <= 3, "{text}");
        }
    }

    proptest! {
        #[test]
        fn elements_are_those_that_a_parser_finds(items in proptest::collection::vec(json(), 0..5)) {
            let text = format!("[{}]", items.join(", "));
            let parsed: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
            let found: Vec<&str> = Elements::of(text.as_bytes()).map(|place| at(&text, place)).collect();
            prop_assert_eq!(found, parsed.into_iter().map(RawValue::get).collect::<Vec<_>>());
        }

        /// Every range holds one value, and only punctuation is left between them.
        #[test]
        fn places_are_values_and_the_rest_is_punctuation(text in json_object()) {
            let mut end = 0;
            for (key, value) in Members::of(text.as_bytes()) {
                for place in [key, value] {
                    let between = at(&text, end..place.start);
                    let left = between.trim_matches(['{', ',', ':', ' ', '\t', '\r', '\n']);
                    prop_assert!(left.is_empty());
                    prop_assert!(serde_json::from_str::<&RawValue>(at(&text, place.clone())).is_ok());
                    end = place.end;
                }
            }
            prop_assert_eq!(at(&text, end..text.len()).trim_matches(['{', ' ', '\t', '\r', '\n']), "}");
        }
    }
}
