//! What the body of an answer hands out at a time.

use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Bytes that go out together, in one piece or in three that nobody had to join.
#[derive(Debug)]
#[non_exhaustive]
pub enum Pieces {
    /// One piece.
    One(Bytes),
    /// Three of them, one behind the other.
    Three(Box<[Bytes; 3]>),
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        match self {
            Self::One(piece) => piece.len(),
            Self::Three(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::One(piece) => piece,
            Self::Three(pieces) => {
                let left = pieces.iter().find(|piece| !piece.is_empty());
                left.map_or(&[], |piece| piece)
            }
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let pieces = match self {
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Three(pieces) => &pieces[..],
        };
        let left = pieces.iter().filter(|piece| !piece.is_empty());
        let filled = slices.iter_mut().zip(left);
        filled
            .map(|(slice, piece)| *slice = IoSlice::new(piece))
            .count()
    }

    fn advance(&mut self, mut count: usize) {
        match self {
            Self::One(piece) => piece.advance(count),
            Self::Three(pieces) => {
                for piece in pieces.iter_mut() {
                    let taken = count.min(piece.len());
                    piece.advance(taken);
                    count -= taken;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(pieces: [&'static str; 3]) -> Pieces {
        Pieces::Three(Box::new(pieces.map(Bytes::from)))
    }

    fn slices(pieces: &Pieces, room: usize) -> Vec<Vec<u8>> {
        let mut slices = vec![IoSlice::new(&[]); room];
        let filled = pieces.chunks_vectored(&mut slices);
        slices
            .iter()
            .take(filled)
            .map(|slice| slice.to_vec())
            .collect()
    }

    #[test]
    fn three_pieces_are_one_after_the_other() {
        for taken in 0..=7 {
            let mut pieces = three(["{\"a\":", "", "1}"]);
            assert_eq!(pieces.remaining(), 7);
            pieces.advance(taken);
            let rest = b"{\"a\":1}".get(taken..).unwrap();
            assert_eq!(pieces.remaining(), rest.len());
            assert!(rest.starts_with(pieces.chunk()));
            assert_eq!(slices(&pieces, 3).concat(), rest);
        }
    }

    #[test]
    fn as_many_slices_are_filled_as_there_is_room_for() {
        let pieces = three(["1", "", "2"]);
        assert_eq!(slices(&pieces, 1), [b"1"]);
        assert_eq!(slices(&pieces, 2), [b"1", b"2"]);
        assert_eq!(slices(&Pieces::One(Bytes::from("1")), 2), [b"1"]);
        assert!(slices(&Pieces::One(Bytes::new()), 2).is_empty());
    }
}
