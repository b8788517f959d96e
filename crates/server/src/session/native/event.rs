//! What a native call says, as notifications of its method.

use bytes::Bytes;
use plexus_mcp::messages::LogLevel;
use plexus_service::{Event, Fault, Log, Outcome, Progress};
use plexus_wire::{Object, Raw, RpcError};
use serde::{Deserialize, Serialize};

use crate::render::{json, notification};

/// One event, as clients read it (S003-43, C14).
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told<'a> {
    Start,
    Stdout {
        data: &'a str,
    },
    Progress {
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    Log {
        level: LogLevel,
        #[serde(skip_serializing_if = "Option::is_none")]
        logger: Option<&'a str>,
        data: &'a Raw,
    },
    Content {
        content: &'a Raw,
    },
    Error {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Raw>,
    },
}

/// Tells the events of one stream.
pub(super) struct Teller {
    method: Box<str>,
    subscription: u64,
    /// Whether text was told before the end, which the result then has once more.
    streamed: bool,
}

impl Teller {
    /// For the stream of this number, of this method as the client spelled it.
    pub(super) fn new(method: Box<str>, subscription: u64) -> Self {
        Self {
            method,
            subscription,
            streamed: false,
        }
    }

    pub(super) fn start(&self) -> Bytes {
        self.told(&Told::Start)
    }

    /// What happens on the way. Questions are not told but put.
    pub(super) fn event(&mut self, event: &Event) -> Option<Bytes> {
        match event {
            Event::Content(data) => {
                self.streamed = true;
                Some(self.told(&Told::Stdout { data }))
            }
            Event::Progress(Progress {
                progress,
                total,
                message,
            }) => Some(self.told(&Told::Progress {
                progress: *progress,
                total: *total,
                message: message.as_deref(),
            })),
            Event::Log(Log {
                level,
                logger,
                data,
            }) => Some(self.told(&Told::Log {
                level: *level,
                logger: logger.as_deref(),
                data,
            })),
            Event::Ask(_) => None,
        }
    }

    /// How it ends: what was not told yet, and one last event.
    pub(super) fn end(
        &self,
        outcome: Outcome,
        error: impl FnOnce(&Fault) -> RpcError,
    ) -> Vec<Bytes> {
        match outcome {
            Ok(result) => self.result(&result),
            Err(fault) => {
                let RpcError {
                    code,
                    message,
                    data,
                } = error(&fault);
                vec![self.told(&Told::Error {
                    message: &message,
                    code: Some(code),
                    data: data.as_ref(),
                })]
            }
        }
    }

    fn result(&self, result: &Raw) -> Vec<Bytes> {
        let Finished {
            content,
            structured_content,
            is_error,
        } = result.decode().unwrap_or_default();
        let structured = structured_content.as_ref().map(Object::parse);
        let structured = structured.and_then(Result::ok);
        let exit_code = structured.as_ref().and_then(|data| data.get("exit_code"));
        // C16: the first block is what was streamed.
        let rest = content.iter().skip(usize::from(self.streamed));

        // C14: a command that ran has completed, whatever it thought of its work.
        if is_error && exit_code.is_none() {
            let texts: Vec<_> = rest.filter_map(text).collect();
            let message = &texts.join("\n");
            return vec![self.told(&Told::Error {
                message,
                code: None,
                data: structured_content.as_ref(),
            })];
        }
        let mut messages = Vec::new();
        if structured.is_none() {
            messages.extend(rest.map(|block| match text(block) {
                Some(data) => self.told(&Told::Stdout { data: &data }),
                None => self.told(&Told::Content { content: block }),
            }));
        }
        messages.push(self.event_of(&self.completion(structured)));
        messages
    }

    /// `complete` has the members of a structured result, apart from what was streamed.
    fn completion(&self, structured: Option<Object>) -> Raw {
        let mut complete = Object::new();
        complete.set("type", json("complete"));
        let Some(mut structured) = structured else {
            return complete.into_raw();
        };
        if self.streamed {
            structured.remove("stdout");
            structured.remove("stderr");
        }
        if structured.contains("type") {
            complete.set("result", structured.into_raw());
            return complete.into_raw();
        }
        for (name, value) in structured.iter() {
            complete.set(name, value.clone());
        }
        complete.into_raw()
    }

    fn told(&self, event: &Told<'_>) -> Bytes {
        self.event_of(&json(event))
    }

    fn event_of(&self, event: &Raw) -> Bytes {
        #[derive(Serialize)]
        struct Params<'a> {
            subscription: u64,
            result: &'a Raw,
        }
        let params = Params {
            subscription: self.subscription,
            result: event,
        };
        notification(&self.method, Some(&json(&params)))
    }
}

/// The parts of a finished call.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Finished {
    content: Vec<Raw>,
    structured_content: Option<Raw>,
    is_error: bool,
}

/// The text of a block that is text.
fn text(block: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    struct Block {
        r#type: String,
        text: String,
    }
    let Block { r#type, text } = block.decode().ok()?;
    (r#type == "text").then_some(text)
}
