//! An incremental parser for HTTP responses: of known length, chunked, or an event stream.

use std::str;

use anyhow::{Context as _, bail, ensure};
use memchr::{memchr, memmem, memrchr2};

/// A response that is being received. Each connection has its own: a shared one would save memory,
/// not time.
#[derive(Debug, Default)]
pub(crate) struct HttpResponse {
    /// The received bytes of the head, until it is complete.
    beginning: Vec<u8>,
    head: Option<Head>,
    body: Body,
    /// The parser state of a chunked body.
    chunk_state: ChunkState,
    /// Whether only the ends of a long body need to be kept.
    may_keep_ends: bool,
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Length,
    session: Option<String>,
    is_stream: bool,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    Known(usize),
    Chunked,
}

/// A body that is kept whole, or of which only both ends are kept.
#[derive(Debug, Default)]
struct Body {
    /// The whole body, or its first bytes.
    start: Vec<u8>,
    /// The last bytes, if `start` is not the whole body.
    end: Vec<u8>,
    length: usize,
    keeps_ends_only: bool,
}

/// How many bytes of each end are kept, of a body that is not kept whole.
const MAX_END_BYTES: usize = 512;

/// Both ends and the length of a body that was not kept whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyEnds<'a> {
    pub(crate) start: &'a [u8],
    pub(crate) end: &'a [u8],
    pub(crate) length: usize,
}

/// The state of the parser of a chunked body: the part that comes next.
#[derive(Debug)]
enum ChunkState {
    /// The line with the size of a chunk; the bytes received so far.
    Size(Vec<u8>),
    /// This many bytes of a chunk.
    Chunk(usize),
    /// This many bytes of the line break after a chunk.
    Break { left: usize, is_last: bool },
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size(Vec::new())
    }
}

impl HttpResponse {
    /// Prepares for the next response, and reuses the buffers. With `may_keep_ends`, only both ends
    /// of a long body are kept, unless it is an event stream.
    pub(crate) fn clear(&mut self, may_keep_ends: bool) {
        self.beginning.clear();
        self.head = None;
        self.body.clear();
        self.chunk_state = ChunkState::default();
        self.may_keep_ends = may_keep_ends;
    }

    /// Parses the next bytes; returns whether the response is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        if self.head.is_some() {
            return self.feed_body(bytes);
        }
        let before = self.beginning.len();
        self.beginning.extend_from_slice(bytes);
        let Some(end) = memmem::find(&self.beginning, b"\r\n\r\n") else {
            return Ok(false);
        };
        let head = Head::read(self.beginning.get(..end).unwrap_or_default())?;
        self.body.keeps_ends_only = self.may_keep_ends && !head.is_stream;
        self.head = Some(head);
        let body = (end + 4).saturating_sub(before);
        self.feed_body(bytes.get(body..).unwrap_or_default())
    }

    /// Whether the head is complete.
    pub(crate) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.head.as_ref()?.session.as_deref()
    }

    /// Whether the body is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.is_stream)
    }

    /// The body, or its first bytes if it was not kept whole.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body.start
    }

    /// Both ends and the length of the body, if it was not kept whole.
    pub(crate) fn ends(&self) -> Option<BodyEnds<'_>> {
        let Body {
            start, end, length, ..
        } = &self.body;
        (*length > start.len()).then_some(BodyEnds {
            start,
            end,
            length: *length,
        })
    }

    /// The last message of the body: the whole body, or the data of the last event that has data.
    pub(crate) fn message(&self) -> &[u8] {
        let body = self.body();
        if !self.is_stream() {
            return body;
        }
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let mut rest = body;
        while !rest.is_empty() {
            let end = rest.iter().rposition(|byte| !is_break(byte));
            rest = end.and_then(|end| rest.get(..=end)).unwrap_or_default();
            let start = memrchr2(b'\r', b'\n', rest).map_or(0, |at| at + 1);
            let (before, line) = rest.split_at(start);
            if let Some(data) = line.strip_prefix(b"data:") {
                return data.trim_ascii_start();
            }
            rest = before;
        }
        &[]
    }

    fn feed_body(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        match self.head.as_ref().map(|head| head.length) {
            Some(Length::Known(length)) => {
                self.body.push(bytes);
                Ok(self.body.length >= length)
            }
            Some(Length::Chunked) => self.feed_chunks(bytes),
            None => Ok(false),
        }
    }

    fn feed_chunks(&mut self, mut bytes: &[u8]) -> anyhow::Result<bool> {
        while !bytes.is_empty() {
            let taken = match &mut self.chunk_state {
                ChunkState::Size(line) => {
                    let end = memchr(b'\n', bytes).map(|at| at + 1);
                    let taken = end.unwrap_or(bytes.len());
                    line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                    if end.is_some() {
                        self.chunk_state = match chunk_size(line)? {
                            0 => ChunkState::Break {
                                left: 2,
                                is_last: true,
                            },
                            size => ChunkState::Chunk(size),
                        };
                    }
                    taken
                }
                ChunkState::Chunk(left) => {
                    let taken = bytes.len().min(*left);
                    self.body.push(bytes.get(..taken).unwrap_or_default());
                    *left -= taken;
                    if *left == 0 {
                        self.chunk_state = ChunkState::Break {
                            left: 2,
                            is_last: false,
                        };
                    }
                    taken
                }
                ChunkState::Break { left, is_last } => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        if *is_last {
                            return Ok(true);
                        }
                        self.chunk_state = ChunkState::default();
                    }
                    taken
                }
            };
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(false)
    }
}

fn chunk_size(line: &[u8]) -> anyhow::Result<usize> {
    let line = str::from_utf8(line)?;
    let size = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(size, 16).context("no size of a chunk")
}

impl Body {
    fn clear(&mut self) {
        self.start.clear();
        self.end.clear();
        self.length = 0;
        self.keeps_ends_only = false;
    }

    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        if !self.keeps_ends_only {
            self.start.extend_from_slice(bytes);
            return;
        }
        let room = MAX_END_BYTES
            .saturating_sub(self.start.len())
            .min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.start.extend_from_slice(first);
        let last = rest.get(rest.len().saturating_sub(MAX_END_BYTES)..);
        self.end.extend_from_slice(last.unwrap_or_default());
        let surplus = self.end.len().saturating_sub(MAX_END_BYTES);
        self.end.drain(..surplus);
    }
}

impl Head {
    fn read(head: &[u8]) -> anyhow::Result<Self> {
        let head = str::from_utf8(head).context("the head of a response is no text")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        let mut read = Self {
            status: status.context("no status line")?,
            length: Length::Known(0),
            session: None,
            is_stream: false,
        };
        let mut has_length = matches!(read.status, 202 | 204 | 304);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                bail!("no header: {line}");
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                read.length = Length::Known(value.parse()?);
                has_length = true;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                read.length = Length::Chunked;
                has_length = true;
            } else if name.eq_ignore_ascii_case("content-type") {
                read.is_stream = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                read.session = Some(value.to_owned());
            }
        }
        ensure!(has_length, "a response without a length: {head}");
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `text` byte by byte; the response is complete after its last byte and not before.
    fn read(text: &str) -> HttpResponse {
        let mut response = HttpResponse::default();
        let (last, others) = text.as_bytes().split_last().unwrap();
        for byte in others {
            assert!(!response.feed(&[*byte]).unwrap(), "{text}");
        }
        assert!(response.feed(&[*last]).unwrap(), "{text}");
        response
    }

    #[test]
    fn a_body_of_known_length() {
        let response = read("HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(response.status(), 200);
        assert_eq!(response.session(), Some("s1"));
        assert_eq!(response.message(), b"{}");
    }

    #[test]
    fn a_body_in_chunks() {
        let response = read(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        );
        assert_eq!(response.body(), b"abc0123456789");
    }

    #[test]
    fn of_a_long_body_both_ends_are_kept_if_that_is_enough() {
        let text: String = ('a'..='z').cycle().take(5000).collect();
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{text}");
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nBB8\r\n{}\r\n7D0\r\n{}\r\n0\r\n\r\n",
            text.get(..3000).unwrap(),
            text.get(3000..).unwrap()
        );
        for answered in [whole, chunked] {
            for step in [1, 7, 600, 10_000] {
                let mut response = HttpResponse::default();
                response.clear(true);
                let mut complete = false;
                for bytes in answered.as_bytes().chunks(step) {
                    assert!(!complete, "{step}");
                    complete = response.feed(bytes).unwrap();
                }
                assert!(complete, "{step}");
                let ends = response.ends().unwrap();
                assert_eq!(ends.length, 5000);
                assert_eq!(ends.start, &text.as_bytes()[..MAX_END_BYTES]);
                assert_eq!(ends.end, &text.as_bytes()[5000 - MAX_END_BYTES..]);
            }
        }
    }

    #[test]
    fn the_last_event_of_a_stream_is_the_message() {
        let events = ": data: 0\n\nid: 1\r\ndata: {\"a\":1}\r\n\r\ndata:{\"b\":2}\nid: 2\n\n";
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{events}",
            events.len()
        );
        assert_eq!(read(&text).message(), br#"{"b":2}"#);
    }

    #[test]
    fn an_answer_is_forgotten_for_the_next_one() {
        let mut response = read("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
        response.clear(false);
        assert!(!response.has_head());
        assert!(response.feed(b"HTTP/1.1 202 Accepted\r\n\r\n").unwrap());
        assert_eq!((response.status(), response.body()), (202, &b""[..]));
    }

    #[test]
    fn an_answer_that_does_not_say_where_it_ends_is_an_error() {
        let mut response = HttpResponse::default();
        assert!(response.feed(b"HTTP/1.1 200 OK\r\n\r\nx").is_err());
    }
}
