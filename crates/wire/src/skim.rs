//! Finds the id of a JSON-RPC message that is too large to keep.
//!
//! A message above a limit is discarded while it streams by. The request that it answers must fail
//! all the same, so an incremental scanner reads the bytes before they are discarded: it tracks
//! strings, escapes and nesting depth, and keeps the members of the envelope that say which request
//! is concerned. Servers write these members in any order, and many write the id last.

use std::cmp::Ordering;

use memchr::memchr2;

use crate::Id;

/// The longest key or id that is kept, in bytes of JSON text. A longer id counts as unreadable.
const MAX_TOKEN_BYTES: usize = 512;
/// How many messages of one batch are reported; further ones are skipped.
const MAX_ENVELOPES: usize = 1024;

/// A request or response that was found in discarded input.
///
/// Notifications, and messages without a readable id, are not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a message with an id is a request or a response"
)]
pub enum SkimmedEnvelope {
    /// A request: its sender waits for a response with this id.
    Request(Id),
    /// A response to the request with this id.
    Response(Id),
}

/// Reads discarded input piece by piece and reports the envelopes in it. Its memory is bounded
/// and does not depend on the size of the input.
///
/// A message is an object with a member `jsonrpc`, by itself or in a batch. It is a request if it
/// has a member `method`, and a response if it has `result` or `error` instead. An id that is
/// there twice is unreadable, as in [`decode`](crate::decode()).
///
/// The input may be broken or cut off: the messages that were complete up to there are reported.
///
/// ```
/// use plexus_mcp_wire::{EnvelopeSkimmer, SkimmedEnvelope};
///
/// let mut skimmer = EnvelopeSkimmer::default();
/// skimmer.feed(br#"{"result":{"id":1,"text":"..."#);
/// skimmer.feed(br#"..."},"jsonrpc":"2.0","id":5}"#);
/// assert_eq!(skimmer.finish(), [SkimmedEnvelope::Response(5_i64.into())]);
/// ```
#[derive(Debug, Default)]
pub struct EnvelopeSkimmer {
    state: State,
    /// How many arrays and objects are open.
    depth: usize,
    /// The depth of the members of a message: 1, or 2 in a batch.
    message_depth: usize,
    /// The message that is open, if any.
    envelope: Option<PartialEnvelope>,
    /// Which token the next bytes belong to.
    capture: Capture,
    /// The key or id that is being read, quotes included.
    token: Vec<u8>,
    found: Vec<SkimmedEnvelope>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but whitespace has come.
    #[default]
    Start,
    /// Outside of strings.
    Structure,
    /// Inside a string.
    String,
    /// Inside a string, after a backslash.
    Escape,
    /// The value has ended, or the input is no message: the rest is ignored.
    Done,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Capture {
    #[default]
    Nothing,
    Key,
    /// The value of `id`: a string or a scalar.
    Id,
    /// The token is longer than [`MAX_TOKEN_BYTES`].
    Overlong,
}

/// The members of an open message that were read so far.
#[derive(Debug, Default)]
struct PartialEnvelope {
    position: EnvelopePosition,
    /// The last key, if it is one of JSON-RPC.
    key: JsonRpcMember,
    id: SkimmedId,
    has_version: bool,
    has_method: bool,
    has_outcome: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EnvelopePosition {
    #[default]
    Key,
    Value,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum JsonRpcMember {
    #[default]
    Other,
    Version,
    Id,
    Method,
    Outcome,
}

#[derive(Debug, Default)]
enum SkimmedId {
    #[default]
    Absent,
    /// The key came; its value is not complete.
    Unfinished,
    Known(Id),
    /// Repeated, too long, or no id.
    Unreadable,
}

/// The envelopes in a complete input.
pub fn skim(input: &[u8]) -> Vec<SkimmedEnvelope> {
    let mut skimmer = EnvelopeSkimmer::default();
    skimmer.feed(input);
    skimmer.finish()
}

impl EnvelopeSkimmer {
    /// Reads the next piece of the input.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !rest.is_empty() {
            rest = match self.state {
                State::Start => self.start(rest),
                State::Structure => self.structure(rest),
                State::String => self.string(rest),
                State::Escape => {
                    let (escaped, tail) = rest.split_at(1);
                    self.keep(escaped);
                    self.state = State::String;
                    tail
                }
                State::Done => return,
            };
        }
    }

    /// The envelopes of all messages, in their order.
    pub fn finish(mut self) -> Vec<SkimmedEnvelope> {
        self.close_message();
        self.found
    }

    /// Looks for the first byte of the value.
    fn start<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let input = input.trim_ascii_start();
        match input.first() {
            None => {}
            Some(b'{') => {
                self.message_depth = 1;
                self.state = State::Structure;
            }
            Some(b'[') => {
                self.message_depth = 2;
                self.state = State::Structure;
            }
            Some(_) => self.state = State::Done,
        }
        input
    }

    /// Reads up to the next string.
    fn structure<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let mut rest = input;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            match self.depth.cmp(&self.message_depth) {
                Ordering::Less => self.between_messages(byte),
                Ordering::Equal => self.in_message(byte),
                Ordering::Greater => match byte {
                    b'"' => self.state = State::String,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                },
            }
            if self.state != State::Structure {
                break;
            }
        }
        rest
    }

    /// Scans a byte outside of all messages: between the messages of a batch, or before a single
    /// message.
    ///
    /// Any byte that cannot be part of a list of objects ends the scan, because a log line may begin
    /// with a bracket and quote a message.
    fn between_messages(&mut self, byte: u8) {
        match byte {
            b'[' if self.depth == 0 => self.depth = 1,
            b'{' => {
                self.depth += 1;
                self.envelope = Some(PartialEnvelope::default());
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.state = State::Done,
        }
    }

    /// Scans a byte between the members of a message.
    fn in_message(&mut self, byte: u8) {
        if self.capture != Capture::Nothing && b"\"{}[],: \t\r\n".contains(&byte) {
            self.end_token();
        }
        let Some(envelope) = &mut self.envelope else {
            self.state = State::Done;
            return;
        };
        let is_id =
            envelope.position == EnvelopePosition::Value && envelope.key == JsonRpcMember::Id;
        match byte {
            b'"' => {
                self.state = State::String;
                if envelope.position == EnvelopePosition::Key {
                    self.begin(Capture::Key);
                } else if is_id {
                    self.begin(Capture::Id);
                }
                self.keep(b"\"");
            }
            b':' => envelope.position = EnvelopePosition::Value,
            b',' => {
                envelope.position = EnvelopePosition::Key;
                envelope.key = JsonRpcMember::Other;
            }
            b'{' | b'[' => {
                if is_id {
                    envelope.id = SkimmedId::Unreadable;
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.close_message();
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = State::Done;
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if is_id => {
                if self.capture == Capture::Nothing {
                    self.begin(Capture::Id);
                }
                self.keep(&[byte]);
            }
            _ => {}
        }
    }

    /// Reads up to the end of a string, or to a backslash in it.
    fn string<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr2(b'"', b'\\', input) else {
            self.keep(input);
            return &[];
        };
        let (inside, tail) = input.split_at(end + 1);
        self.keep(inside);
        if inside.ends_with(b"\\") {
            self.state = State::Escape;
        } else {
            self.state = State::Structure;
            self.end_token();
        }
        tail
    }

    fn begin(&mut self, capture: Capture) {
        self.capture = capture;
        self.token.clear();
    }

    /// Adds to the token that is being read, if any.
    fn keep(&mut self, bytes: &[u8]) {
        if !matches!(self.capture, Capture::Key | Capture::Id) {
            return;
        }
        if self.token.len() + bytes.len() > MAX_TOKEN_BYTES {
            self.capture = Capture::Overlong;
        } else {
            self.token.extend_from_slice(bytes);
        }
    }

    /// A key, an id, or a token that is too long is complete.
    fn end_token(&mut self) {
        let capture = std::mem::take(&mut self.capture);
        let Some(envelope) = &mut self.envelope else {
            return;
        };
        match capture {
            Capture::Key => envelope.take_key(&self.token),
            Capture::Id => envelope.take_id(serde_json::from_slice(&self.token).ok()),
            Capture::Overlong if envelope.key == JsonRpcMember::Id => envelope.take_id(None),
            Capture::Overlong | Capture::Nothing => {}
        }
    }

    fn close_message(&mut self) {
        let envelope = self.envelope.take().and_then(PartialEnvelope::into_skimmed);
        if self.found.len() < MAX_ENVELOPES {
            self.found.extend(envelope);
        }
    }
}

impl PartialEnvelope {
    fn take_key(&mut self, literal: &[u8]) {
        let name: Option<String> = serde_json::from_slice(literal).ok();
        self.key = match name.as_deref() {
            Some("jsonrpc") => JsonRpcMember::Version,
            Some("id") => JsonRpcMember::Id,
            Some("method") => JsonRpcMember::Method,
            Some("result" | "error") => JsonRpcMember::Outcome,
            _ => JsonRpcMember::Other,
        };
        match self.key {
            JsonRpcMember::Version => self.has_version = true,
            JsonRpcMember::Method => self.has_method = true,
            JsonRpcMember::Outcome => self.has_outcome = true,
            JsonRpcMember::Id => {
                self.id = match self.id {
                    SkimmedId::Absent => SkimmedId::Unfinished,
                    _ => SkimmedId::Unreadable,
                }
            }
            JsonRpcMember::Other => {}
        }
    }

    fn take_id(&mut self, id: Option<Id>) {
        self.id = match (&self.id, id) {
            (SkimmedId::Unfinished, Some(id)) => SkimmedId::Known(id),
            _ => SkimmedId::Unreadable,
        };
    }

    fn into_skimmed(self) -> Option<SkimmedEnvelope> {
        let SkimmedId::Known(id) = self.id else {
            return None;
        };
        match (self.has_version, self.has_method, self.has_outcome) {
            (true, true, _) => Some(SkimmedEnvelope::Request(id)),
            (true, false, true) => Some(SkimmedEnvelope::Response(id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
