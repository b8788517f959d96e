//! Lines do not depend on how the stream was cut, are those of the text, and need bounded memory.

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
        // The one byte more is a CR that may yet turn out to be part of the line ending.
        assert!(buffer.len() <= max_line + 1);
    }
    lines.extend(std::iter::from_fn(|| decoder.finish(&mut buffer)));
    assert!(buffer.is_empty());
    lines
}

/// The same by a decoder that has all of the stream and all memory.
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
