//! Writes envelopes around raw values.
//!
//! Every function appends one message, without a newline at its end and without one inside: a JSON
//! string cannot hold a bare CR or LF, so those in a [`Raw`] are between tokens and become spaces.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use memchr::memchr2;

use crate::id::write_integer;
use crate::{Id, Message, Object, Raw, RpcError, string};

/// The `id` member of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the member has a value, is null, or is not there"
)]
pub enum ErrorId<'a> {
    /// The request's id.
    Known(&'a Id),
    /// The id could not be read, as JSON-RPC 2.0 and the earlier revisions of MCP say it.
    Null,
    /// The id could not be read, as the later revisions of MCP say it.
    Absent,
}

/// Appends a request.
pub fn request(out: &mut BytesMut, id: &Id, method: &str, params: Option<&Raw>) {
    open(out, method.len() + params.map_or(0, Raw::len));
    write_id(out, ErrorId::Known(id));
    call(out, method, params);
}

/// Appends a request with these parameters.
pub fn request_with_object(out: &mut BytesMut, id: &Id, method: &str, params: &Object) {
    open(out, method.len() + params.size());
    write_id(out, ErrorId::Known(id));
    out.extend_from_slice(br#","method":"#);
    string::write(out, method);
    out.extend_from_slice(br#","params":"#);
    let before = out.len();
    params.write(out);
    let mut written = out.get_mut(before..).unwrap_or_default();
    while let Some(at) = memchr2(b'\r', b'\n', written) {
        let (line, rest) = written.split_at_mut(at + 1);
        line.last_mut().into_iter().for_each(|end| *end = b' ');
        written = rest;
    }
    out.put_u8(b'}');
}

/// Appends a notification.
pub fn notification(out: &mut BytesMut, method: &str, params: Option<&Raw>) {
    open(out, method.len() + params.map_or(0, Raw::len));
    call(out, method, params);
}

/// Appends a response that succeeded.
pub fn response(out: &mut BytesMut, id: &Id, result: &Raw) {
    success(out, ErrorId::Known(id), result);
}

/// Appends a response that failed.
pub fn error(out: &mut BytesMut, id: ErrorId<'_>, error: &RpcError) {
    open(
        out,
        error.message.len() + error.data.as_ref().map_or(0, Raw::len),
    );
    write_id(out, id);
    out.extend_from_slice(br#","error":{"code":"#);
    write_integer(out, error.code);
    out.extend_from_slice(br#","message":"#);
    string::write(out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(br#","data":"#);
        raw(out, data);
    }
    out.extend_from_slice(b"}}");
}

/// Appends any message. A response without an id is written with a null one.
pub fn message(out: &mut BytesMut, message: &Message) {
    match message {
        Message::Request(it) => request(out, &it.id, &it.method, it.params.as_ref()),
        Message::Notification(it) => notification(out, &it.method, it.params.as_ref()),
        Message::Response(it) => {
            let id = it.id.as_ref().map_or(ErrorId::Null, ErrorId::Known);
            match &it.outcome {
                Ok(result) => success(out, id, result),
                Err(reason) => error(out, id, reason),
            }
        }
    }
}

/// The value's text with every bare CR and LF replaced by a space: the same value, in one line.
pub fn single_line(value: &Raw) -> Cow<'_, [u8]> {
    if memchr2(b'\r', b'\n', value.as_bytes()).is_none() {
        return Cow::Borrowed(value.as_bytes());
    }
    let mut out = BytesMut::with_capacity(value.len());
    raw(&mut out, value);
    Cow::Owned(out.into())
}

/// Begins an envelope whose variable parts are about `size` bytes long.
fn open(out: &mut BytesMut, size: usize) {
    const FIXED_PARTS: usize = 96;
    out.reserve(size + FIXED_PARTS);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
}

fn write_id(out: &mut BytesMut, id: ErrorId<'_>) {
    match id {
        ErrorId::Known(id) => {
            out.extend_from_slice(br#","id":"#);
            id.write(out);
        }
        ErrorId::Null => out.extend_from_slice(br#","id":null"#),
        ErrorId::Absent => {}
    }
}

fn success(out: &mut BytesMut, id: ErrorId<'_>, result: &Raw) {
    open(out, result.len());
    write_id(out, id);
    out.extend_from_slice(br#","result":"#);
    raw(out, result);
    out.put_u8(b'}');
}

fn call(out: &mut BytesMut, method: &str, params: Option<&Raw>) {
    out.extend_from_slice(br#","method":"#);
    string::write(out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        raw(out, params);
    }
    out.put_u8(b'}');
}

fn raw(out: &mut BytesMut, value: &Raw) {
    write_single_line(out, value.as_bytes());
}

/// Appends JSON text with every bare CR and LF replaced by a space.
fn write_single_line(out: &mut BytesMut, mut rest: &[u8]) {
    while let Some(at) = memchr2(b'\r', b'\n', rest) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        out.put_u8(b' ');
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
