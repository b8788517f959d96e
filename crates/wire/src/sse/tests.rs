use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::{Decoder, Event, Frame, TooLong, encode, encode_comment};
use crate::SkimmedEnvelope;

type Item = Result<Event, TooLong>;

fn events<'a>(max_event: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Item> {
    let mut decoder = Decoder::new(max_event);
    let mut items = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        items.extend(std::iter::from_fn(|| decoder.next()));
    }
    items
}

fn read(stream: &str) -> Vec<Item> {
    events(1000, [stream.as_bytes()])
}

/// Events that have data and nothing else.
fn messages<const N: usize>(data: [&'static str; N]) -> [Item; N] {
    data.map(|data| {
        Ok(Event {
            data: Bytes::from_static(data.as_bytes()),
            ..Event::default()
        })
    })
}

fn written(frame: &Frame<'_>) -> String {
    let mut out = BytesMut::new();
    encode(&mut out, frame);
    String::from_utf8(out.to_vec()).unwrap()
}

#[test]
fn all_fields_are_read() {
    let expected = Event {
        event: Some("message".into()),
        id: Some("s-1".into()),
        retry: Some(3000),
        data: Bytes::from_static(b"{}"),
    };
    let stream = "event: message\nid: s-1\nretry: 3000\ndata: {}\n\n";
    assert_eq!(read(stream), [Ok(expected)]);
}

#[test]
fn data_lines_are_joined() {
    assert_eq!(
        read("data: a\ndata\ndata:b\ndata:  c\n\n"),
        messages(["a\n\nb\n c"])
    );
    assert_eq!(read("data\n\ndata\ndata\n\n"), messages(["", "\n"]));
}

#[test]
fn cr_lf_and_crlf_end_lines() {
    for ending in ["\r", "\n", "\r\n"] {
        let stream = ["data: a", "data: b", "", "data: c", "", ""].join(ending);
        assert_eq!(read(&stream), messages(["a\nb", "c"]), "{ending:?}");
    }
    assert_eq!(read("data: a\r\n\ndata: b\n\r\n"), messages(["a", "b"]));
}

#[test]
fn a_cr_completes_an_event_at_once() {
    assert_eq!(read("data: a\r\r"), messages(["a"]));
}

#[test]
fn one_byte_order_mark_is_ignored() {
    assert_eq!(read("\u{feff}data: a\n\n"), messages(["a"]));
    assert_eq!(read("\u{feff}\u{feff}data: a\n\n"), []);
    assert_eq!(read("data: a\n\n\u{feff}data: b\n\n"), messages(["a"]));
}

/// HTTP26-14.
#[test]
fn comments_and_unknown_fields_are_ignored() {
    assert_eq!(
        read(": ping\n\n:\n\nother: 1\ndata : x\n\ndata: a\n: b\n\n"),
        messages(["a"])
    );
}

#[test]
fn an_event_without_data_counts_if_it_has_an_id_or_a_retry() {
    let priming = Event {
        id: Some("s-0".into()),
        ..Event::default()
    };
    assert_eq!(read("id: s-0\ndata:\n\n"), [Ok(priming.clone())]);
    assert_eq!(read("id: s-0\n\n"), [Ok(priming)]);
    let retry = Event {
        retry: Some(10),
        ..Event::default()
    };
    assert_eq!(read("retry: 10\n\n"), [Ok(retry)]);
    assert_eq!(read("event: endpoint\n\n"), []);
}

#[test]
fn fields_do_not_leak_into_the_next_event() {
    let items = read("event: x\n\nid: 1\nretry: 2\ndata: a\n\ndata: b\n\n");
    assert_eq!(items.len(), 2);
    assert_eq!(items[1..], messages(["b"]));
}

#[test]
fn bad_ids_and_retries_are_ignored() {
    assert_eq!(read("id: a\0b\ndata: x\n\n"), messages(["x"]));
    for retry in ["", "-1", "+1", "1.5", "1 ", "x", "99999999999999999999999"] {
        assert_eq!(
            read(&format!("retry:{retry}\ndata: x\n\n")),
            messages(["x"]),
            "{retry:?}"
        );
    }
}

#[test]
fn an_event_cut_off_by_the_end_is_dropped() {
    assert_eq!(read("data: a\n\ndata: b\n"), messages(["a"]));
}

#[test]
fn an_event_over_the_limit_is_told_once_and_the_next_is_intact() {
    for (long, size) in [
        ("data: abcde\n", 5),
        ("data: ab\ndata: cd\n", 5),
        ("data: abcdefgh\nid: 1\ndata: x\n", 8 + 5 + 2),
        ("data: ab\n: a long comment\ndata\n", 2 + 16 + 1),
    ] {
        let too_long = Err(TooLong {
            limit: 4,
            size,
            envelopes: Vec::new(),
        });
        let stream = format!("{long}\ndata: abcd\n\n");
        let expected = [vec![too_long], messages(["abcd"]).into()].concat();
        assert_eq!(events(4, [stream.as_bytes()]), expected, "{long:?}");
    }
}

#[test]
fn an_event_over_the_limit_tells_its_ids_wherever_it_is_cut() {
    let long = "x".repeat(20);
    for stream in [
        format!("data: {{\"result\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":5}}\n\n"),
        format!(
            "data:{{\ndata:\"result\":\ndata\ndata: \"{long}\",\"jsonrpc\":\"2.0\",\rdata: \"id\":5}}\n\n"
        ),
        format!(
            "id: {{}}\ndata: {{\"jsonrpc\":\"2.0\",\nretry: 1\n: {long}\ndata: \"id\":5,\ndata: \"result\":1}}\n\n"
        ),
    ] {
        let expected = events(24, [stream.as_bytes()]);
        let [Err(TooLong { envelopes, .. })] = &expected[..] else {
            panic!("{expected:?}");
        };
        assert_eq!(*envelopes, [SkimmedEnvelope::Response(5_i64.into())]);
        for at in 0..=stream.len() {
            let (one, two) = stream.as_bytes().split_at(at);
            assert_eq!(events(24, [one, two]), expected, "{stream} cut at {at}");
        }
        assert_eq!(events(24, stream.as_bytes().chunks(1)), expected);
    }
}

#[test]
fn a_long_line_without_ending_is_not_buffered_beyond_the_limit() {
    let mut decoder = Decoder::new(1000);
    decoder.feed(b"data: ");
    for _ in 0..1000 {
        decoder.feed(&[b'x'; 1000]);
        assert_eq!(decoder.next(), None);
        assert!(decoder.buffered() <= 1000 + "data: ".len());
    }
    decoder.feed(b"\n\ndata: a\n\n");
    let Some(Err(TooLong { size, .. })) = decoder.next() else {
        panic!("the event is too long");
    };
    assert_eq!(size, 1_000_000);
    assert_eq!(decoder.next().as_slice(), messages(["a"]));
}

/// Searching the line from its start each time would take minutes.
#[test]
fn a_long_event_may_arrive_byte_by_byte() {
    let size = 4 * 1024 * 1024;
    let mut stream = BytesMut::new();
    encode(
        &mut stream,
        &Frame {
            data: Some(&vec![b'x'; size]),
            ..Frame::default()
        },
    );
    let found = events(size, stream.chunks(1));
    assert!(matches!(&found[..], [Ok(event)] if event.data.len() == size));
}

#[test]
fn every_cut_in_two_gives_the_same_events() {
    let stream = "\u{feff}: hi\r\ndata: a\r\n\r\nid: 1\rdata: b\r\rdata: abcdefghijklmnopq\n\
                  data: x\n\n\r\nevent: e\ndata:\ndata: 12345678\n\nretry: 5\n\ndata: é\n\n";
    let expected = events(8, [stream.as_bytes()]);
    assert_eq!(expected.iter().filter(|item| item.is_err()).count(), 2);
    for at in 0..=stream.len() {
        let (one, two) = stream.as_bytes().split_at(at);
        assert_eq!(events(8, [one, two]), expected, "cut at {at}");
    }
    assert_eq!(events(8, stream.as_bytes().chunks(1)), expected);
}

#[test]
fn frames_are_written_field_by_field() {
    let frame = Frame {
        id: Some("s-1"),
        event: Some("message"),
        retry: Some(5),
        data: Some(b"{}"),
    };
    assert_eq!(
        written(&frame),
        "event: message\nid: s-1\nretry: 5\ndata: {}\n\n"
    );
    let priming = Frame {
        id: Some("s-0"),
        data: Some(b""),
        ..Frame::default()
    };
    assert_eq!(written(&priming), "id: s-0\ndata: \n\n");
}

#[test]
fn a_name_cannot_inject_a_field() {
    let frame = Frame {
        id: Some("1\n\ndata: forged\r\n\0"),
        event: Some("a\rdata: forged"),
        data: Some(b"true"),
        ..Frame::default()
    };
    assert_eq!(
        written(&frame),
        "event: adata: forged\nid: 1data: forged\ndata: true\n\n"
    );
}

#[test]
fn data_cannot_inject_a_field() {
    let frame = Frame {
        data: Some(b"a\n\nid: 1\r\rb\r\nc"),
        ..Frame::default()
    };
    assert_eq!(read(&written(&frame)), messages(["a\n\nid: 1\n\nb\nc"]));
}

/// HTTP26-13.
#[test]
fn comments_are_invisible_to_readers() {
    let mut out = BytesMut::new();
    encode_comment(&mut out, "keep\nalive\r\ndata: x");
    assert_eq!(out, ": keep\n: alive\n: data: x\n\n");
    out.extend_from_slice(b"data: a\n\n");
    assert_eq!(events(100, [&out[..]]), messages(["a"]));
}

/// Pieces of any length, made of the parts that matter.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = proptest::sample::select(vec![
        &b"data: "[..],
        b"data",
        b"id:",
        b"event:",
        b"retry: 7",
        b":",
        b"\r",
        b"\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\0",
        b"abc",
    ]);
    let piece = prop_oneof![
        4 => part.prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24)
}

/// The same stream with LF for CRLF and CR.
fn with_lf_only(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\r' if stream.get(at + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            other => out.push(*other),
        }
    }
    out
}

/// A name as it can be written: not empty, without line breaks and NUL.
fn name() -> impl Strategy<Value = String> {
    "[^\r\n\0]{1,8}"
}

proptest! {
    #[test]
    fn every_cut_gives_the_same_events(pieces in pieces(), max_event in 0..16_usize) {
        let whole = pieces.concat();
        let expected = events(max_event, [&whole[..]]);
        prop_assert_eq!(&events(max_event, pieces.iter().map(Vec::as_slice)), &expected);
        prop_assert_eq!(&events(max_event, whole.chunks(1)), &expected);
    }

    #[test]
    fn every_line_ending_means_the_same(pieces in pieces(), max_event in 0..16_usize) {
        let whole = pieces.concat();
        let expected = events(max_event, [&whole[..]]);
        prop_assert_eq!(events(max_event, [&with_lf_only(&whole)[..]]), expected);
    }

    #[test]
    fn frames_read_back(
        id in proptest::option::of(name()),
        event in proptest::option::of(name()),
        retry in proptest::option::of(any::<u64>()),
        data in "[^\r]{0,40}",
    ) {
        let mut out = BytesMut::new();
        let frame = Frame {
            id: id.as_deref(),
            event: event.as_deref(),
            retry,
            data: Some(data.as_bytes()),
        };
        encode(&mut out, &frame);
        encode(&mut out, &frame);
        let expected = Event {
            event: event.as_deref().map(Into::into),
            id: id.as_deref().map(Into::into),
            retry,
            data: data.into(),
        };
        prop_assert_eq!(events(1000, [&out[..]]), [Ok(expected.clone()), Ok(expected)]);
    }
}
