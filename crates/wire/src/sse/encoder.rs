use bytes::{BufMut, BytesMut};
use memchr::memchr2;

/// One event to write; absent fields are not written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event id, from which a client may resume.
    pub id: Option<&'a str>,
    /// The type of the event; absent means `message`.
    pub event: Option<&'a str>,
    /// How long a client waits before it reconnects, in milliseconds.
    pub retry: Option<u64>,
    /// The payload. All its line breaks are received as LF.
    pub data: Option<&'a [u8]>,
}

/// Appends one event.
///
/// Line breaks and NUL are removed from `id` and `event`, so that neither can inject a field or an
/// event.
pub fn encode(out: &mut BytesMut, frame: &Frame<'_>) {
    const FIXED_BYTES: usize = 64;
    out.reserve(frame.data.map_or(0, <[u8]>::len) + FIXED_BYTES);
    if let Some(event) = frame.event {
        write_name(out, b"event: ", event);
    }
    if let Some(id) = frame.id {
        write_name(out, b"id: ", id);
    }
    if let Some(retry) = frame.retry {
        write_line(out, b"retry: ", retry.to_string().as_bytes());
    }
    if let Some(data) = frame.data {
        write_lines(out, b"data: ", data);
    }
    out.put_u8(b'\n');
}

/// Appends a comment, a heartbeat that clients ignore.
pub fn encode_comment(out: &mut BytesMut, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.put_u8(b'\n');
}

fn write_name(out: &mut BytesMut, field: &[u8], value: &str) {
    out.extend_from_slice(field);
    for part in value.split(['\r', '\n', '\0']) {
        out.extend_from_slice(part.as_bytes());
    }
    out.put_u8(b'\n');
}

/// Writes one field for each line of the value: CR, LF and CRLF all end a line.
fn write_lines(out: &mut BytesMut, field: &[u8], value: &[u8]) {
    let mut rest = value;
    while let Some(at) = memchr2(b'\r', b'\n', rest) {
        let (line, ending) = rest.split_at(at);
        write_line(out, field, line);
        let after_cr = ending.strip_prefix(b"\r").unwrap_or(ending);
        rest = after_cr.strip_prefix(b"\n").unwrap_or(after_cr);
    }
    write_line(out, field, rest);
}

fn write_line(out: &mut BytesMut, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    out.extend_from_slice(value);
    out.put_u8(b'\n');
}
