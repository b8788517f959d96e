//! From the core's words to the messages of one revision.

use bytes::{Bytes, BytesMut};
use plexus_mcp::messages::{
    CacheScope, CallToolResult, Implementation, LogLevel, LoggingMessageParams, ProgressParams,
};
use plexus_mcp::{ArgumentErrors, Revision, Status, UnreadableId, convert, key, method};
use plexus_service::{CacheHints, Event, Fault, Log, Outcome, Progress, ToolUse};
use plexus_wire::encode::ErrorId;
use plexus_wire::{Id, Object, Raw, encode};
use serde::Serialize;

use crate::edge::Wants;

/// A finished answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The HTTP status, should the response not have begun.
    pub(crate) status: Status,
    pub(crate) message: Message,
}

/// A message, in one piece unless that would mean to copy much.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Whole(Bytes),
    /// What stands before a long result, the result as it came, and what stands behind it.
    Parts([Bytes; 3]),
}

impl Answer {
    pub(crate) fn whole(status: Status, message: Bytes) -> Self {
        let message = Message::Whole(message);
        Self { status, message }
    }

    /// The message, in one piece and one line.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.message {
            Message::Whole(message) => message,
            Message::Parts(parts) => encode::joined(&parts),
        }
    }
}

/// Says things to a client of one revision.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) revision: Revision,
    /// Who we are, for results that carry it.
    pub(crate) server_info: Raw,
    /// The members that the revision wants every result to have.
    stamp: Bytes,
    max_answer: usize,
}

impl Voice {
    pub(crate) fn new(revision: Revision, identity: &Implementation, max_answer: usize) -> Self {
        let server_info = convert::implementation(&identity.to_raw(), revision.features());
        Self {
            revision,
            stamp: stamp(revision, &server_info),
            server_info,
            max_answer,
        }
    }

    /// The answer to request `id`.
    pub(crate) fn answer(&self, id: &Id, method: &str, outcome: Outcome) -> Answer {
        match self.result(method, outcome) {
            Ok(result) => self.complete(id, &result),
            Err(fault) => self.error(id, &fault),
        }
    }

    /// The answer to request `id`, whose result has yet to be given what the revision wants.
    pub(crate) fn complete(&self, id: &Id, result: &Raw) -> Answer {
        let needs_care = || !convert::is_one_text(result) && result.may_have(&STAMPED);
        let needs_care = !self.stamp.is_empty() && needs_care();
        if needs_care {
            return complete(id, &self.stamped(result.clone()));
        }
        written(id, result, &self.stamp)
    }

    /// An error in answer to request `id`.
    pub(crate) fn error(&self, id: &Id, fault: &Fault) -> Answer {
        let mut message = BytesMut::new();
        encode::error(
            &mut message,
            ErrorId::Known(id),
            &fault.to_error(self.revision),
        );
        Answer::whole(fault.status(self.revision), message.freeze())
    }

    /// Adds to a result what the revision wants every result to carry.
    pub(crate) fn stamped(&self, result: Raw) -> Raw {
        if !self.revision.features().typed_results {
            return result;
        }
        let Ok(mut object) = Object::parse(&result) else {
            return result;
        };
        if !object.contains("resultType") {
            object.set("resultType", Raw::string("complete"));
        }
        let mut meta = object
            .get("_meta")
            .and_then(|meta| Object::parse(meta).ok())
            .unwrap_or_default();
        meta.set(key::SERVER_INFO, self.server_info.clone());
        object.set("_meta", meta.to_raw());
        object.to_raw()
    }

    fn result(&self, method: &str, outcome: Outcome) -> Outcome {
        let features = self.revision.features();
        let result = match outcome {
            Err(Fault::InvalidArguments(message))
                if features.argument_errors == ArgumentErrors::ToolResult =>
            {
                CallToolResult::error(message).to_raw()
            }
            other => other?,
        };
        let result = match method {
            method::TOOLS_CALL => convert::call_tool_result(&result, features),
            method::PROMPTS_GET => convert::get_prompt_result(&result, features),
            method::RESOURCES_READ => {
                let lowered = convert::read_resource_result(&result, features);
                if features.typed_results {
                    hinted(lowered, CacheHints::NONE)
                } else {
                    lowered
                }
            }
            _ => result,
        };
        if result.len() + self.stamp.len() > self.max_answer {
            return Err(Fault::AnswerTooLarge {
                limit: self.max_answer,
            });
        }
        Ok(result)
    }
}

/// What [`Voice::stamped`] adds or changes.
const STAMPED: [&str; 2] = ["resultType", "_meta"];

/// The same, for a result that has nothing of it: the members, without braces around them.
fn stamp(revision: Revision, server_info: &Raw) -> Bytes {
    if !revision.features().typed_results {
        return Bytes::new();
    }
    let mut meta = Object::new();
    meta.set(key::SERVER_INFO, server_info.clone());
    let mut stamp = Object::new();
    stamp.set("resultType", Raw::string("complete"));
    stamp.set("_meta", meta.to_raw());
    let stamp = stamp.to_raw().into_bytes();
    stamp.slice(1..stamp.len() - 1)
}

/// Says what happens during one call.
#[derive(Debug)]
pub(crate) struct Narrator {
    revision: Revision,
    token: Option<Id>,
    log_level: Option<LogLevel>,
    reported: Option<f64>,
}

impl Narrator {
    /// Reports progress under `token` and log messages from `log_level` on, if these are given.
    pub(crate) fn new(revision: Revision, token: Option<Id>, log_level: Option<LogLevel>) -> Self {
        Self {
            revision,
            token,
            log_level,
            reported: None,
        }
    }

    /// What the call is to say.
    pub(crate) fn wants(&self, trace_parent: Option<String>) -> Wants {
        Wants {
            progress: self.token.is_some(),
            log_level: self.log_level,
            trace_parent,
        }
    }

    /// The notification for an event; questions are not told but put.
    pub(crate) fn tell(&mut self, event: &Event) -> Option<Bytes> {
        match event {
            Event::Progress(Progress {
                progress,
                total,
                message,
            }) => self.progress(*progress, *total, message.as_deref()),
            Event::Content(text) | Event::Stderr(text) => self.advance(text),
            Event::ToolUse(ToolUse { name, .. }) => self.advance(&format!("Using tool: {name}")),
            Event::Recovered(reason) => {
                let wanted = self
                    .log_level
                    .is_some_and(|wanted| LogLevel::Warning >= wanted);
                let log = || Log {
                    level: LogLevel::Warning,
                    logger: None,
                    data: json(reason),
                };
                wanted.then(|| log_message(&log()))
            }
            // A call outlives the request that began it (a retry may want less).
            Event::Log(log) => {
                let wanted = self.log_level.is_some_and(|wanted| log.level >= wanted);
                wanted.then(|| log_message(log))
            }
            Event::Ask(_) => None,
        }
    }

    /// A step whose size is unknown.
    fn advance(&mut self, message: &str) -> Option<Bytes> {
        let next = self.reported.map_or(1.0, |reported| reported.floor() + 1.0);
        self.progress(next, None, Some(message))
    }

    /// Progress that does not advance is not reported (PROG-02).
    fn progress(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Option<Bytes> {
        let progress_token = self.token.clone()?;
        if self.reported.is_some_and(|reported| progress <= reported) {
            return None;
        }
        self.reported = Some(progress);
        let params = ProgressParams {
            progress_token,
            progress,
            total,
            message: None,
        };
        let mut params = params.to_raw();
        let message = message.filter(|_| self.revision.features().progress_message);
        // It may be long, and is neither copied nor looked at byte by byte.
        if let (Some(message), Ok(mut members)) = (message, Object::parse(&params)) {
            members.set("message", Raw::string(message));
            params = members.to_raw();
        }
        Some(notification(method::PROGRESS, Some(&params)))
    }
}

/// An answer whose result is in the revision's own form already.
pub(crate) fn complete(id: &Id, result: &Raw) -> Answer {
    written(id, result, &[])
}

/// An answer whose result gets more members, which are written without braces.
fn written(id: &Id, result: &Raw, members: &[u8]) -> Answer {
    /// To copy less costs less than to send it in parts.
    const LONG: usize = 4 * 1024;
    if result.len() >= LONG {
        let parts = encode::response_parts(id, result, members);
        let message = Message::Parts(parts);
        return Answer {
            status: 200,
            message,
        };
    }
    let mut message = BytesMut::new();
    encode::response_with(&mut message, id, result, members);
    Answer::whole(200, message.freeze())
}

/// Adds cache hints to a result that has none.
pub(crate) fn hinted(result: Raw, hints: CacheHints) -> Raw {
    let Ok(mut object) = Object::parse(&result) else {
        return result;
    };
    if !object.contains("ttlMs") {
        object.set("ttlMs", json(&hints.ttl_ms));
    }
    if !object.contains("cacheScope") {
        let scope = if hints.public {
            CacheScope::Public
        } else {
            CacheScope::Private
        };
        object.set("cacheScope", json(&scope));
    }
    object.to_raw()
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    let mut message = BytesMut::new();
    encode::notification(&mut message, method, params);
    message.freeze()
}

/// An error for a message whose id is unknown, as clients of `revision` expect it (C33).
pub(crate) fn anonymous_error(revision: Revision, fault: &Fault) -> Answer {
    let id = match revision.features().unreadable_id {
        UnreadableId::Null => ErrorId::Null,
        UnreadableId::Absent => ErrorId::Absent,
    };
    let mut message = BytesMut::new();
    encode::error(&mut message, id, &fault.to_error(revision));
    // Whatever the era: such a message never became a request.
    let status = match fault.status(revision) {
        200 => 400,
        status => status,
    };
    Answer::whole(status, message.freeze())
}

/// JSON of something that cannot fail to be JSON.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Raw {
    Raw::encode(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a message of ours is no JSON");
        Raw::null()
    })
}

fn log_message(log: &Log) -> Bytes {
    let params = LoggingMessageParams {
        level: log.level,
        logger: log.logger.clone(),
        data: log.data.clone(),
    };
    notification(method::LOG, Some(&json(&params)))
}
