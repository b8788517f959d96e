//! The SSE decoder finds the same events however the stream is split and whatever its line endings
//! are, and its buffer is bounded. Encoded events decode to the same events.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use plexus_fuzz::Cuts;
use plexus_mcp_wire::sse::{self, Decoder, Event, Frame, TooLong};

fuzz_target!(|input: &[u8]| {
    let Some(input) = Cuts::read(input) else {
        return;
    };
    let decoded = events(input.limit, [input.stream]);
    assert_eq!(events(input.limit, input.pieces()), decoded);
    assert_eq!(events(input.limit, input.stream.chunks(1)), decoded);
    assert_eq!(
        events(input.limit, [&with_lf_only(input.stream)[..]]),
        decoded
    );

    let mut decoded: Vec<Event> = decoded.into_iter().filter_map(Result::ok).collect();
    let mut written = BytesMut::new();
    sse::encode_comment(&mut written, &String::from_utf8_lossy(input.stream));
    for event in &decoded {
        assert!(event.data.len() <= input.limit);
        sse::encode(&mut written, &frame(event));
    }
    decoded.iter_mut().for_each(drop_nul_from_type);
    let again: Result<Vec<Event>, TooLong> =
        events(written.len(), [&written[..]]).into_iter().collect();
    assert_eq!(again.as_deref(), Ok(&decoded[..]));
});

fn events<'a>(
    max_event: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<Event, TooLong>> {
    let mut decoder = Decoder::new(max_event);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        events.extend(std::iter::from_fn(|| decoder.next()));
        assert!(decoder.buffered() <= 2 * max_event + "data: ".len());
    }
    events
}

/// The stream with each CRLF and CR replaced by LF.
fn with_lf_only(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(stream.len());
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\r' if stream.get(at + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            other => out.push(*other),
        }
    }
    out
}

/// Removes NUL from the type, as the encoder does.
fn drop_nul_from_type(event: &mut Event) {
    let name = event.event.take().map(|name| name.replace('\0', ""));
    event.event = name.filter(|name| !name.is_empty()).map(Into::into);
}

fn frame(event: &Event) -> Frame<'_> {
    Frame {
        id: event.id.as_deref(),
        event: event.event.as_deref(),
        retry: event.retry,
        data: Some(&event.data),
    }
}
