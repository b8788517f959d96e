//! JSON-RPC 2.0 over raw JSON: envelopes, ids, line and event-stream framing. No I/O.
//!
//! Only the envelope of a message is parsed. The payload (params, result, error data) stays a
//! [`Raw`]: a slice of the received bytes, which is written out unchanged or edited member by
//! member with an [`Object`]. Numbers of any size, unknown members and the spelling of strings
//! are preserved.
//!
//! [`decode()`] reads an envelope and [`encode`] writes one. [`LineDecoder`] frames messages on
//! pipes, [`sse`] on event streams. A message above a limit is discarded, and [`EnvelopeSkimmer`]
//! finds the id of the request that it belongs to. All input is bounded by [`Limits`] or by an
//! argument, and no input makes this crate panic.
//!
//! The crate is independent of MCP, sockets and time, and never builds a `serde_json::Value`.
//!
//! ```
//! use bytes::BytesMut;
//! use plexus_mcp_wire::{Incoming, LineDecoder, Limits, Line, Message, Raw, decode, encode};
//!
//! let limits = Limits::default();
//! let mut lines = LineDecoder::new(limits.max_bytes);
//! let mut input = BytesMut::from("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n");
//!
//! let Some(Line::Complete(line)) = lines.next(&mut input) else { panic!("no line") };
//! let Incoming::Single(Ok(Message::Request(request))) = decode(line, &limits)? else {
//!     panic!("no request")
//! };
//!
//! let mut output = BytesMut::new();
//! encode::response(&mut output, &request.id, &Raw::empty_object());
//! assert_eq!(output, r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
//! # Ok::<(), plexus_mcp_wire::DecodeError>(())
//! ```

mod decode;
pub mod encode;
mod id;
mod limits;
mod line;
mod message;
mod object;
mod raw;
mod scan;
mod skim;
pub mod sse;
mod string;
#[cfg(test)]
mod testing;

pub use decode::{DecodeError, Incoming, decode};
pub use encode::ErrorId;
pub use id::Id;
pub use limits::Limits;
pub use line::{Line, LineDecoder};
pub use message::{Malformed, MalformedReason, Message, Notification, Request, Response, RpcError};
pub use object::{Object, ObjectError};
pub use raw::{Kind, Raw};
pub use skim::{EnvelopeSkimmer, SkimmedEnvelope, skim};
