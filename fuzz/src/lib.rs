//! Helpers of the fuzz targets.

/// Input of a target that reads a stream: a limit, a way to cut the stream up, and the stream.
#[derive(Debug)]
pub struct Cuts<'a> {
    /// A small limit, so that short inputs go over it.
    pub limit: usize,
    /// All of the stream.
    pub stream: &'a [u8],
    cut_seed: u8,
}

impl<'a> Cuts<'a> {
    /// The first byte is the limit and the second says where to cut.
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

    /// The stream in pieces of one to sixteen bytes, of no regular length.
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
