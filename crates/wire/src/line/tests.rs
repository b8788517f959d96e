use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::{Line, LineDecoder};
use crate::SkimmedEnvelope;

/// Feeds the pieces one by one and gives the lines, the last one included.
fn lines<'a>(max_line: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
    let mut decoder = LineDecoder::new(max_line);
    let mut buffer = BytesMut::new();
    let mut lines = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| decoder.next(&mut buffer)));
        assert!(buffer.len() <= max_line + 1, "the rest must stay bounded");
    }
    lines.extend(std::iter::from_fn(|| decoder.finish(&mut buffer)));
    assert!(buffer.is_empty());
    lines
}

fn complete(text: &'static str) -> Line {
    Line::Complete(Bytes::from_static(text.as_bytes()))
}

fn too_long(discarded: u64) -> Line {
    Line::TooLong {
        discarded,
        envelopes: Vec::new(),
    }
}

/// STDIO-01, S000-05.
#[test]
fn each_line_is_one_message() {
    let input = b"{}\n[1]\r\n \t\n\n\r\n\"a\rb\"\nlast";
    let expected = ["{}", "[1]", "\"a\rb\"", "last"].map(complete);
    assert_eq!(lines(100, [&input[..]]), expected);
}

#[test]
fn an_unfinished_line_waits_for_its_newline() {
    let mut decoder = LineDecoder::new(10);
    let mut buffer = BytesMut::from("ab");
    assert_eq!(decoder.next(&mut buffer), None);
    buffer.extend_from_slice(b"c\nd");
    assert_eq!(decoder.next(&mut buffer), Some(complete("abc")));
    assert_eq!(decoder.next(&mut buffer), None);
    assert_eq!(decoder.finish(&mut buffer), Some(complete("d")));
    assert_eq!(decoder.finish(&mut buffer), None);
}

#[test]
fn the_line_ending_does_not_count_towards_the_limit() {
    assert_eq!(
        lines(3, [&b"abc\nabc\r\nabc\r"[..]]),
        ["abc", "abc", "abc"].map(complete)
    );
    let expected = [too_long(4), too_long(5), complete("ab")];
    assert_eq!(lines(3, [&b"abcd\nabcd\r\nab"[..]]), expected);
    assert_eq!(lines(3, [&b"abcd"[..]]), [too_long(4)]);
}

/// C09: a line over the limit is reported once, and the next one is intact.
#[test]
fn a_line_over_the_limit_does_not_harm_the_next() {
    let chunk = [b'x'; 1000];
    let flood = std::iter::repeat_n(&chunk[..], 3000);
    let input = flood.chain([&b"\r\n{}\n"[..]]);
    assert_eq!(
        lines(1024 * 1024, input),
        [too_long(3_000_001), complete("{}")]
    );
}

/// The line is discarded in pieces, and its memory is given back at once.
#[test]
fn the_id_of_a_line_over_the_limit_is_read() {
    let expected = vec![SkimmedEnvelope::Response(5_i64.into())];
    let text = "x".repeat(100_000);
    let line = format!("{{\"result\":\"{text}\",\"jsonrpc\":\"2.0\",\"id\":5}}\n{{}}\n");
    let discarded = line.len() as u64 - 4;
    for size in [1, 1000, line.len()] {
        let mut decoder = LineDecoder::new(10_000);
        let mut buffer = BytesMut::new();
        let mut found = Vec::new();
        for piece in line.as_bytes().chunks(size) {
            buffer.extend_from_slice(piece);
            found.extend(std::iter::from_fn(|| decoder.next(&mut buffer)));
            assert!(buffer.capacity() <= 32_000 || size == line.len());
        }
        let envelopes = expected.clone();
        let too_long = Line::TooLong {
            discarded,
            envelopes,
        };
        assert_eq!(found, [too_long, complete("{}")], "pieces of {size}");
    }
}

#[test]
fn a_long_line_is_told_at_the_end_of_the_input() {
    assert_eq!(lines(3, [&b"abcd"[..], b"ef"]), [too_long(6)]);
    assert_eq!(lines(3, [&b"    "[..], b"  "]), [too_long(6)]);
}

/// Searching the line from its start each time would take minutes.
#[test]
fn a_long_line_may_arrive_byte_by_byte() {
    let size = 4 * 1024 * 1024;
    let line = vec![b'x'; size];
    let found = lines(size, line.chunks(1).chain([&b"\n"[..]]));
    assert_eq!(found, [Line::Complete(line.into())]);
}

#[test]
fn every_cut_in_two_gives_the_same_lines() {
    let input = b"ab\r\n\n \r\nabcd\nabcde\nabcdefgh\r\r\n\rab\nabcd\r\n\r\r\r\r\r\nabcd\r";
    let expected = lines(4, [&input[..]]);
    for at in 0..=input.len() {
        let (one, two) = input.split_at(at);
        assert_eq!(lines(4, [one, two]), expected, "cut at {at}");
    }
    assert_eq!(lines(4, input.chunks(1)), expected);
}

/// Chunks of any length, of the bytes that the decoder distinguishes.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![
        Just(b'a'),
        Just(b'\r'),
        Just(b'\n'),
        Just(b' '),
        any::<u8>()
    ];
    proptest::collection::vec(proptest::collection::vec(byte, 0..8), 0..12)
}

proptest! {
    #[test]
    fn every_cut_gives_the_same_lines(pieces in pieces(), max_line in 0..12_usize) {
        let whole = pieces.concat();
        let expected = lines(max_line, [&whole[..]]);
        prop_assert_eq!(lines(max_line, pieces.iter().map(Vec::as_slice)), expected);
    }

    #[test]
    fn lines_are_those_of_the_text(pieces in pieces()) {
        let whole = pieces.concat();
        let expected: Vec<Line> = whole
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.trim_ascii().is_empty())
            .map(|line| Line::Complete(Bytes::copy_from_slice(line)))
            .collect();
        prop_assert_eq!(lines(whole.len(), [&whole[..]]), expected);
    }
}
