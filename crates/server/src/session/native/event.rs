//! The events of a native call, as notifications of its method.

use bytes::Bytes;
use plexus_mcp_core::{Event, Fault, Log, Outcome, Progress, ToolUse};
use plexus_mcp_protocol::messages::LogLevel;
use plexus_mcp_wire::{Kind, Object, Raw, RpcError};
use serde::{Deserialize, Serialize};

use crate::encoder::{json, notification};

/// One event, as clients read it (S003-43, C14).
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NativeEvent<'a> {
    Start,
    Stdout {
        data: &'a str,
    },
    Stderr {
        data: &'a str,
    },
    ToolUse {
        tool_name: &'a str,
        input: &'a Raw,
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
    /// An error that the call survives has `recoverable`, any other is the last event (C17).
    Error {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Raw>,
        recoverable: bool,
    },
}

/// Encodes the events of one stream.
pub(super) struct NativeEventEncoder {
    method: Box<str>,
    subscription: u64,
    /// The parts of the result that were already sent as events.
    sent: Repeated,
    /// Whether standard error was sent as an event. It is not a block of the result.
    warned: bool,
}

/// Each of these is a block of the result, in this order (C16).
#[derive(Default)]
struct Repeated {
    text: bool,
    tools: bool,
    errors: bool,
}

impl NativeEventEncoder {
    /// For the stream of this number, of this method as the client spelled it.
    pub(super) fn new(method: Box<str>, subscription: u64) -> Self {
        Self {
            method,
            subscription,
            sent: Repeated::default(),
            warned: false,
        }
    }

    pub(super) fn start(&self) -> Bytes {
        self.encode(&NativeEvent::Start)
    }

    /// The notification for an event; `None` for a question, which is sent as a request.
    pub(super) fn event(&mut self, event: &Event) -> Option<Bytes> {
        match event {
            Event::Content(data) => {
                self.sent.text = true;
                Some(self.encode(&NativeEvent::Stdout { data }))
            }
            Event::Stderr(data) => {
                self.warned = true;
                Some(self.encode(&NativeEvent::Stderr { data }))
            }
            Event::ToolUse(ToolUse { name, input }) => {
                self.sent.tools = true;
                Some(self.encode(&NativeEvent::ToolUse {
                    tool_name: name,
                    input,
                }))
            }
            Event::Recovered(message) => {
                self.sent.errors = true;
                Some(self.encode(&NativeEvent::Error {
                    message,
                    code: None,
                    data: None,
                    recoverable: true,
                }))
            }
            Event::Progress(Progress {
                progress,
                total,
                message,
            }) => Some(self.encode(&NativeEvent::Progress {
                progress: *progress,
                total: *total,
                message: message.as_deref(),
            })),
            Event::Log(Log {
                level,
                logger,
                data,
            }) => Some(self.encode(&NativeEvent::Log {
                level: *level,
                logger: logger.as_deref(),
                data,
            })),
            Event::Ask(_) => None,
        }
    }

    /// The end of the stream: the parts of the result that were not sent yet, and one last event.
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
                vec![self.encode(&NativeEvent::Error {
                    message: &message,
                    code: Some(code),
                    data: data.as_ref(),
                    recoverable: false,
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
        let structured = structured_content.and_then(|data| Object::parse(&data).ok());
        let Repeated {
            text: streamed,
            tools,
            errors,
        } = self.sent;
        let repeated = [streamed, tools, errors].into_iter().filter(|sent| *sent);
        let rest = content.iter().skip(repeated.count());

        // C14: a command that exited has completed, whatever its exit code.
        let exit_code = structured.as_ref().and_then(|data| data.get("exit_code"));
        let exited = exit_code.is_some_and(|code| code.kind() == Kind::Number);
        if is_error && !exited {
            let texts: Vec<_> = rest.filter_map(text).collect();
            return vec![self.encode(&NativeEvent::Error {
                message: &texts.join("\n"),
                code: None,
                data: None,
                recoverable: false,
            })];
        }
        let mut messages = Vec::new();
        if structured.is_none() {
            messages.extend(rest.map(|block| match text(block) {
                Some(data) => self.encode(&NativeEvent::Stdout { data: &data }),
                None => self.encode(&NativeEvent::Content { content: block }),
            }));
        }
        messages.push(self.event_of(&self.completion(structured)));
        messages
    }

    /// The `complete` event, with the members of a structured result except streamed output.
    fn completion(&self, structured: Option<Object>) -> Raw {
        let mut complete = Object::new();
        complete.set("type", json("complete"));
        let Some(mut structured) = structured else {
            return complete.to_raw();
        };
        if self.sent.text || self.warned {
            structured.remove("stdout");
            structured.remove("stderr");
        }
        if structured.contains("type") {
            complete.set("result", structured.to_raw());
            return complete.to_raw();
        }
        for (name, value) in structured.iter() {
            complete.set(name.to_owned(), value.clone());
        }
        complete.to_raw()
    }

    fn encode(&self, event: &NativeEvent<'_>) -> Bytes {
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
