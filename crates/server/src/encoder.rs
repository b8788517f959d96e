//! Encodes outcomes and events of the core as JSON-RPC messages of one revision.

use bytes::{Bytes, BytesMut};
use plexus_mcp_core::{CacheHints, Event, Fault, Log, Outcome, Progress, ToolUse};
use plexus_mcp_protocol::messages::{
    CacheScope, CallToolResult, Implementation, LogLevel, LoggingMessageParams, ProgressParams,
};
use plexus_mcp_protocol::{
    ArgumentErrors, HttpStatus, Revision, UnreadableId, convert, key, method,
};
use plexus_mcp_wire::encode::ErrorId;
use plexus_mcp_wire::{Id, Object, Raw, encode};
use serde::Serialize;

use crate::edge::Wants;

/// An encoded response with its HTTP status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedResponse {
    /// The HTTP status, should the response not have begun.
    pub(crate) status: HttpStatus,
    /// The encoded JSON-RPC response, on one line.
    pub(crate) message: Bytes,
}

impl EncodedResponse {
    pub(crate) fn new(status: HttpStatus, message: Bytes) -> Self {
        Self { status, message }
    }
}

/// Encodes responses for clients of one revision.
#[derive(Debug, Clone)]
pub(crate) struct ResponseEncoder {
    pub(crate) revision: Revision,
    /// The server's identity, for results that carry it.
    pub(crate) server_info: Raw,
    max_answer: usize,
}

impl ResponseEncoder {
    pub(crate) fn new(revision: Revision, identity: &Implementation, max_answer: usize) -> Self {
        let server_info = convert::implementation(&identity.to_raw(), revision.features());
        Self {
            revision,
            server_info,
            max_answer,
        }
    }

    /// The answer to request `id`.
    pub(crate) fn answer(&self, id: &Id, method: &str, outcome: Outcome) -> EncodedResponse {
        match self.result(method, outcome) {
            Ok(result) => complete(id, &result),
            Err(fault) => self.error(id, &fault),
        }
    }

    /// The answer to request `id`: `result` with the members that the revision wants in every result.
    pub(crate) fn complete(&self, id: &Id, result: Raw) -> EncodedResponse {
        complete(id, &self.with_result_metadata(result))
    }

    /// An error in answer to request `id`.
    pub(crate) fn error(&self, id: &Id, fault: &Fault) -> EncodedResponse {
        let mut message = BytesMut::new();
        encode::error(
            &mut message,
            ErrorId::Known(id),
            &fault.to_error(self.revision),
        );
        EncodedResponse::new(fault.status(self.revision), message.freeze())
    }

    /// Adds the members that the revision wants in every result: `resultType` and the server's
    /// identity in `_meta`.
    pub(crate) fn with_result_metadata(&self, result: Raw) -> Raw {
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
        let result = self.with_result_metadata(result);
        if result.len() > self.max_answer {
            return Err(Fault::ResponseTooLarge {
                size: result.len() as u64,
                limit: self.max_answer,
            });
        }
        Ok(result)
    }
}

/// Encodes the events of one call as notifications.
#[derive(Debug)]
pub(crate) struct NotificationEncoder {
    revision: Revision,
    token: Option<Id>,
    log_level: Option<LogLevel>,
    reported: Option<f64>,
}

impl NotificationEncoder {
    /// Reports progress under `token` and log messages from `log_level` on, if these are given.
    pub(crate) fn new(revision: Revision, token: Option<Id>, log_level: Option<LogLevel>) -> Self {
        Self {
            revision,
            token,
            log_level,
            reported: None,
        }
    }

    /// The events that the client wants.
    pub(crate) fn wants(&self) -> Wants {
        Wants {
            progress: self.token.is_some(),
            log_level: self.log_level,
        }
    }

    /// The notification for an event; `None` for a question, which is sent as a request.
    pub(crate) fn encode(&mut self, event: &Event) -> Option<Bytes> {
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
            // A call outlives the request that began it, and a retry may ask for fewer notifications.
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
            message: message
                .filter(|_| self.revision.features().progress_message)
                .map(str::to_owned),
        };
        Some(notification(method::PROGRESS, Some(&params.to_raw())))
    }
}

/// An answer whose result already has all members that the revision wants.
pub(crate) fn complete(id: &Id, result: &Raw) -> EncodedResponse {
    let mut message = BytesMut::new();
    encode::response(&mut message, id, result);
    EncodedResponse::new(200, message.freeze())
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
pub(crate) fn anonymous_error(revision: Revision, fault: &Fault) -> EncodedResponse {
    let id = match revision.features().unreadable_id {
        UnreadableId::Null => ErrorId::Null,
        UnreadableId::Absent => ErrorId::Absent,
    };
    let mut message = BytesMut::new();
    encode::error(&mut message, id, &fault.to_error(revision));
    // Even legacy revisions answer with an error status here: the message never became a request.
    let status = match fault.status(revision) {
        200 => 400,
        status => status,
    };
    EncodedResponse::new(status, message.freeze())
}

/// Encodes one of our own values, which cannot fail.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Raw {
    Raw::encode(value).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot encode a message as JSON");
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
