//! Helpers of the fuzz targets.

pub mod edge;

/// Input of a target that reads a stream: a limit, a seed for splitting the stream, and the stream.
#[derive(Debug)]
pub struct Cuts<'a> {
    /// A limit of at most 255, so that short inputs exceed it.
    pub limit: usize,
    /// All of the stream.
    pub stream: &'a [u8],
    cut_seed: u8,
}

impl<'a> Cuts<'a> {
    /// Parses the input: the first byte is the limit, the second the seed, the rest the stream.
    pub fn read(input: &'a [u8]) -> Option<Self> {
        let [limit, cut_seed, stream @ ..] = input else {
            return None;
        };
        Some(Self {
            limit: usize::from(*limit),
            stream,
            cut_seed: *cut_seed,
        })
    }

    /// The stream in pieces of one to sixteen bytes; the seed determines their lengths.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.stream;
        let mut state = self.cut_seed;
        std::iter::from_fn(move || {
            state = state.wrapping_mul(5).wrapping_add(3);
            let size = usize::from(state >> 4) + 1;
            let (piece, tail) = rest.split_at(size.min(rest.len()));
            rest = tail;
            (!piece.is_empty()).then_some(piece)
        })
    }
}
