mod envelope;

use std::fmt;

use bytes::Bytes;
use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

use self::envelope::Envelope;
use crate::{Limits, Malformed, MalformedReason, Message};

/// Decoded input: one message or one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON-RPC 2.0 input is one message or one batch"
)]
pub enum Incoming {
    /// A message by itself.
    Single(Result<Message, Malformed>),
    /// An array of messages, never empty. A malformed element does not affect the others.
    Batch(Vec<Result<Message, Malformed>>),
}

/// Why input cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each reason has its own error response"
)]
pub enum DecodeError {
    /// The bytes are not text.
    #[error("input is not utf-8")]
    NotUtf8,
    /// The text is not JSON. A byte order mark counts as such: JSON must not begin with one.
    #[error("invalid json at line {line} column {column}: {message}")]
    Syntax {
        /// The line of the error, from 1.
        line: usize,
        /// The byte within the line, from 1; 0 if the line is empty.
        column: usize,
        /// The reason. Does not quote the input.
        message: Box<str>,
    },
    /// The input is longer than [`Limits::max_bytes`].
    #[error("input is longer than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The input nests deeper than [`Limits::max_depth`].
    #[error("input nests deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The input is `[]`.
    #[error("a batch must not be empty")]
    EmptyBatch,
    /// The batch has more elements than [`Limits::max_batch`].
    #[error("a batch has more than {limit} elements")]
    BatchTooLong {
        /// The limit.
        limit: usize,
    },
}

/// Decodes the envelope of one message or one batch.
///
/// Params, results and error data are slices of `bytes`. Unknown members are ignored; a repeated
/// member of JSON-RPC makes the message malformed.
///
/// ```
/// use plexus_mcp_wire::{Incoming, Limits, Message, decode};
///
/// let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
/// let Incoming::Single(Ok(Message::Request(request))) = decode(line.into(), &Limits::default())? else {
///     panic!("not a request");
/// };
/// assert_eq!(&*request.method, "tools/call");
/// assert_eq!(request.params.unwrap().as_str(), r#"{"name":"add"}"#);
/// # Ok::<(), plexus_mcp_wire::DecodeError>(())
/// ```
#[expect(
    clippy::needless_pass_by_value,
    reason = "the message keeps slices of the bytes, so they are given up to it"
)]
pub fn decode(bytes: Bytes, limits: &Limits) -> Result<Incoming, DecodeError> {
    let text = checked_text(&bytes, limits)?;
    if text.trim_ascii_start().starts_with('[') {
        return decode_batch(&bytes, text, limits).map(Incoming::Batch);
    }
    decode_element(&bytes, text).map(Incoming::Single)
}

/// The bytes as text, if they are within the limits of size and depth.
pub(crate) fn checked_text<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, DecodeError> {
    if bytes.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge {
            limit: limits.max_bytes,
        });
    }
    if limits.is_too_deep(bytes) {
        return Err(DecodeError::TooDeep {
            limit: limits.max_depth,
        });
    }
    simdutf8::basic::from_utf8(bytes).map_err(|_not_text| DecodeError::NotUtf8)
}

/// Converts the error of `serde_json` for text that is not JSON.
pub(crate) fn syntax_error(error: &serde_json::Error) -> DecodeError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let message = text.strip_suffix(&place).unwrap_or(&text);
    DecodeError::Syntax {
        line,
        column,
        message: message.replace("EOF", "end of input").into(),
    }
}

/// A message, or why it is malformed.
type Element = Result<Message, Malformed>;

fn decode_element(source: &Bytes, text: &str) -> Result<Element, DecodeError> {
    if text.trim_ascii_start().starts_with('{') {
        let envelope: Envelope<'_> =
            serde_json::from_str(text).map_err(|error| syntax_error(&error))?;
        return Ok(envelope.into_message(source));
    }
    let _: &RawValue = serde_json::from_str(text).map_err(|error| syntax_error(&error))?;
    Ok(Err(Malformed {
        id: None,
        reason: MalformedReason::NotAnObject,
    }))
}

fn decode_batch(source: &Bytes, text: &str, limits: &Limits) -> Result<Vec<Element>, DecodeError> {
    let mut input = serde_json::Deserializer::from_str(text);
    let elements = input
        .deserialize_seq(BatchOfAtMost(limits.max_batch))
        .and_then(|elements| input.end().map(|()| elements))
        .map_err(|error| syntax_error(&error))?;
    let Some(elements) = elements else {
        return Err(DecodeError::BatchTooLong {
            limit: limits.max_batch,
        });
    };
    if elements.is_empty() {
        return Err(DecodeError::EmptyBatch);
    }
    let texts = elements.into_iter().map(RawValue::get);
    texts.map(|text| decode_element(source, text)).collect()
}

/// Collects the elements of an array; `None` if there are more than the limit.
struct BatchOfAtMost(usize);

impl<'a> Visitor<'a> for BatchOfAtMost {
    type Value = Option<Vec<&'a RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        let mut is_too_long = false;
        // A batch over the limit is still read to its end, so that a syntax error is reported first.
        while let Some(element) = array.next_element::<&RawValue>()? {
            if elements.len() < self.0 {
                elements.push(element);
            } else {
                is_too_long = true;
            }
        }
        Ok((!is_too_long).then_some(elements))
    }
}

#[cfg(test)]
mod tests;
