//! What was seen of a message before anybody read it.

use std::ops::Range;

use bytes::Bytes;

use crate::check::plain_seen;
use crate::decode::decode_seen;
use crate::{DecodeError, Incoming, Limits};

/// A message as it arrived, and what was seen of it while it was put together.
///
/// A long message comes in pieces, and each is near while it is put to the others; when all are
/// there, the first are far again.
///
/// ```
/// use plexus_wire::{Block, Incoming, Limits};
///
/// let mut block = Block::with_capacity(64);
/// block.push(br#"{"jsonrpc":"2.0","method":"#);
/// block.push(br#""notifications/initialized"}"#);
/// let incoming = block.freeze().decode(&Limits::default())?;
/// assert!(matches!(incoming, Incoming::Single(Ok(_))));
/// # Ok::<(), plexus_wire::DecodeError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Arrived {
    pub(crate) bytes: Bytes,
    pub(crate) plain: Stretch,
}

impl Arrived {
    /// As [`decode`](crate::decode()), without a second look at what was seen.
    pub fn decode(self, limits: &Limits) -> Result<Incoming, DecodeError> {
        decode_seen(&self.bytes, &self.plain, limits)
    }

    /// The message alone.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// A message of which nothing was seen.
impl From<Bytes> for Arrived {
    fn from(bytes: Bytes) -> Self {
        let plain = Stretch::default();
        Self { bytes, plain }
    }
}

/// Bytes of a message that all stand for themselves in a JSON string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stretch {
    pub(crate) place: Range<usize>,
    /// The bits that are set in these bytes, those of eight of them in a word.
    pub(crate) seen: u64,
}

/// Looks for the longest stretch of a message while that grows.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    longest: Stretch,
    /// The one that goes on where the message ends by now.
    last: Stretch,
}

impl Watch {
    /// Looks at what is appended next.
    #[inline]
    pub(crate) fn see(&mut self, part: &[u8]) {
        let (plain, seen) = plain_seen(part);
        let end = self.last.place.end + part.len();
        if plain == part.len() {
            self.last.place.end = end;
            self.last.seen |= seen;
        } else {
            self.keep_longest();
            self.last.place = end..end;
            self.last.seen = 0;
        }
    }

    /// The longest there was.
    pub(crate) fn into_stretch(mut self) -> Stretch {
        self.keep_longest();
        self.longest
    }

    fn keep_longest(&mut self) {
        if self.last.place.len() > self.longest.place.len() {
            self.longest = self.last.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{id, json_object};
    use crate::{Block, Limits, decode};

    use super::*;

    fn in_pieces(text: &[u8], size: usize) -> Arrived {
        let mut block = Block::with_capacity(text.len());
        text.chunks(size).for_each(|piece| block.push(piece));
        block.freeze()
    }

    #[test]
    fn the_longest_stretch_is_found_wherever_pieces_end() {
        let text = ["\"", &"a".repeat(9_000), "\n", &"é".repeat(20_000), "\\"].concat();
        for size in [1_000, 2_048, 5_000, 100_000] {
            let Stretch { place, seen } = in_pieces(text.as_bytes(), size).plain;
            assert!(place.len() > 40_000 - 2 * 2_048, "{place:?}");
            assert!(text.as_bytes()[place].iter().all(|byte| *byte >= 0x80));
            assert_ne!(seen & 0x8080_8080_8080_8080, 0);
        }
    }

    #[test]
    fn nothing_is_known_of_what_came_in_one_piece_or_is_special_everywhere() {
        assert!(
            Arrived::from(Bytes::from_static(b"plain"))
                .plain
                .place
                .is_empty()
        );
        let lines = "a line\n".repeat(10_000);
        assert!(in_pieces(lines.as_bytes(), 4_096).plain.place.is_empty());
    }

    proptest! {
        /// However a message came, and whatever is wrong with it, it is read as if it had come whole.
        #[test]
        fn what_was_seen_changes_nothing(
            (id, params) in (id(), json_object()),
            (plain, special) in (0..9_000_usize, any::<u8>()),
            (size, spoiled) in (1..5_000_usize, any::<prop::sample::Index>()),
        ) {
            let long = "x".repeat(plain);
            let id = crate::Raw::encode(&id).unwrap();
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","#, id = id.as_str());
            let rest = format!(r#""params":{{"arguments":{{"{long}":"{long}"}},"other":{params}}}}}"#);
            let mut text = (head + &rest).into_bytes();
            for is_spoiled in [false, true] {
                if is_spoiled {
                    let at = spoiled.index(text.len());
                    text[at] = special;
                }
                let whole = decode(text.clone().into(), &Limits::default());
                let joined = in_pieces(&text, size).decode(&Limits::default());
                prop_assert_eq!(format!("{whole:?}"), format!("{joined:?}"));
            }
        }
    }
}
