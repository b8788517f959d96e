//! Writing one value piece by piece, into one buffer.

use bytes::BytesMut;

use crate::{Raw, string};

/// Writes a value from its beginning to its end. That the pieces make up one value is up to the
/// caller.
///
/// ```
/// use plexus_wire::Writer;
///
/// let mut writer = Writer::with_capacity(32);
/// writer.json(r#"{"words":["#);
/// writer.string("one");
/// writer.json(",");
/// writer.string("\"two\"");
/// writer.json("]}");
/// assert_eq!(writer.finish().as_str(), r#"{"words":["one","\"two\""]}"#);
/// ```
#[derive(Debug)]
pub struct Writer {
    out: BytesMut,
}

impl Writer {
    /// Nothing yet, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: BytesMut::with_capacity(bytes),
        }
    }

    /// A piece of JSON, as it stands in the program.
    pub fn json(&mut self, piece: &'static str) {
        self.out.extend_from_slice(piece.as_bytes());
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        string::write(&mut self.out, text);
    }

    /// What was written.
    pub fn finish(self) -> Raw {
        Raw::from_written(self.out.freeze())
    }
}
