//! Whether text is JSON, told in one pass.
//!
//! This decides nothing against a text: what is not found to be JSON here is given to `serde_json`,
//! which says what is wrong with it. What is found to be JSON is.

use std::ops::Range;

use plexus_sys::text::{is_special, plain_pieces};

use crate::arrived::Stretch;

/// A key or a value as it is spelled, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spelled {
    pub(crate) place: Range<usize>,
    /// Whether it is a string with escapes.
    pub(crate) has_escapes: bool,
}

/// Who is told of the members of an object, by the places of their keys and values.
pub(crate) trait Visitor {
    /// Whether to be told, too, of the members of the object that starts here, under this key of an
    /// object which is so deep inside: the outermost is at 0.
    fn looks_into(&mut self, depth: usize, key: &Spelled, start: usize) -> bool;

    /// A member of the object at that depth. Those of an object that is looked into come before the
    /// member which it is.
    fn member(&mut self, depth: usize, key: &Spelled, value: &Spelled);
}

/// Shows `visitor` the object that `text` is, if it is one in UTF-8, and nothing in it nests deeper
/// than `max_depth`; says whether it is. What is known to be plain is not looked at.
pub(crate) fn object(
    text: &[u8],
    plain: &Stretch,
    max_depth: usize,
    visitor: &mut impl Visitor,
) -> bool {
    let mut reader = Reader {
        text,
        plain,
        at: 0,
        depth: max_depth,
        seen: 0,
    };
    reader.skip_spaces();
    let is_object = reader.visited(0, visitor);
    reader.skip_spaces();
    // Outside of strings JSON is nothing but ASCII, and mostly inside of them as well.
    let is_text = || reader.seen & HIGH == 0 || simdutf8::basic::from_utf8(text).is_ok();
    is_object.is_some() && reader.at == text.len() && is_text()
}

struct Reader<'a> {
    text: &'a [u8],
    /// What needs no look.
    plain: &'a Stretch,
    at: usize,
    /// How much deeper it may go.
    depth: usize,
    /// The bits that are set in the bytes of strings, those of eight of them in a word.
    seen: u64,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Any value; says whether it is a string with escapes.
    fn value(&mut self) -> Option<bool> {
        match self.peek()? {
            b'"' => return self.string(),
            b'{' => self.members(|reader, _| reader.value().map(drop)),
            b'[' => self.array(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
        .map(|()| false)
    }

    /// An object whose members `visitor` is told of.
    fn visited(&mut self, depth: usize, visitor: &mut impl Visitor) -> Option<()> {
        self.members(|reader, key| {
            let start = reader.at;
            let is_looked_into =
                reader.peek() == Some(b'{') && visitor.looks_into(depth, &key, start);
            let has_escapes = if is_looked_into {
                reader.visited(depth + 1, visitor)?;
                false
            } else {
                reader.value()?
            };
            let place = start..reader.at;
            visitor.member(depth, &key, &Spelled { place, has_escapes });
            Some(())
        })
    }

    /// An object; `value` reads what belongs to the key at a place.
    #[inline]
    fn members(&mut self, mut value: impl FnMut(&mut Self, Spelled) -> Option<()>) -> Option<()> {
        self.items(b'{', b'}', |reader| {
            let start = reader.at;
            let has_escapes = reader.string()?;
            let place = start..reader.at;
            let key = Spelled { place, has_escapes };
            reader.skip_spaces();
            reader.expect(b':')?;
            reader.skip_spaces();
            value(reader, key)
        })
    }

    fn array(&mut self) -> Option<()> {
        self.items(b'[', b']', |reader| reader.value().map(drop))
    }

    /// What stands between two brackets, with commas in between.
    #[inline]
    fn items(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(open)?;
        self.depth = self.depth.checked_sub(1)?;
        self.skip_spaces();
        if self.peek()? != close {
            loop {
                item(self)?;
                self.skip_spaces();
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
                self.skip_spaces();
            }
        }
        self.depth += 1;
        self.expect(close)
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        let end = self.at + literal.len();
        (self.text.get(self.at..end)? == literal).then(|| self.at = end)
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// A string; says whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.expect(b'"')?;
        let mut has_escapes = false;
        loop {
            if self.at >= self.plain.place.end || !self.stops_before_known() {
                let (plain, seen) = plain_seen(self.text.get(self.at..)?);
                self.at += plain;
                self.seen |= seen;
            }
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(has_escapes);
                }
                b'\\' => {
                    has_escapes = true;
                    self.at += 1;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    /// In a string, goes on behind what is known to be plain, unless something else stands before
    /// it.
    #[cold]
    fn stops_before_known(&mut self) -> bool {
        let Stretch { place, seen } = self.plain;
        let before = self.text.get(self.at..place.start).unwrap_or_default();
        let (plain, seen_before) = plain_seen(before);
        self.seen |= seen_before;
        if plain < before.len() {
            self.at += plain;
            return true;
        }
        self.at = place.end;
        self.seen |= *seen;
        false
    }

    fn escape(&mut self) -> Option<()> {
        let escaped = self.peek()?;
        self.at += 1;
        match escaped {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }
}

/// How many bytes at the beginning of `text` stand for themselves in a string.
pub(crate) fn plain(text: &[u8]) -> usize {
    plain_seen(text).0
}

/// The same, and the bits that are set in these bytes, those of eight of them in a word; perhaps of
/// some behind them, too.
pub(crate) fn plain_seen(text: &[u8]) -> (usize, u64) {
    /// Most strings are not longer; what is, is looked at in larger pieces.
    const SHORT: usize = 48;
    let (short, rest) = text.split_at(text.len().min(SHORT));
    let (at, seen) = plain_words(short);
    if at < short.len() {
        return (at, seen);
    }
    let (pieces, more) = plain_pieces(rest);
    let at = at + pieces;
    let (last, most) = plain_words(text.get(at..).unwrap_or_default());
    (at + last, seen | more | most)
}

/// The same, for texts that are short.
#[inline]
pub(crate) fn plain_words(text: &[u8]) -> (usize, u64) {
    let (words, last) = text.as_chunks::<8>();
    let mut seen = 0;
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = special(word);
        seen |= word;
        if special != 0 {
            return (index * 8 + (special.trailing_zeros() / 8) as usize, seen);
        }
    }
    let mut plain = words.len() * 8;
    for byte in last.iter().take_while(|byte| !is_special(**byte)) {
        plain += 1;
        seen |= u64::from(*byte);
    }
    (plain, seen)
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// A word whose lowest bit that is set tells the first special byte among eight.
#[inline]
fn special(word: u64) -> u64 {
    bytes_below(word, b' ') | bytes_like(word, b'"') | bytes_like(word, b'\\')
}

/// The same for bytes that are `byte`.
#[inline]
pub(crate) fn bytes_like(word: u64, byte: u8) -> u64 {
    bytes_below(word ^ (ONES * u64::from(byte)), 1)
}

/// The same for bytes below `bound`, which is at most 128.
#[inline]
fn bytes_below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use std::ops::Range;

    use super::{Spelled, Stretch, Visitor, is_special, object, plain};
    use crate::scan::Members;
    use crate::testing::json_object;

    type Places = Vec<(Range<usize>, Range<usize>)>;

    /// What a visitor is told that looks into every object.
    #[derive(Default)]
    struct Found {
        /// The members of those that are not at their ends yet, by their depth.
        open: Vec<Places>,
        /// Those of each value that is at its end: none, if it is no object.
        ended: Vec<(Range<usize>, Places)>,
    }

    impl Found {
        fn at(&mut self, depth: usize) -> &mut Places {
            if self.open.len() <= depth {
                self.open.resize_with(depth + 1, Places::new);
            }
            &mut self.open[depth]
        }
    }

    impl Visitor for Found {
        fn looks_into(&mut self, depth: usize, _key: &Spelled, _start: usize) -> bool {
            assert!(self.at(depth + 1).is_empty());
            true
        }

        fn member(&mut self, depth: usize, key: &Spelled, value: &Spelled) {
            let key = key.place.clone();
            let inner = std::mem::take(self.at(depth + 1));
            self.ended.push((value.place.clone(), inner));
            self.at(depth).push((key, value.place.clone()));
        }
    }

    fn found(text: &[u8], max_depth: usize) -> Option<Found> {
        let mut found = Found::default();
        object(text, &Stretch::default(), max_depth, &mut found).then_some(found)
    }

    fn is_object(text: &str) -> bool {
        found(text.as_bytes(), 8).is_some()
    }

    fn parses(text: &str) -> bool {
        serde_json::from_str::<&RawValue>(text).is_ok()
    }

    #[test]
    fn objects_of_every_kind_are_found_to_be_json() {
        for text in [
            "{}",
            " { \t\r\n } ",
            r#"{"a":1,"b":[],"c":{},"d":"","e":true,"f":false,"g":null}"#,
            r#"{ "a" : [ 1 , -0 , 0.5 , 1e9 , 2E-3 , -12.50e+7 ] , "b" : [ [ ] , { } ] }"#,
            r#"{"\"\\\/\b\f\n\r\t\u00e9\ud800":"é😀"}"#,
        ] {
            assert!(is_object(text), "{text}");
            assert!(parses(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_or_no_json_is_not() {
        for text in [
            "",
            "1",
            "[]",
            "{",
            "}",
            "{}}",
            "{} 1",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a" 1}"#,
            "{a:1}",
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":+1}"#,
            r#"{"a":tru}"#,
            r#"{"a":nul}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":"b}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            r#"{"a":"\u12"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"\u{1f}\"}",
            "\u{feff}{}",
            "{\"a\":\u{a0}1}",
        ] {
            assert!(!is_object(text), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| format!("{}{}", r#"{"a":"#.repeat(depth), "1") + &"}".repeat(depth);
        assert!(is_object(&nested(8)));
        assert!(!is_object(&nested(9)));
        assert!(is_object(r#"{"a":[[[[[[[]]]]]]]}"#));
        assert!(!is_object(r#"{"a":[[[[[[[[]]]]]]]]}"#));
    }

    proptest! {
        /// Nothing passes that `serde_json` would refuse, however it is spoiled.
        #[test]
        fn no_spoiled_text_passes(text in json_object(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let passes = |text: &[u8]| found(text, 128).is_some();
            prop_assert!(passes(text.as_bytes()));
            let mut spoiled = text.into_bytes();
            let at = at.index(spoiled.len());
            spoiled[at] = byte;
            if passes(&spoiled) {
                let spoiled = str::from_utf8(&spoiled).unwrap();
                prop_assert!(parses(spoiled), "{}", spoiled);
            }
        }

        #[test]
        fn members_are_where_a_parser_finds_them(text in json_object()) {
            let mut found = found(text.as_bytes(), 128).unwrap();
            let expected: Vec<_> = Members::of(text.as_bytes()).collect();
            prop_assert_eq!(found.at(0), &expected);
            for (value, inner) in found.ended {
                let (start, value) = (value.start, &text.as_bytes()[value]);
                let moved = |place: Range<usize>| start + place.start..start + place.end;
                let members = Members::of(value).filter(|_| value.starts_with(b"{"));
                let expected: Vec<_> = members.map(|(key, value)| (moved(key), moved(value))).collect();
                prop_assert_eq!(inner, expected);
            }
        }

        #[test]
        fn plain_bytes_are_counted(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let expected = text.iter().take_while(|byte| !is_special(**byte)).count();
            prop_assert_eq!(plain(&text), expected);
        }

        #[test]
        fn long_plain_bytes_are_counted(before in 0..300_usize, special in prop::sample::select(vec![b'"', b'\\', 0, 31]), after in 0..40_usize) {
            let text = [vec![b'x'; before], vec![special], vec![0xe9; after]].concat();
            prop_assert_eq!(plain(&text), before);
        }
    }
}
