//! Incremental UTF-8 decoding.

/// Decodes chunks of bytes. Invalid UTF-8 is replaced; a character that is split between two chunks
/// is kept together.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The bytes of an incomplete character at the end of the last chunk.
    begun: Vec<u8>,
}

impl Decoder {
    /// Decodes the next chunk, up to its last whole character.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_begun(invalid) {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// Decodes the remaining bytes, when no chunk follows.
    pub(crate) fn finish(&mut self) -> String {
        let begun = std::mem::take(&mut self.begun);
        String::from_utf8_lossy(&begun).into_owned()
    }
}

/// Whether these bytes are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    let error = std::str::from_utf8(bytes).err();
    error.is_some_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let text: String = pieces.iter().map(|piece| decoder.decode(piece)).collect();
        text + &decoder.finish()
    }

    #[test]
    fn characters_may_be_cut_anywhere() {
        let text = "aä€😀z\u{0}";
        for size in 1..=text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
            assert_eq!(decoded(&pieces), text, "pieces of {size}");
        }
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(decoded(&[b"a\xffb", b"\xc3\x28"]), "a\u{fffd}b\u{fffd}(");
        assert_eq!(decoded(&[b"a\xe2\x82"]), "a\u{fffd}");
        assert_eq!(decoded(&[b"\xe2", b"\x82", b"a"]), "\u{fffd}a");
    }
}
