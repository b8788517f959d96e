//! An HTTP answer, read from bytes as they come: of known length, in chunks, or an event stream.

use std::str;

use anyhow::{Context as _, bail, ensure};
use memchr::{memmem, memrchr2};

/// What the generator reads into; the same for all connections would save memory, not time.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    buffer: Vec<u8>,
    head: Option<Head>,
    /// The body as far as chunks have been taken out of the buffer.
    unchunked: Vec<u8>,
    /// Where the next chunk begins in the buffer.
    next_chunk: usize,
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Length,
    /// Where the body begins.
    body: usize,
    session: Option<String>,
    is_stream: bool,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    Known(usize),
    Chunked,
}

impl Answer {
    /// Forgets the last answer, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.unchunked.clear();
        self.head = None;
        self.next_chunk = 0;
    }

    /// Takes what came, and says whether the answer is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        self.buffer.extend_from_slice(bytes);
        if self.head.is_none() {
            let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") else {
                return Ok(false);
            };
            let head = self.buffer.get(..end).unwrap_or_default();
            self.head = Some(Head::read(head, end + 4)?);
            self.next_chunk = end + 4;
        }
        match self.head.as_ref().map(|head| (head.body, head.length)) {
            Some((body, Length::Known(length))) => Ok(self.buffer.len() >= body + length),
            Some((_, Length::Chunked)) => self.take_chunks(),
            None => Ok(false),
        }
    }

    /// Whether the head has come.
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

    pub(crate) fn body(&self) -> &[u8] {
        match &self.head {
            Some(Head {
                length: Length::Known(length),
                body,
                ..
            }) => self.buffer.get(*body..body + length).unwrap_or_default(),
            _ => &self.unchunked,
        }
    }

    /// The last message of the body: all of it, or the data of the last event that has any.
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

    fn take_chunks(&mut self) -> anyhow::Result<bool> {
        loop {
            let rest = self.buffer.get(self.next_chunk..).unwrap_or_default();
            let Some(line) = memmem::find(rest, b"\r\n") else {
                return Ok(false);
            };
            let size = str::from_utf8(rest.get(..line).unwrap_or_default())?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).context("no size of a chunk")?;
            let end = line + 2 + size + 2;
            if rest.len() < end {
                return Ok(false);
            }
            let chunk = rest.get(line + 2..line + 2 + size).unwrap_or_default();
            self.unchunked.extend_from_slice(chunk);
            self.next_chunk += end;
            if size == 0 {
                return Ok(true);
            }
        }
    }
}

impl Head {
    fn read(head: &[u8], body: usize) -> anyhow::Result<Self> {
        let head = str::from_utf8(head).context("the head of an answer is no text")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        let mut read = Self {
            status: status.context("no status line")?,
            length: Length::Known(0),
            body,
            session: None,
            is_stream: false,
        };
        let mut says_length = matches!(read.status, 202 | 204 | 304);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                bail!("no header: {line}");
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                read.length = Length::Known(value.parse()?);
                says_length = true;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                read.length = Length::Chunked;
                says_length = true;
            } else if name.eq_ignore_ascii_case("content-type") {
                read.is_stream = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                read.session = Some(value.to_owned());
            }
        }
        ensure!(says_length, "an answer without end: {head}");
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fed byte by byte, an answer is complete with its last byte and not before.
    fn read(text: &str) -> Answer {
        let mut answer = Answer::default();
        let (last, others) = text.as_bytes().split_last().unwrap();
        for byte in others {
            assert!(!answer.feed(&[*byte]).unwrap(), "{text}");
        }
        assert!(answer.feed(&[*last]).unwrap(), "{text}");
        answer
    }

    #[test]
    fn a_body_of_known_length() {
        let answer = read("HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.session(), Some("s1"));
        assert_eq!(answer.message(), b"{}");
    }

    #[test]
    fn a_body_in_chunks() {
        let answer = read(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        );
        assert_eq!(answer.body(), b"abc0123456789");
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
        let mut answer = read("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
        answer.clear();
        assert!(!answer.has_head());
        assert!(answer.feed(b"HTTP/1.1 202 Accepted\r\n\r\n").unwrap());
        assert_eq!((answer.status(), answer.body()), (202, &b""[..]));
    }

    #[test]
    fn an_answer_that_does_not_say_where_it_ends_is_an_error() {
        let mut answer = Answer::default();
        assert!(answer.feed(b"HTTP/1.1 200 OK\r\n\r\nx").is_err());
    }
}
