use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::string::between_quotes;
use crate::{
    Id, Kind, Malformed, MalformedReason, Message, Notification, Object, Raw, Request, Response,
    RpcError, string,
};

/// The members that JSON-RPC defines, as JSON text.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    jsonrpc: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    has_repeated_member: bool,
    has_repeated_id: bool,
}

/// A message without its id.
enum Body {
    Call {
        method: Box<str>,
        params: Option<Raw>,
    },
    Outcome(Result<Raw, RpcError>),
}

/// The `id` member of an envelope.
enum IdMember {
    Absent,
    Null,
    Invalid,
    Known(Id),
}

impl<'a> Envelope<'a> {
    /// Takes a member that JSON-RPC defines.
    fn take(&mut self, key: &[u8], value: &'a [u8]) {
        let name = between_quotes(key);
        let slot = match name {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ if name.contains(&b'\\') => return self.take_escaped(key, value),
            _ => return,
        };
        if slot.replace(value).is_some() {
            self.has_repeated_member = true;
            self.has_repeated_id |= name == b"id";
        }
    }

    /// As [`Self::take`], for a key that is written with escapes.
    fn take_escaped(&mut self, key: &[u8], value: &'a [u8]) {
        let name = string::read(key).map(Cow::into_owned);
        if let Some(name) = name.filter(|name| !name.contains('\\')) {
            self.take(format!("\"{name}\"").as_bytes(), value);
        }
    }

    /// Validates the members. The payload of the message is a slice of `source`.
    pub(super) fn into_message(self, source: &Bytes) -> Result<Message, Malformed> {
        let malformed = |id, reason| Err(Malformed { id, reason });
        match (self.body(source), self.id()) {
            (Ok(Body::Call { method, params }), IdMember::Known(id)) => {
                Ok(Message::Request(Request { id, method, params }))
            }
            (Ok(Body::Call { method, params }), IdMember::Absent) => {
                Ok(Message::Notification(Notification { method, params }))
            }
            (Ok(Body::Call { .. }), IdMember::Null) => malformed(None, MalformedReason::NullId),
            (Ok(Body::Outcome(outcome)), IdMember::Known(id)) => {
                let id = Some(id);
                Ok(Message::Response(Response { id, outcome }))
            }
            (Ok(Body::Outcome(outcome @ Err(_))), IdMember::Absent | IdMember::Null) => {
                Ok(Message::Response(Response { id: None, outcome }))
            }
            (Ok(Body::Outcome(Ok(_))), IdMember::Absent | IdMember::Null) => {
                malformed(None, MalformedReason::ResultWithoutId)
            }
            (Ok(_), IdMember::Invalid) => malformed(None, MalformedReason::InvalidId),
            (Err(flaw), IdMember::Known(id)) => malformed(Some(id), flaw),
            (Err(flaw), _) => malformed(None, flaw),
        }
    }

    fn id(&self) -> IdMember {
        match self.id {
            _ if self.has_repeated_id => IdMember::Invalid,
            None => IdMember::Absent,
            Some(id) if is_null(id) => IdMember::Null,
            Some(id) => Id::read(id).map_or(IdMember::Invalid, IdMember::Known),
        }
    }

    fn body(&self, source: &Bytes) -> Result<Body, MalformedReason> {
        if self.has_repeated_member {
            return Err(MalformedReason::RepeatedMember);
        }
        let is_version = |version| text_of(version).as_deref() == Some("2.0");
        if self.jsonrpc != Some(br#""2.0""#) && !self.jsonrpc.is_some_and(is_version) {
            return Err(MalformedReason::Version);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => Ok(Body::Call {
                method: text_of(method)
                    .ok_or(MalformedReason::InvalidMethod)?
                    .into(),
                params: self.params(source)?,
            }),
            (Some(_), _, _) => Err(MalformedReason::MethodAndOutcome),
            (None, Some(result), None) => Ok(Body::Outcome(Ok(Raw::slice(source, result)))),
            (None, None, Some(error)) => {
                let error =
                    read_error(&Raw::slice(source, error)).ok_or(MalformedReason::InvalidError)?;
                Ok(Body::Outcome(Err(error)))
            }
            (None, Some(_), Some(_)) => Err(MalformedReason::ResultAndError),
            (None, None, None) => Err(MalformedReason::NoMethodOrOutcome),
        }
    }

    fn params(&self, source: &Bytes) -> Result<Option<Raw>, MalformedReason> {
        let Some(params) = self.params else {
            return Ok(None);
        };
        match Kind::of(params) {
            Kind::Object | Kind::Array => Ok(Some(Raw::slice(source, params))),
            Kind::Null => Ok(None),
            Kind::Bool | Kind::Number | Kind::String => Err(MalformedReason::InvalidParams),
        }
    }
}

fn is_null(value: &[u8]) -> bool {
    Kind::of(value) == Kind::Null
}

fn text_of(value: &[u8]) -> Option<Cow<'_, str>> {
    match Kind::of(value) {
        Kind::String => string::read(value),
        _ => None,
    }
}

fn read_error(error: &Raw) -> Option<RpcError> {
    let mut members = Object::parse(error).ok()?;
    Some(RpcError {
        code: members.get("code")?.decode().ok()?,
        message: members.get("message")?.decode().ok()?,
        data: members.remove("data"),
    })
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            envelope.take(key.get().as_bytes(), value.get().as_bytes());
        }
        Ok(envelope)
    }
}
