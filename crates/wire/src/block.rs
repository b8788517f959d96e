//! Memory for long messages, used again.
//!
//! A block of a megabyte costs more to get from the system than to fill, and in a heap where others
//! take pieces of what is free, the next long message hardly ever fits where the last one was. So
//! blocks are kept for the messages to come, the one last used first: it is still near.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::Arrived;
use crate::arrived::Watch;
use crate::copy::append_seen;

/// From how many bytes on a block is kept.
const LONG: usize = 256 * 1024;
/// How many bytes are kept at most.
const KEPT: usize = 16 * 1024 * 1024;
/// How much larger than needed a block may be that is used again.
const SPARE: usize = 4;

/// A message that is put together piece by piece.
///
/// ```
/// use plexus_wire::Block;
///
/// let mut block = Block::with_capacity(8);
/// block.push(b"{}");
/// block.push(b"\n");
/// assert_eq!(block.freeze().into_bytes(), "{}\n");
/// ```
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    watch: Watch,
}

impl Block {
    /// Nothing yet, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let kept = if bytes < LONG { None } else { take(bytes) };
        Self {
            bytes: kept.unwrap_or_else(|| Vec::with_capacity(bytes)),
            watch: Watch::default(),
        }
    }

    /// Adds a piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.reserve(piece.len());
        append_seen(&mut self.bytes, piece, |part| self.watch.see(part));
    }

    /// How long it is by now.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The message. When nobody has any of it any more, its memory is used again.
    pub fn freeze(self) -> Arrived {
        let bytes = if self.bytes.capacity() < LONG {
            self.bytes.into()
        } else {
            Bytes::from_owner(Lent(self.bytes))
        };
        let plain = self.watch.into_stretch();
        Arrived { bytes, plain }
    }
}

/// Lets go of the memory that is kept.
pub fn give_back() {
    kept().clear();
}

/// A block that is kept when it is dropped.
struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut block = std::mem::take(&mut self.0);
        block.clear();
        let mut kept = kept();
        let size: usize = kept.iter().map(Vec::capacity).sum();
        if size + block.capacity() <= KEPT {
            kept.push(block);
        }
    }
}

/// The block last used in which so many bytes have room, and not far too much of it.
fn take(bytes: usize) -> Option<Vec<u8>> {
    let mut kept = kept();
    let fits = |block: &Vec<u8>| (bytes..=bytes.saturating_mul(SPARE)).contains(&block.capacity());
    let at = kept.iter().rposition(fits)?;
    Some(kept.remove(at))
}

fn kept() -> MutexGuard<'static, Vec<Vec<u8>>> {
    static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(filling: u8) -> Bytes {
        let mut block = Block::with_capacity(LONG);
        block.push(&vec![filling; LONG]);
        block.freeze().into_bytes()
    }

    /// Tests run side by side in one process, if not in nextest; nobody else has blocks so long.
    #[test]
    fn the_memory_of_a_long_message_is_used_again_when_nobody_has_any_of_it() {
        let first = long(1);
        let place = first.as_ptr();
        let part = first.slice(5..7);
        drop(first);
        let second = long(2);
        assert_ne!(second.as_ptr(), place);
        assert_eq!(&*part, [1, 1]);
        drop(part);
        let third = long(3);
        assert_eq!(third.as_ptr(), place);
        assert_eq!(third.len(), LONG);
        assert!(third.iter().all(|byte| *byte == 3));

        drop((second, third));
        let far_too_long = Block::with_capacity(LONG * SPARE * 2).freeze();
        drop(far_too_long);
        assert!(take(LONG).is_some_and(|block| block.capacity() <= LONG * SPARE));

        for _ in 0..3 {
            drop(Block::with_capacity(KEPT / 2).freeze());
            drop((Block::with_capacity(KEPT).freeze(), long(4)));
        }
        let size: usize = kept().iter().map(Vec::capacity).sum();
        assert!(size <= KEPT, "{size}");
        give_back();
        assert!(kept().is_empty());
    }

    #[test]
    fn short_messages_are_their_own() {
        let mut block = Block::with_capacity(0);
        assert!(block.is_empty());
        block.push(b"ab");
        block.push(b"c");
        assert_eq!(block.len(), 3);
        assert_eq!(block.freeze().into_bytes(), "abc");
    }
}
