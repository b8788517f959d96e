//! JSON string literals.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use memchr::memchr;
use simdutf8::basic::from_utf8;

use crate::check::{plain, plain_words};
use crate::copy::append;

/// The text of a literal that is known to be a valid JSON string; half a surrogate pair, which JSON
/// can spell but text cannot hold, has none.
pub(crate) fn read(literal: &[u8]) -> Option<Cow<'_, str>> {
    const SHORT: usize = 48;
    let inside = between_quotes(literal);
    let has_escapes = if inside.len() <= SHORT {
        plain_words(inside).0 < inside.len()
    } else {
        memchr(b'\\', inside).is_some()
    };
    if has_escapes {
        return serde_json::from_slice(literal).ok().map(Cow::Owned);
    }
    read_plain(literal).map(Cow::Borrowed)
}

/// The same for one that has no escapes.
pub(crate) fn read_plain(literal: &[u8]) -> Option<&str> {
    from_utf8(between_quotes(literal)).ok()
}

/// What stands between the quotes of a literal, escapes and all.
pub(crate) fn between_quotes(literal: &[u8]) -> &[u8] {
    let inside = literal.get(1..literal.len().saturating_sub(1));
    inside.unwrap_or_default()
}

/// How much the nearest cache of a processor holds, with room for a copy.
const NEAR: usize = 8 * 1024;

/// Appends the literal for a text: only what must be escaped is.
pub(crate) fn write(out: &mut BytesMut, text: &str) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    // What was just looked at is copied while it is still near.
    for mut rest in text.as_bytes().chunks(NEAR) {
        loop {
            let (plain, special) = rest.split_at(plain(rest).min(rest.len()));
            append(out, plain);
            let Some((byte, tail)) = special.split_first() else {
                break;
            };
            write_escape(out, *byte);
            rest = tail;
        }
    }
    out.put_u8(b'"');
}

fn write_escape(out: &mut BytesMut, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.put_u8(hex_digit(byte >> 4));
            out.put_u8(hex_digit(byte & 0xf));
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 {
        b'0' + nibble
    } else {
        b'a' + nibble - 10
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::{read, write};

    fn written(text: &str) -> String {
        let mut out = BytesMut::new();
        write(&mut out, text);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        assert_eq!(written("tools/call"), r#""tools/call""#);
        assert_eq!(
            written("\"\\\r\n\t\u{1}\u{1f}"),
            r#""\"\\\r\n\t\u0001\u001f""#
        );
        assert_eq!(written("é\u{2028}\u{7f}😀"), "\"é\u{2028}\u{7f}😀\"");
    }

    #[test]
    fn half_a_surrogate_pair_is_no_text() {
        assert_eq!(read(br#""\ud800""#), None);
        assert_eq!(read(br#""\ud83d\ude00""#).unwrap(), "😀");
    }

    proptest! {
        #[test]
        fn literals_read_back(text in any::<String>()) {
            let literal = written(&text);
            prop_assert_eq!(read(literal.as_bytes()).unwrap(), text.as_str());
            prop_assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), text);
        }
    }
}
