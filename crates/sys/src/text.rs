//! Looking at much text at once.

/// How many bytes at the beginning of `text` stand for themselves in a JSON string, in pieces of 64
/// without anything else in them; and the bits that are set in these bytes, those of eight of them
/// in a word.
pub fn plain_pieces(text: &[u8]) -> (usize, u64) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "only at run time it is known what the processor can do"
        )]
        // SAFETY: The processor was asked.
        return unsafe { plain_pieces_wide(text) };
    }
    plain_pieces_anywhere(text)
}

/// The same, compiled for processors that take 32 bytes at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn plain_pieces_wide(text: &[u8]) -> (usize, u64) {
    plain_pieces_anywhere(text)
}

#[inline(always)]
fn plain_pieces_anywhere(text: &[u8]) -> (usize, u64) {
    const PIECE: usize = 64;
    let mut plain = 0;
    let mut seen = 0;
    for piece in text.as_chunks::<PIECE>().0 {
        // Looking at all of a piece, whatever its first bytes are, is done for many bytes at once.
        let is_any_special = |any: bool, byte: &u8| any | is_special(*byte);
        if piece.iter().fold(false, is_any_special) {
            break;
        }
        let words = piece.as_chunks().0.iter();
        seen |= words.fold(0, |seen, word| seen | u64::from_le_bytes(*word));
        plain += PIECE;
    }
    (plain, seen)
}

/// Whether a byte does not stand for itself in a JSON string.
#[inline]
pub fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two ways agree, and see what is special wherever it stands.
    #[test]
    fn pieces_end_before_the_one_with_something_special() {
        for length in [0, 1, 63, 64, 65, 200, 1000] {
            for special in [0, 31, b'"', b'\\', b'x', 0xe9] {
                for at in (0..length).step_by(7) {
                    let mut text = vec![b'a'; length];
                    text[at] = special;
                    let end = if is_special(special) { at } else { length };
                    let found = plain_pieces(&text);
                    assert_eq!(found, plain_pieces_anywhere(&text));
                    assert_eq!(found.0, end / 64 * 64);
                    let is_seen = special == 0xe9 && at < length / 64 * 64;
                    assert_eq!(found.1 & 0x8080_8080_8080_8080 != 0, is_seen);
                }
            }
        }
    }
}
