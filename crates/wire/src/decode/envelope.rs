use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::arrived::Stretch;
use crate::check::{self, Spelled};
use crate::object::Member;
use crate::string::between_quotes;
use crate::{
    Flaw, Id, Kind, Malformed, Message, Notification, Object, Params, Raw, Request, Response,
    RpcError, string,
};

/// The members that JSON-RPC defines, as they are written.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    jsonrpc: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    /// The members of `params`, if they were looked for.
    members: Option<Vec<Member>>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    has_repeated_member: bool,
    has_repeated_id: bool,
}

/// What a message says, apart from whom it concerns.
enum Body {
    Call {
        method: Box<str>,
        params: Option<Params>,
    },
    Outcome(Result<Raw, RpcError>),
}

/// What an envelope has for an id.
enum IdMember {
    Absent,
    Null,
    Invalid,
    Known(Id),
}

impl<'a> Envelope<'a> {
    /// Finds the members in `text`, if that is an object that nests no deeper than `max_depth`; else
    /// somebody else must say what is wrong with it. What is known to be plain is not looked at.
    pub(super) fn read(text: &'a Bytes, plain: &Stretch, max_depth: usize) -> Option<Self> {
        let mut reading = Reading {
            text,
            envelope: Self::default(),
            params_start: 0,
            inside: None,
        };
        check::object(text, plain, max_depth, &mut reading).then_some(reading.envelope)
    }

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

    /// The same for a key with escapes, as nobody writes these.
    #[cold]
    fn take_escaped(&mut self, key: &[u8], value: &'a [u8]) {
        let name = string::read(key).map(Cow::into_owned);
        if let Some(name) = name.filter(|name| !name.contains('\\')) {
            self.take(format!("\"{name}\"").as_bytes(), value);
        }
    }

    /// Judges the members; what the message carries shares `source`, where they were read from.
    pub(super) fn into_message(mut self, source: &Bytes) -> Result<Message, Malformed> {
        let malformed = |id, reason| Err(Malformed { id, reason });
        match (self.body(source), self.id()) {
            (Ok(Body::Call { method, params }), IdMember::Known(id)) => {
                Ok(Message::Request(Request { id, method, params }))
            }
            (Ok(Body::Call { method, params }), IdMember::Absent) => {
                let params = params.map(Params::into_raw);
                Ok(Message::Notification(Notification { method, params }))
            }
            (Ok(Body::Call { .. }), IdMember::Null) => malformed(None, Flaw::NullId),
            (Ok(Body::Outcome(outcome)), IdMember::Known(id)) => {
                let id = Some(id);
                Ok(Message::Response(Response { id, outcome }))
            }
            (Ok(Body::Outcome(outcome @ Err(_))), IdMember::Absent | IdMember::Null) => {
                Ok(Message::Response(Response { id: None, outcome }))
            }
            (Ok(Body::Outcome(Ok(_))), IdMember::Absent | IdMember::Null) => {
                malformed(None, Flaw::ResultWithoutId)
            }
            (Ok(_), IdMember::Invalid) => malformed(None, Flaw::InvalidId),
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

    fn body(&mut self, source: &Bytes) -> Result<Body, Flaw> {
        if self.has_repeated_member {
            return Err(Flaw::RepeatedMember);
        }
        let is_version = |version| text_of(version).as_deref() == Some("2.0");
        if self.jsonrpc != Some(br#""2.0""#) && !self.jsonrpc.is_some_and(is_version) {
            return Err(Flaw::Version);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => Ok(Body::Call {
                method: text_of(method).ok_or(Flaw::InvalidMethod)?.into(),
                params: self.params(source)?,
            }),
            (Some(_), _, _) => Err(Flaw::MethodAndOutcome),
            (None, Some(result), None) => Ok(Body::Outcome(Ok(Raw::slice(source, result)))),
            (None, None, Some(error)) => {
                let error = read_error(&Raw::slice(source, error)).ok_or(Flaw::InvalidError)?;
                Ok(Body::Outcome(Err(error)))
            }
            (None, Some(_), Some(_)) => Err(Flaw::ResultAndError),
            (None, None, None) => Err(Flaw::NoMethodOrOutcome),
        }
    }

    fn params(&mut self, source: &Bytes) -> Result<Option<Params>, Flaw> {
        let Some(params) = self.params else {
            return Ok(None);
        };
        match Kind::of(params) {
            Kind::Object | Kind::Array => {
                let raw = Raw::slice(source, params);
                Ok(Some(match self.members.take() {
                    Some(members) => Params::with_members(raw, members),
                    None => raw.into(),
                }))
            }
            Kind::Null => Ok(None),
            Kind::Bool | Kind::Number | Kind::String => Err(Flaw::InvalidParams),
        }
    }
}

/// An envelope while its text is read.
struct Reading<'a> {
    text: &'a Bytes,
    envelope: Envelope<'a>,
    params_start: usize,
    /// Where the object among the parameters starts that is looked into, and its members.
    inside: Option<(usize, Vec<Member>)>,
}

/// What nearly everybody takes apart who takes parameters apart.
const LOOKED_INTO: [&[u8]; 2] = [br#""arguments""#, br#""_meta""#];

impl check::Visitor for Reading<'_> {
    fn looks_into(&mut self, depth: usize, key: &Spelled, start: usize) -> bool {
        let key = self.text.get(key.place.clone()).unwrap_or_default();
        match depth {
            0 if key == br#""params""# => {
                self.params_start = start;
                self.envelope.members = Some(Member::room_for_some());
                true
            }
            1 if LOOKED_INTO.contains(&key) => {
                self.inside = Some((start, Member::room_for_some()));
                true
            }
            _ => false,
        }
    }

    fn member(&mut self, depth: usize, key: &Spelled, value: &Spelled) {
        match depth {
            0 => {
                if let (Some(key), Some(value)) = (
                    self.text.get(key.place.clone()),
                    self.text.get(value.place.clone()),
                ) {
                    self.envelope.take(key, value);
                }
            }
            1 => {
                let inside = self.inside.take().map(|(_, members)| members);
                let Some(members) = &mut self.envelope.members else {
                    return;
                };
                match Member::in_object(self.text, self.params_start, key, value) {
                    Ok(member) => members.push(member.with_members(inside)),
                    // Whoever takes the parameters apart says so.
                    Err(_key_is_no_text) => self.envelope.members = None,
                }
            }
            _ => {
                let Some((start, members)) = &mut self.inside else {
                    return;
                };
                match Member::in_object(self.text, *start, key, value) {
                    Ok(member) => members.push(member),
                    Err(_key_is_no_text) => self.inside = None,
                }
            }
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
