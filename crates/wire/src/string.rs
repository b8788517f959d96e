//! JSON string literals.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use memchr::memchr;
use simdutf8::basic::from_utf8;

/// The text of a literal that is known to be a valid JSON string. A literal with an unpaired
/// surrogate has no text: JSON can spell it, but Unicode text cannot hold it.
pub(crate) fn read(literal: &[u8]) -> Option<Cow<'_, str>> {
    let inside = between_quotes(literal);
    if memchr(b'\\', inside).is_some() {
        return serde_json::from_slice(literal).ok().map(Cow::Owned);
    }
    from_utf8(inside).ok().map(Cow::Borrowed)
}

/// The bytes between the quotes of a literal, with their escapes.
pub(crate) fn between_quotes(literal: &[u8]) -> &[u8] {
    let inside = literal.get(1..literal.len().saturating_sub(1));
    inside.unwrap_or_default()
}

/// Appends a text as a string literal. Only characters that must be escaped are.
#[expect(
    clippy::expect_used,
    reason = "a string is always JSON, and writing to memory cannot fail"
)]
pub(crate) fn write(out: &mut BytesMut, text: &str) {
    out.reserve(text.len() + 2);
    serde_json::to_writer(out.writer(), text).expect("a string can be written to memory");
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
    fn only_required_characters_are_escaped() {
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
