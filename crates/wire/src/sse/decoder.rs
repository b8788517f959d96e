use std::mem;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use crate::skim::{EnvelopeSkimmer, SkimmedEnvelope};

/// The usual prefix of a data line.
const DATA_PREFIX: &str = "data: ";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One decoded event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The event type; `None` means `message`.
    pub event: Option<Box<str>>,
    /// The event id, from which a client may resume. An empty id resets it.
    pub id: Option<Box<str>>,
    /// How long to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
    /// The payload, its lines joined by LF. Not validated as UTF-8.
    pub data: Bytes,
}

/// An event over the limit was discarded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit.
    pub limit: usize,
    /// The size of the event, in bytes: of its data and of the lines that were ignored.
    pub size: u64,
    /// The requests and responses in its data, as far as their ids could be read.
    pub envelopes: Vec<SkimmedEnvelope>,
}

/// Decodes an event stream with the algorithm of the HTML standard.
///
/// One difference: a block with an `id` or `retry` but without data is an event too, because MCP
/// begins its streams with such a block. A block cut off by the end of the stream is not an event.
#[derive(Debug)]
pub struct Decoder {
    max_event: usize,
    input: BytesMut,
    /// The length of the prefix of the input without a line ending.
    searched: usize,
    position: StreamPosition,
    fields: Fields,
    /// Set while the current event is too long: its lines are discarded until it ends.
    skipped: Option<Box<Skipped>>,
}

/// The part so far of an event that is too long.
#[derive(Debug, Default)]
struct Skipped {
    size: u64,
    skimmer: EnvelopeSkimmer,
    has_data: bool,
    /// Whether the line whose beginning was discarded is a data line.
    is_data_line: bool,
}

/// The position of the input in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPosition {
    /// Nothing: a byte order mark may follow.
    StreamStart,
    LineStart,
    /// A CR that ended a line: an LF that follows belongs to it.
    AfterCr,
    /// The discarded beginning of a line.
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
            position: StreamPosition::StreamStart,
            fields: Fields::default(),
            skipped: None,
        }
    }

    /// Adds input. Call [`Decoder::next`] until it returns `None` before adding more, or the
    /// buffer is not bounded.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.input.extend_from_slice(chunk);
    }

    /// The number of buffered bytes: unread input and the data of an incomplete event.
    pub fn buffered(&self) -> usize {
        self.input.len() + self.fields.data.as_ref().map_or(0, BytesMut::len)
    }

    /// The next event; `None` means that more input is needed.
    ///
    /// An event that is too long is discarded while it arrives, and reported once, when it has
    /// ended. The event after it is intact.
    #[expect(
        clippy::should_implement_trait,
        reason = "nothing means not yet, where an iterator would mean no more"
    )]
    pub fn next(&mut self) -> Option<Result<Event, TooLong>> {
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                let fields = mem::take(&mut self.fields);
                if let Some(skipped) = self.skipped.take() {
                    return Some(Err(skipped.into_error(self.max_event)));
                }
                if let Some(event) = fields.into_event() {
                    return Some(Ok(event));
                }
            } else if let Some(skipped) = &mut self.skipped {
                skipped.line(&line);
            } else if line.len() > self.max_line() {
                self.skip().line(&line);
            } else if let Err(data) = self.fields.add(line, self.max_event) {
                self.skip().data(&data);
            }
        }
        self.bound_input();
        None
    }

    /// Takes the next whole line off the input, without its ending.
    fn next_line(&mut self) -> Option<BytesMut> {
        loop {
            self.skip_mark_and_line_feed();
            if self.position == StreamPosition::StreamStart {
                return None;
            }
            let unsearched = self.input.get(self.searched..).unwrap_or_default();
            let Some(offset) = memchr2(b'\r', b'\n', unsearched) else {
                self.searched = self.input.len();
                return None;
            };
            let line = self.input.split_to(self.searched + offset);
            self.searched = 0;
            let was_begun_earlier = self.position == StreamPosition::MidLine;
            self.position = match self.input.get_u8() {
                b'\r' => StreamPosition::AfterCr,
                _ => StreamPosition::LineStart,
            };
            if !was_begun_earlier {
                return Some(line);
            }
            if let Some(skipped) = &mut self.skipped {
                skipped.rest_of_line(&line);
            }
        }
    }

    /// Skips a byte order mark at the start, and the LF of a CRLF, however the input was split.
    fn skip_mark_and_line_feed(&mut self) {
        match self.position {
            StreamPosition::StreamStart => {
                if self.input.starts_with(BYTE_ORDER_MARK) {
                    self.input.advance(BYTE_ORDER_MARK.len());
                } else if BYTE_ORDER_MARK.starts_with(&self.input) {
                    return;
                }
                self.position = StreamPosition::LineStart;
            }
            StreamPosition::AfterCr if !self.input.is_empty() => {
                if self.input.starts_with(b"\n") {
                    self.input.advance(1);
                }
                self.position = StreamPosition::LineStart;
            }
            StreamPosition::AfterCr | StreamPosition::LineStart | StreamPosition::MidLine => {}
        }
    }

    /// The longest line of data within the limit; other fields and comments have the same limit.
    fn max_line(&self) -> usize {
        self.max_event.saturating_add(DATA_PREFIX.len())
    }

    /// Discards the unfinished line if its event is skipped or it is already too long.
    fn bound_input(&mut self) {
        let is_mid_line = self.position == StreamPosition::MidLine;
        // A shorter beginning does not show whether it is a data line.
        let is_known = is_mid_line || self.input.len() >= DATA_PREFIX.len();
        let is_too_long = self.input.len() > self.max_line();
        if self.input.is_empty() || !(is_too_long || (self.skipped.is_some() && is_known)) {
            return;
        }
        let start = mem::take(&mut self.input);
        let skipped = self.skip();
        if is_mid_line {
            skipped.rest_of_line(&start);
        } else {
            skipped.line(&start);
        }
        self.searched = 0;
        self.position = StreamPosition::MidLine;
    }

    /// Discards the current event: the data so far and the rest.
    fn skip(&mut self) -> &mut Skipped {
        let fields = mem::take(&mut self.fields);
        let skipped = self.skipped.get_or_insert_default();
        if let Some(data) = fields.data {
            skipped.data(&data);
        }
        skipped
    }
}

impl Skipped {
    /// Reads a line, or its beginning with at least [`DATA_PREFIX`] bytes of it.
    fn line(&mut self, line: &[u8]) {
        let value = line.strip_prefix(b"data:");
        let value = value.or_else(|| (line == b"data").then_some(&[]));
        self.is_data_line = value.is_some();
        match value {
            Some(value) => self.data(value.strip_prefix(b" ").unwrap_or(value)),
            None => self.size += line.len() as u64,
        }
    }

    /// Reads more of the line whose beginning was read last.
    fn rest_of_line(&mut self, rest: &[u8]) {
        self.size += rest.len() as u64;
        if self.is_data_line {
            self.skimmer.feed(rest);
        }
    }

    /// Reads the data of one line, or its beginning.
    fn data(&mut self, value: &[u8]) {
        if mem::replace(&mut self.has_data, true) {
            self.size += 1;
            self.skimmer.feed(b"\n");
        }
        self.size += value.len() as u64;
        self.skimmer.feed(value);
    }

    fn into_error(self, limit: usize) -> TooLong {
        TooLong {
            limit,
            size: self.size,
            envelopes: self.skimmer.finish(),
        }
    }
}

impl Fields {
    /// Adds a line that is not blank; returns its data as an error if the event would be too long.
    fn add(&mut self, mut line: BytesMut, max_data: usize) -> Result<(), BytesMut> {
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
            // A comment has an empty name. Unknown fields are ignored.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: BytesMut, max_data: usize) -> Result<(), BytesMut> {
        let before = self.data.as_ref().map_or(0, |data| data.len() + 1);
        if before + value.len() > max_data {
            return Err(value);
        }
        match &mut self.data {
            Some(data) => {
                data.put_u8(b'\n');
                data.extend_from_slice(&value);
            }
            none => *none = Some(value),
        }
        Ok(())
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

/// A number of ASCII digits only.
fn digits(value: &[u8]) -> Option<u64> {
    let is_digits = value.iter().all(u8::is_ascii_digit);
    is_digits.then(|| str::from_utf8(value).ok()?.parse().ok())?
}
