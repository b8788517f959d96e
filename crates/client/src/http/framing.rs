//! Where the body of an answer ends.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Version};

use super::head::{Head, MAX_HEAD};

/// The longest line with the length of a chunk, extensions included.
const MAX_LINE: usize = 1024;

/// How a body is laid out in what is read, and how far it has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    /// It ends with the connection.
    UntilClose,
    /// The line with the length of a chunk is next.
    ChunkLine,
    /// So many bytes of a chunk are still to come, at least one.
    Chunk(u64),
    /// The end of the line that a chunk stands on is next.
    ChunkEnd,
    /// Fields after the last chunk, which say nothing to us; so many bytes of them were read.
    Trailers(usize),
    /// All of it was taken.
    Done,
}

/// An answer that is not laid out as HTTP wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misframed {
    #[error("the answer does not make clear how long it is")]
    Length,
    #[error("the answer is not cut into chunks as it should be")]
    Chunk,
    #[error("the connection was closed within an answer")]
    Truncated,
}

impl Framing {
    /// The framing that a head tells of (RFC 9112, section 6.3).
    pub(super) fn of(head: &Head) -> Result<Self, Misframed> {
        let has_none = matches!(
            head.status,
            StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        if has_none {
            return Ok(Self::Done);
        }
        let headers = &head.headers;
        if let Some(coding) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            let last = coding.as_bytes().rsplit(|byte| *byte == b',').next();
            let is_chunked = last.is_some_and(|last| {
                let last = last.trim_ascii();
                last.eq_ignore_ascii_case(b"chunked")
            });
            return Ok(if is_chunked {
                Self::ChunkLine
            } else {
                Self::UntilClose
            });
        }
        Ok(match content_length(headers)? {
            Some(0) => Self::Done,
            Some(length) => Self::Length(length),
            None => Self::UntilClose,
        })
    }

    /// The next part of the body that is in `unread`; none if more has to be read, or nothing is
    /// left to be.
    pub(super) fn take(&mut self, unread: &mut BytesMut) -> Result<Option<Bytes>, Misframed> {
        self.skip(unread)?;
        if unread.is_empty() {
            return Ok(None);
        }
        let left = match *self {
            Self::Length(left) | Self::Chunk(left) => left,
            Self::UntilClose => u64::MAX,
            _ => return Ok(None),
        };
        let taken = usize::try_from(left).map_or(unread.len(), |left| left.min(unread.len()));
        let part = unread.split_to(taken).freeze();
        let left = left - taken as u64;
        *self = match *self {
            Self::UntilClose => Self::UntilClose,
            Self::Chunk(_) if left == 0 => Self::ChunkEnd,
            Self::Chunk(_) => Self::Chunk(left),
            _ if left == 0 => Self::Done,
            _ => Self::Length(left),
        };
        // Whoever has the last part is to know that it is the last.
        self.skip(unread)?;
        Ok(Some(part))
    }

    /// The connection was closed.
    pub(super) fn close(&mut self) -> Result<(), Misframed> {
        match self {
            Self::UntilClose | Self::Done => {
                *self = Self::Done;
                Ok(())
            }
            _ => Err(Misframed::Truncated),
        }
    }

    /// How much is to come at least.
    pub(super) fn at_least(&self) -> u64 {
        match self {
            Self::Length(left) | Self::Chunk(left) => *left,
            _ => 0,
        }
    }

    /// Goes past what stands between the parts of a body, as far as it was read.
    fn skip(&mut self, unread: &mut BytesMut) -> Result<(), Misframed> {
        loop {
            *self = match *self {
                Self::ChunkEnd => match unread.get(..2) {
                    Some(b"\r\n") => {
                        unread.advance(2);
                        Self::ChunkLine
                    }
                    Some(_) => return Err(Misframed::Chunk),
                    None => return Ok(()),
                },
                Self::ChunkLine => match line(unread, MAX_LINE)? {
                    Some(line) => match chunk_length(&line)? {
                        0 => Self::Trailers(0),
                        length => Self::Chunk(length),
                    },
                    None => return Ok(()),
                },
                Self::Trailers(read) => match line(unread, MAX_HEAD.saturating_sub(read))? {
                    Some(line) if line.is_empty() => Self::Done,
                    Some(line) => Self::Trailers(read + line.len() + 2),
                    None => return Ok(()),
                },
                Self::Length(_) | Self::UntilClose | Self::Chunk(_) | Self::Done => return Ok(()),
            };
        }
    }
}

/// Whether the connection may be used again after an answer with this head.
pub(super) fn is_kept(head: &Head) -> bool {
    let says = |wanted: &str| {
        let values = head.headers.get_all(CONNECTION).iter();
        let mut options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    // Two lengths for one answer: what others make of it may not be what we do.
    let is_ambiguous =
        head.headers.contains_key(TRANSFER_ENCODING) && head.headers.contains_key(CONTENT_LENGTH);
    let keeps = match head.version {
        Version::HTTP_10 => says("keep-alive"),
        _ => true,
    };
    keeps && !says("close") && !is_ambiguous && head.status != StatusCode::SWITCHING_PROTOCOLS
}

/// The length that is announced. It may be said several times, if it is the same.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Misframed> {
    let values = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let Some(first) = lengths.next() else {
        return Ok(None);
    };
    let length = number(first.trim_ascii(), 10).ok_or(Misframed::Length)?;
    for other in lengths {
        if number(other.trim_ascii(), 10) != Some(length) {
            return Err(Misframed::Length);
        }
    }
    Ok(Some(length))
}

fn chunk_length(line: &[u8]) -> Result<u64, Misframed> {
    let length = line.split(|byte| *byte == b';').next().unwrap_or_default();
    number(length.trim_ascii_end(), 16).ok_or(Misframed::Chunk)
}

/// A number without a sign.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    let is_plain = digits.starts_with(|first: char| first.is_digit(radix));
    is_plain
        .then(|| u64::from_str_radix(digits, radix).ok())
        .flatten()
}

/// The next line, without its end, if it is there.
fn line(unread: &mut BytesMut, longest: usize) -> Result<Option<BytesMut>, Misframed> {
    let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
        let is_too_long = unread.len() > longest;
        return (!is_too_long).then_some(None).ok_or(Misframed::Chunk);
    };
    if end > longest {
        return Err(Misframed::Chunk);
    }
    let mut line = unread.split_to(end + 1);
    match line.strip_suffix(b"\r\n") {
        Some(text) => line.truncate(text.len()),
        None => return Err(Misframed::Chunk),
    }
    Ok(Some(line))
}
