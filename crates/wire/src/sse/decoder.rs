use std::mem;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The type, if it has one; none means `message`.
    pub event: Option<Box<str>>,
    /// Where a client may resume, if this event says so. An empty one says: nowhere.
    pub id: Option<Box<str>>,
    /// How long to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
    /// The payload as it arrived, its lines joined by LF. Not checked to be UTF-8.
    pub data: Bytes,
}

/// An event was over the limit and thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event is longer than {limit} bytes")]
pub struct TooLong {
    /// The most that is accepted.
    pub limit: usize,
}

/// Reads an event stream by the algorithm of the HTML standard.
///
/// It differs in one point: a block with an `id` or `retry` but without data is given as an event
/// too, because MCP begins its streams with such a one. A block cut off by the end of the stream
/// is no event.
#[derive(Debug)]
pub struct Decoder {
    max_event: usize,
    input: BytesMut,
    /// How much of the input is known to hold no line ending.
    searched: usize,
    position: Position,
    fields: Fields,
    /// The current event is too long, which has been told: its remaining lines are ignored.
    is_skipping: bool,
}

/// What stood just before the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nothing: a byte order mark may follow.
    StreamStart,
    LineStart,
    /// A CR that ended a line: an LF that follows belongs to it.
    AfterCr,
    /// The beginning of a line that was thrown away.
    MidLine,
}

/// The fields of the event being read.
#[derive(Debug, Default)]
struct Fields {
    event: Option<Box<str>>,
    id: Option<Box<str>>,
    retry: Option<u64>,
    data: Option<BytesMut>,
}

impl Decoder {
    /// A decoder for events with at most `max_event` bytes of data.
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            input: BytesMut::new(),
            searched: 0,
            position: Position::StreamStart,
            fields: Fields::default(),
            is_skipping: false,
        }
    }

    /// Adds input. Call [`Decoder::next`] until it gives nothing before adding more, or what is
    /// kept is not bounded.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.input.extend_from_slice(chunk);
    }

    /// How many bytes are kept: input not read yet and the data of an event not complete yet.
    pub fn buffered(&self) -> usize {
        self.input.len() + self.fields.data.as_ref().map_or(0, BytesMut::len)
    }

    /// The next event; nothing means that more input is needed.
    ///
    /// An event that is too long is told once and thrown away; the one after it is intact.
    #[expect(
        clippy::should_implement_trait,
        reason = "nothing means not yet, where an iterator would mean no more"
    )]
    pub fn next(&mut self) -> Option<Result<Event, TooLong>> {
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                let event = mem::take(&mut self.fields).into_event();
                if mem::take(&mut self.is_skipping) {
                    continue;
                }
                if let Some(event) = event {
                    return Some(Ok(event));
                }
            } else if !self.is_skipping && !self.accepts(line) {
                return Some(Err(self.skip()));
            }
        }
        self.bound_input()
    }

    /// Takes the next whole line off the input, without its ending.
    fn next_line(&mut self) -> Option<BytesMut> {
        loop {
            self.skip_mark_and_line_feed();
            if self.position == Position::StreamStart {
                return None;
            }
            let unsearched = self.input.get(self.searched..).unwrap_or_default();
            let Some(offset) = memchr2(b'\r', b'\n', unsearched) else {
                self.searched = self.input.len();
                return None;
            };
            let line = self.input.split_to(self.searched + offset);
            self.searched = 0;
            let was_begun_earlier = self.position == Position::MidLine;
            self.position = match self.input.get_u8() {
                b'\r' => Position::AfterCr,
                _ => Position::LineStart,
            };
            if !was_begun_earlier {
                return Some(line);
            }
        }
    }

    /// Passes over a byte order mark at the start, and the LF of a CRLF, however they were cut.
    fn skip_mark_and_line_feed(&mut self) {
        match self.position {
            Position::StreamStart => {
                if self.input.starts_with(BYTE_ORDER_MARK) {
                    self.input.advance(BYTE_ORDER_MARK.len());
                } else if BYTE_ORDER_MARK.starts_with(&self.input) {
                    return;
                }
                self.position = Position::LineStart;
            }
            Position::AfterCr if !self.input.is_empty() => {
                if self.input.starts_with(b"\n") {
                    self.input.advance(1);
                }
                self.position = Position::LineStart;
            }
            Position::AfterCr | Position::LineStart | Position::MidLine => {}
        }
    }

    /// Adds a line to the event, or answers that it does not fit.
    fn accepts(&mut self, line: BytesMut) -> bool {
        line.len() <= self.max_line() && self.fields.add(line, self.max_event)
    }

    /// No data that fits has a longer line; other fields and comments are held to the same.
    fn max_line(&self) -> usize {
        self.max_event.saturating_add("data: ".len())
    }

    /// Throws the unfinished line away if it is not wanted or is already too long.
    fn bound_input(&mut self) -> Option<Result<Event, TooLong>> {
        let is_too_long = self.input.len() > self.max_line();
        if self.input.is_empty() || !(self.is_skipping || is_too_long) {
            return None;
        }
        self.input.clear();
        self.searched = 0;
        self.position = Position::MidLine;
        (!self.is_skipping).then(|| Err(self.skip()))
    }

    fn skip(&mut self) -> TooLong {
        self.is_skipping = true;
        self.fields = Fields::default();
        TooLong {
            limit: self.max_event,
        }
    }
}

impl Fields {
    /// Adds a line that is not blank; false if the data would be longer than allowed.
    fn add(&mut self, mut line: BytesMut, max_data: usize) -> bool {
        let name_len = memchr(b':', &line).unwrap_or(line.len());
        let mut value = line.split_off(name_len);
        value.advance(if value.starts_with(b": ") {
            2
        } else {
            value.len().min(1)
        });
        let name = line;
        match &*name {
            b"data" => return self.add_data(value, max_data),
            b"event" => self.event = Some(text(&value)).filter(|event| !event.is_empty()),
            b"id" if !value.contains(&b'\0') => self.id = Some(text(&value)),
            b"retry" => self.retry = digits(&value).or(self.retry),
            // A comment has an empty name. Unknown fields are for readers yet to come.
            _ => {}
        }
        true
    }

    fn add_data(&mut self, value: BytesMut, max_data: usize) -> bool {
        let Some(data) = &mut self.data else {
            let fits = value.len() <= max_data;
            self.data = Some(value);
            return fits;
        };
        let fits = data.len() + 1 + value.len() <= max_data;
        if fits {
            data.put_u8(b'\n');
            data.extend_from_slice(&value);
        }
        fits
    }

    fn into_event(self) -> Option<Event> {
        let is_event = self.data.is_some() || self.id.is_some() || self.retry.is_some();
        is_event.then(|| Event {
            event: self.event,
            id: self.id,
            retry: self.retry,
            data: self.data.unwrap_or_default().freeze(),
        })
    }
}

fn text(value: &[u8]) -> Box<str> {
    String::from_utf8_lossy(value).into()
}

/// A number written in ASCII digits and nothing else.
fn digits(value: &[u8]) -> Option<u64> {
    let is_digits = value.iter().all(u8::is_ascii_digit);
    is_digits.then(|| str::from_utf8(value).ok()?.parse().ok())?
}
