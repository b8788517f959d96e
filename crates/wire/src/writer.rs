//! Writing one value piece by piece, into one buffer.

use bytes::{BufMut, BytesMut};

use crate::{Raw, string};

/// Writes a value from its beginning to its end. Commas and colons come by themselves; that objects
/// have keys, and that what is opened is closed, is up to the caller.
///
/// ```
/// use plexus_wire::Writer;
///
/// let mut writer = Writer::with_capacity(32);
/// writer.open_object();
/// writer.key("words");
/// writer.open_array();
/// writer.string("one");
/// writer.string("\"two\"");
/// writer.close_array();
/// writer.close_object();
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

    /// Begins an object.
    pub fn open_object(&mut self) {
        self.separate();
        self.out.put_u8(b'{');
    }

    /// Ends it.
    pub fn close_object(&mut self) {
        self.out.put_u8(b'}');
    }

    /// Begins an array.
    pub fn open_array(&mut self) {
        self.separate();
        self.out.put_u8(b'[');
    }

    /// Ends it.
    pub fn close_array(&mut self) {
        self.out.put_u8(b']');
    }

    /// The key of the member whose value comes next.
    pub fn key(&mut self, key: &str) {
        self.string(key);
        self.out.put_u8(b':');
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        self.separate();
        string::write(&mut self.out, text);
    }

    /// `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.separate();
        let literal: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(literal);
    }

    /// Any value.
    pub fn raw(&mut self, value: &Raw) {
        self.separate();
        self.out.extend_from_slice(value.as_bytes());
    }

    /// What was written.
    pub fn finish(self) -> Raw {
        Raw::from_written(self.out.freeze())
    }

    /// Puts a comma between what was written and what comes next.
    fn separate(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':')) {
            self.out.put_u8(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Writer;
    use crate::testing::raw;

    #[test]
    fn values_of_every_kind_are_separated() {
        let mut writer = Writer::with_capacity(0);
        writer.open_object();
        writer.key("a:{[");
        writer.bool(true);
        writer.key("b");
        writer.open_array();
        writer.open_array();
        writer.close_array();
        writer.open_object();
        writer.close_object();
        writer.raw(&raw("1.50"));
        writer.bool(false);
        writer.string(":");
        writer.string("[");
        writer.close_array();
        writer.key("c");
        writer.raw(&raw("null"));
        writer.close_object();
        assert_eq!(
            writer.finish().as_str(),
            r#"{"a:{[":true,"b":[[],{},1.50,false,":","["],"c":null}"#
        );
    }
}
