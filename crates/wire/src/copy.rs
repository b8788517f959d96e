//! Copying what may be long.

use bytes::BufMut;

/// What is copied at once. For more than this, the C library leaves it to one instruction that is
/// five times as slow on some processors (AMD's Zen), depending on where in their pages source and
/// target are.
const AT_ONCE: usize = 2048;

/// Appends bytes.
#[inline]
pub(crate) fn append(out: &mut impl BufMut, bytes: &[u8]) {
    append_seen(out, bytes, |_| {});
}

/// The same, and shows them to somebody while they are near.
#[inline]
pub(crate) fn append_seen(out: &mut impl BufMut, bytes: &[u8], mut see: impl FnMut(&[u8])) {
    let mut rest = bytes;
    while let Some((part, tail)) = rest.split_at_checked(AT_ONCE) {
        see(part);
        out.put_slice(part);
        rest = tail;
    }
    see(rest);
    out.put_slice(rest);
}
