//! The line decoder finds the same lines as a simple reference decoder, however the stream is
//! split, and its buffer is bounded.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use plexus_fuzz::Cuts;
use plexus_mcp_wire::{Line, LineDecoder, skim};

fuzz_target!(|input: &[u8]| {
    let Some(input) = Cuts::read(input) else {
        return;
    };
    let expected = expected_lines(input.limit, input.stream);
    assert_eq!(lines(input.limit, [input.stream]), expected);
    assert_eq!(lines(input.limit, input.pieces()), expected);
});

fn lines<'a>(max_line: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
    let mut decoder = LineDecoder::new(max_line);
    let mut buffer = BytesMut::new();
    let mut lines = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| decoder.next(&mut buffer)));
        // The additional byte is a CR, which may be part of a CRLF line ending.
        assert!(buffer.len() <= max_line + 1);
    }
    lines.extend(std::iter::from_fn(|| decoder.finish(&mut buffer)));
    assert!(buffer.is_empty());
    lines
}

/// The expected lines, by a reference decoder that has the whole stream in memory.
fn expected_lines(max_line: usize, stream: &[u8]) -> Vec<Line> {
    let lines = stream.split(|byte| *byte == b'\n').filter_map(|whole| {
        let line = whole.strip_suffix(b"\r").unwrap_or(whole);
        if line.len() > max_line {
            return Some(Line::TooLong {
                discarded: whole.len() as u64,
                envelopes: skim(whole),
            });
        }
        (!line.trim_ascii().is_empty()).then(|| Line::Complete(Bytes::copy_from_slice(line)))
    });
    lines.collect()
}
