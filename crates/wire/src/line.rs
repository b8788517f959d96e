use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Splits a byte stream into lines, one message each.
///
/// The caller appends what it reads to a buffer and calls [`LineDecoder::next`] until it gives
/// nothing. A line that is too long is thrown away as it streams by, so the buffer stays bounded
/// and the lines after it are intact.
#[derive(Debug)]
pub struct LineDecoder {
    max_line: usize,
    /// How much of the buffer is known to hold no newline, so that a long line which arrives in
    /// small pieces is searched only once.
    searched: usize,
    /// Bytes of the current line already thrown away, if it is too long.
    discarded: Option<u64>,
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
    /// A line over the limit, told once, when it has ended.
    TooLong {
        /// The bytes thrown away: all of the line up to its newline.
        discarded: u64,
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

    /// Takes the next line off the front of the buffer; nothing means that more input is needed.
    ///
    /// LF ends a line, a CR before it belongs to the ending, and blank lines are skipped.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        loop {
            let unsearched = buffer.get(self.searched..).unwrap_or_default();
            let Some(offset) = memchr(b'\n', unsearched) else {
                self.searched = buffer.len();
                if self.discarded.is_some() || self.is_hopeless(buffer) {
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

    /// As [`LineDecoder::next`] once the input has ended: at last gives the line without a newline.
    ///
    /// Nothing means that the input is used up.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        self.next(buffer).or_else(|| {
            let line = buffer.split();
            self.complete(line)
        })
    }

    /// Makes a line of all bytes before a line feed, unless they are blank.
    fn complete(&mut self, mut line: BytesMut) -> Option<Line> {
        self.searched = 0;
        let size = line.len() as u64;
        if let Some(already) = self.discarded.take() {
            return Some(Line::TooLong {
                discarded: already + size,
            });
        }
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.max_line {
            return Some(Line::TooLong { discarded: size });
        }
        (!line.trim_ascii().is_empty()).then(|| Line::Complete(line.freeze()))
    }

    /// Whether a line that begins like this is too long, however it goes on.
    fn is_hopeless(&self, start: &[u8]) -> bool {
        let start = start.strip_suffix(b"\r").unwrap_or(start);
        start.len() > self.max_line
    }

    fn discard(&mut self, buffer: &mut BytesMut) {
        *self.discarded.get_or_insert(0) += buffer.len() as u64;
        buffer.clear();
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests;
