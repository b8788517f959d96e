use bytes::{Bytes, BytesMut};
use memchr::memchr;

use crate::skim::{EnvelopeSkimmer, SkimmedEnvelope, skim};

/// Splits a byte stream into lines, one message each.
///
/// The caller appends its input to a buffer and calls [`LineDecoder::next`] until it gives
/// `None`. A line that is too long is discarded while it arrives, so the buffer stays bounded
/// and the lines after it are intact.
#[derive(Debug)]
pub struct LineDecoder {
    max_line: usize,
    /// The length of the prefix of the buffer without a newline, so that a long line that arrives
    /// in small pieces is searched only once.
    searched: usize,
    /// The discarded part of the current line, if the line is too long.
    discarded: Option<Box<Discarded>>,
}

#[derive(Debug, Default)]
struct Discarded {
    size: u64,
    skimmer: EnvelopeSkimmer,
}

/// One line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a line is within its limit or it is not"
)]
pub enum Line {
    /// A line that is not blank, without its line ending.
    Complete(Bytes),
    /// A line over the limit, reported once, when it has ended.
    TooLong {
        /// The discarded bytes: all of the line up to its newline.
        discarded: u64,
        /// The requests and responses in it, as far as their ids could be read.
        envelopes: Vec<SkimmedEnvelope>,
    },
}

impl LineDecoder {
    /// A decoder for lines of at most `max_line` bytes, line ending not counted.
    pub fn new(max_line: usize) -> Self {
        Self {
            max_line,
            searched: 0,
            discarded: None,
        }
    }

    /// Takes the next line off the front of the buffer; `None` means that more input is needed.
    ///
    /// LF ends a line, a CR before it belongs to the ending, and blank lines are skipped.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        loop {
            let unsearched = buffer.get(self.searched..).unwrap_or_default();
            let Some(offset) = memchr(b'\n', unsearched) else {
                self.searched = buffer.len();
                if self.discarded.is_some() || self.exceeds_limit(buffer) {
                    self.discard(buffer);
                }
                return None;
            };
            let mut line = buffer.split_to(self.searched + offset + 1);
            line.truncate(line.len() - 1);
            if let Some(line) = self.complete(line) {
                return Some(line);
            }
        }
    }

    /// As [`LineDecoder::next`] after the end of the input: also returns the last line without a
    /// newline. `None` means that the input is used up.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        self.next(buffer).or_else(|| {
            let line = buffer.split();
            self.complete(line)
        })
    }

    /// Makes a [`Line`] of the bytes before a line feed, unless they are blank.
    fn complete(&mut self, mut line: BytesMut) -> Option<Line> {
        self.searched = 0;
        let size = line.len() as u64;
        if let Some(mut discarded) = self.discarded.take() {
            discarded.skimmer.feed(&line);
            return Some(Line::TooLong {
                discarded: discarded.size + size,
                envelopes: discarded.skimmer.finish(),
            });
        }
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.max_line {
            return Some(Line::TooLong {
                discarded: size,
                envelopes: skim(&line),
            });
        }
        (!line.trim_ascii().is_empty()).then(|| Line::Complete(line.freeze()))
    }

    /// Whether every line with this beginning is too long.
    fn exceeds_limit(&self, start: &[u8]) -> bool {
        let start = start.strip_suffix(b"\r").unwrap_or(start);
        start.len() > self.max_line
    }

    fn discard(&mut self, buffer: &mut BytesMut) {
        let is_first = self.discarded.is_none();
        let discarded = self.discarded.get_or_insert_default();
        discarded.size += buffer.len() as u64;
        discarded.skimmer.feed(buffer);
        if is_first {
            // The buffer has grown to the limit: free its memory.
            *buffer = BytesMut::new();
        } else {
            buffer.clear();
        }
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests;
