//! A value that was written around another one, without copying that.

use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};

use crate::copy::append;

/// What stands before a long value, the value as it came, and what stands behind it.
pub(super) struct Framed {
    pub(super) parts: [Bytes; 3],
    /// All of it, if somebody wanted it in one piece.
    whole: OnceLock<Bytes>,
}

impl Framed {
    pub(super) fn new(parts: [Bytes; 3]) -> Self {
        let whole = OnceLock::new();
        Self { parts, whole }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    pub(super) fn whole(&self) -> &Bytes {
        self.whole.get_or_init(|| concat(&self.parts))
    }
}

/// These pieces, one behind the other.
pub(super) fn concat(pieces: &[impl AsRef<[u8]>]) -> Bytes {
    let size = pieces.iter().map(|piece| piece.as_ref().len()).sum();
    let mut out = BytesMut::with_capacity(size);
    for piece in pieces {
        append(&mut out, piece.as_ref());
    }
    out.freeze()
}
