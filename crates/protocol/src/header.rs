//! Values that requests mirror in HTTP headers, so that proxies can route without reading bodies.
//!
//! `Mcp-Name` and `Mcp-Param-*` carry text that may not fit into a header; [`encode_value`] and
//! [`decode_value`] wrap it. The input schema of a tool marks the mirrored arguments with
//! `x-mcp-header`. [`HeaderParams`] reads these marks, makes the headers for a client, and compares
//! them with the body for a server.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};

mod params;

pub use params::{HeaderMismatch, HeaderParams, InvalidHeaderAnnotation};

/// The name of the header with the protocol version of the connection or of the request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The name of the header with the id of a session of the handshake era.
pub const SESSION_ID: &str = "mcp-session-id";
/// The name of the header with the method of a stateless request.
pub const METHOD: &str = "mcp-method";
/// The name of the header with the tool, prompt or resource of a stateless request.
pub const NAME: &str = "mcp-name";

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// A header value that cannot be decoded to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeaderValue {
    /// It holds control characters, or bytes beyond ASCII.
    #[error("characters that must be base64-encoded")]
    Characters,
    /// The content is not base64: wrong alphabet or padding.
    #[error("invalid base64")]
    Base64,
    /// The content is not UTF-8.
    #[error("base64 of bytes that are not utf-8")]
    NotUtf8,
}

/// Encodes `value` for an HTTP header (HDR26-04).
///
/// Text beyond ASCII, with control characters, with white space at either end, or that looks wrapped
/// already is wrapped as `=?base64?…?=`; all other text stays as it is.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let is_printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_wrapped = value.starts_with(BASE64_PREFIX) && value.ends_with(BASE64_SUFFIX);
    if is_printable && !is_padded && !looks_wrapped {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!(
            "{BASE64_PREFIX}{}{BASE64_SUFFIX}",
            BASE64_STANDARD.encode(value)
        ))
    }
}

/// Decodes the text of a header value (HDR26-05).
///
/// White space around the value belongs to the header, not to it. A value without both markers,
/// which are lower-case, is literal.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, BadHeaderValue> {
    let text = str::from_utf8(value)
        .ok()
        .ok_or(BadHeaderValue::Characters)?;
    let text = text.trim_matches([' ', '\t']);
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return Err(BadHeaderValue::Characters);
    }
    let wrapped = text
        .strip_prefix(BASE64_PREFIX)
        .and_then(|rest| rest.strip_suffix(BASE64_SUFFIX));
    let Some(wrapped) = wrapped else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64_STANDARD
        .decode(wrapped)
        .ok()
        .ok_or(BadHeaderValue::Base64)?;
    let text = String::from_utf8(bytes)
        .ok()
        .ok_or(BadHeaderValue::NotUtf8)?;
    Ok(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// HDR26-04.
    #[test]
    fn only_text_that_does_not_fit_is_wrapped() {
        for literal in [
            "",
            "echo",
            "a b",
            "file:///tmp/x?y=z",
            "=?base64?abc",
            "abc?=",
            "=?BASE64?YQ==?=",
        ] {
            assert_eq!(encode_value(literal), literal);
        }
        for (value, wrapped) in [
            ("ü", "=?base64?w7w=?="),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(encode_value(value), wrapped);
            assert_eq!(decode_value(wrapped.as_bytes()).unwrap(), value);
        }
    }

    /// HDR26-05: the markers are lower-case, and a value missing either is literal.
    #[test]
    fn markers_are_exact() {
        for literal in [
            "=?BASE64?YQ==?=",
            "=?base64?YQ==",
            "YQ==?=",
            "=?base64?=",
            "=?Base64?YQ==?=",
        ] {
            assert_eq!(decode_value(literal.as_bytes()).unwrap(), literal);
        }
        assert_eq!(decode_value(b"=?base64??=").unwrap(), "");
        assert_eq!(
            decode_value(b" \tpadded by a proxy ").unwrap(),
            "padded by a proxy"
        );
    }

    /// HDR26-07: malformed encodings are refused.
    #[test]
    fn bad_values_are_refused() {
        for (value, reason) in [
            (&b"=?base64?YQ=?="[..], BadHeaderValue::Base64),
            (b"=?base64?YQ?=", BadHeaderValue::Base64),
            (b"=?base64?Y Q==?=", BadHeaderValue::Base64),
            (b"=?base64?-_==?=", BadHeaderValue::Base64),
            (b"=?base64?!!!!?=", BadHeaderValue::Base64),
            (b"=?base64?/w==?=", BadHeaderValue::NotUtf8),
            ("ü".as_bytes(), BadHeaderValue::Characters),
            (b"\xff", BadHeaderValue::Characters),
            (b"a\x01b", BadHeaderValue::Characters),
        ] {
            assert_eq!(decode_value(value), Err(reason), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives(text in any::<String>()) {
            let encoded = encode_value(&text);
            prop_assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(decode_value(encoded.as_bytes()).unwrap(), text.as_str());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
            let _unread = decode_value(&bytes);
        }
    }
}
