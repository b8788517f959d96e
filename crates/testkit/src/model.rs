//! A scripted model: a server with the APIs of language models, which answers as the test says.
//!
//! It supports Anthropic's `POST /v1/messages` and OpenAI's `POST /v1/chat/completions`, streamed,
//! and the model lists of both. The path of the request selects the API.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use http::Method;
use serde_json::{Value, json};

use crate::server::{HttpServer, Received, Reply, Stream};

/// The models that the server lists.
pub const MODELS: [&str; 2] = ["scripted-large", "scripted-small"];

/// An API of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the APIs that are spoken"
)]
pub enum Dialect {
    /// The Messages API.
    Anthropic,
    /// Chat completions.
    OpenAi,
}

impl Dialect {
    /// Both APIs.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// The events at the beginning of a stream.
    pub fn opening(self) -> String {
        match self {
            Self::Anthropic => {
                let message = json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "content": [],
                    "model": MODELS[0], "stop_reason": null,
                    "usage": {"input_tokens": 7, "output_tokens": 1},
                });
                let block = json!({"type": "text", "text": ""});
                [
                    event(&json!({"type": "message_start", "message": message})),
                    event(&json!({
                        "type": "content_block_start", "index": 0, "content_block": block,
                    })),
                    event(&json!({"type": "ping"})),
                ]
                .concat()
            }
            Self::OpenAi => chunk(&json!([{
                "index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null,
            }])),
        }
    }

    /// The event for a chunk of text.
    pub fn piece(self, text: &str) -> String {
        match self {
            Self::Anthropic => {
                let delta = json!({"type": "text_delta", "text": text});
                event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
            }
            Self::OpenAi => chunk(&json!([{
                "index": 0, "delta": {"content": text}, "finish_reason": null,
            }])),
        }
    }

    /// The events for a call of a tool, the one at this position, with its input in two pieces.
    fn call(self, position: usize, call: &ScriptedCall) -> String {
        let ScriptedCall { id, name, input } = call;
        let mut middle = (0..=input.len() / 2).rev();
        let middle = middle.find(|&at| input.is_char_boundary(at));
        let (begin, end) = input.split_at(middle.unwrap_or_default());
        match self {
            Self::Anthropic => {
                // The text before the calls has index 0.
                let index = position + 1;
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                let piece = |json: &str| {
                    let delta = json!({"type": "input_json_delta", "partial_json": json});
                    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
                };
                [
                    event(&json!({
                        "type": "content_block_start", "index": index, "content_block": block,
                    })),
                    piece(begin),
                    piece(end),
                    event(&json!({"type": "content_block_stop", "index": index})),
                ]
                .concat()
            }
            Self::OpenAi => {
                let delta = |call: Value| {
                    chunk(&json!([{
                        "index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null,
                    }]))
                };
                let function = json!({"name": name, "arguments": begin});
                [
                    delta(json!({
                        "index": position, "id": id, "type": "function", "function": function,
                    })),
                    delta(json!({"index": position, "function": {"arguments": end}})),
                ]
                .concat()
            }
        }
    }

    /// The events at the end of a complete stream, with a usage of seven input and three output
    /// tokens.
    pub fn closing(self) -> String {
        self.end(match self {
            Self::Anthropic => "end_turn",
            Self::OpenAi => "stop",
        })
    }

    fn end(self, stop_reason: &str) -> String {
        match self {
            Self::Anthropic => [
                event(&json!({"type": "content_block_stop", "index": 0})),
                event(&json!({
                    "type": "message_delta", "delta": {"stop_reason": stop_reason},
                    "usage": {"output_tokens": 3},
                })),
                event(&json!({"type": "message_stop"})),
            ]
            .concat(),
            Self::OpenAi => {
                let usage = json!({
                    "object": "chat.completion.chunk", "model": MODELS[0], "choices": [],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                });
                let stopped = json!([{"index": 0, "delta": {}, "finish_reason": stop_reason}]);
                [chunk(&stopped), data(&usage), "data: [DONE]\n\n".to_owned()].concat()
            }
        }
    }

    /// An error event within a stream.
    pub fn failure(self, message: &str) -> String {
        let error = json!({"type": "overloaded_error", "message": message});
        match self {
            Self::Anthropic => event(&json!({"type": "error", "error": error})),
            Self::OpenAi => data(&json!({"error": error})),
        }
    }

    /// An error response.
    pub fn refusal(self, status: u16, message: &str) -> Reply {
        let error = json!({"type": "refusal", "message": message});
        let body = match self {
            Self::Anthropic => json!({"type": "error", "error": error}),
            Self::OpenAi => json!({"error": error}),
        };
        Reply::status(status).with_json(&body.to_string())
    }
}

/// A call of a tool in an answer of the model.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "tests construct it with a struct literal"
)]
pub struct ScriptedCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input, JSON or not.
    pub input: String,
}

/// The reaction of the model to a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Turn {
    /// A complete answer of these chunks.
    Says(Vec<String>),
    /// A complete answer: a text, then calls of tools.
    Calls(String, Vec<ScriptedCall>),
    /// These chunks; the stream ends early.
    StopsAfter(Vec<String>),
    /// An error response with this status and message.
    Refuses(u16, String),
    /// These chunks, then an error event with this message.
    FailsAfter(Vec<String>, String),
    /// Exactly this reply.
    Answers(Reply),
}

impl Turn {
    /// A complete answer of these chunks.
    pub fn says(pieces: &[&str]) -> Self {
        Self::Says(owned(pieces))
    }

    /// A complete answer with calls of these tools with these inputs. Their ids are `call-1` and so
    /// on.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let calls = calls.iter().enumerate();
        let calls = calls.map(|(position, (name, input))| ScriptedCall {
            id: format!("call-{}", position + 1),
            name: (*name).to_owned(),
            input: input.to_string(),
        });
        Self::Calls(String::new(), calls.collect())
    }

    /// These chunks; the stream ends early.
    pub fn stops_after(pieces: &[&str]) -> Self {
        Self::StopsAfter(owned(pieces))
    }

    /// A stream to which the test writes.
    pub fn held() -> (Self, Stream) {
        let (reply, stream) = Reply::stream();
        (Self::Answers(reply), stream)
    }

    fn reply(self, dialect: Dialect) -> Reply {
        let streamed = |pieces: Vec<String>, end: &str| {
            let pieces: String = pieces.iter().map(|piece| dialect.piece(piece)).collect();
            let body = [&dialect.opening(), &pieces, end].concat();
            Reply::status(200).with_body("text/event-stream; charset=utf-8", &body)
        };
        match self {
            Self::Says(pieces) => streamed(pieces, &dialect.closing()),
            Self::Calls(text, calls) => {
                let calls = calls.iter().enumerate();
                let calls: String = calls
                    .map(|(position, call)| dialect.call(position, call))
                    .collect();
                let end = match dialect {
                    Dialect::Anthropic => dialect.end("tool_use"),
                    Dialect::OpenAi => dialect.end("tool_calls"),
                };
                streamed(vec![text], &[calls, end].concat())
            }
            Self::StopsAfter(pieces) => streamed(pieces, ""),
            Self::FailsAfter(pieces, message) => streamed(pieces, &dialect.failure(&message)),
            Self::Refuses(status, message) => dialect.refusal(status, &message),
            Self::Answers(reply) => reply,
        }
    }
}

/// A server that answers each question with the next turn. Ends when dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    server: HttpServer,
}

impl ScriptedModel {
    /// Starts a model with these turns, one for each question. Further requests are refused.
    pub async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns = Mutex::new(turns.into_iter().collect::<VecDeque<_>>());
        let server = HttpServer::start(move |request| {
            let Some(dialect) = dialect(request) else {
                return Reply::status(404);
            };
            if request.method == Method::GET {
                return Reply::json(&models());
            }
            let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
            match turns.pop_front() {
                Some(turn) => turn.reply(dialect),
                None => dialect.refusal(500, "the script has no more turns"),
            }
        })
        .await;
        Self { server }
    }

    /// The base URL for a client of this dialect.
    pub fn base_url(&self, dialect: Dialect) -> String {
        let url = self.server.url();
        let origin = url.strip_suffix("/mcp").unwrap_or(&url);
        match dialect {
            Dialect::Anthropic => origin.to_owned(),
            Dialect::OpenAi => format!("{origin}/v1"),
        }
    }

    /// All questions so far.
    pub fn questions(&self) -> Vec<Received> {
        let mut requests = self.server.all();
        requests.retain(|request| request.method == Method::POST);
        requests
    }

    /// Waits for the next question.
    pub async fn asked(&self) -> Received {
        self.server.requested(Method::POST).await
    }
}

fn dialect(request: &Received) -> Option<Dialect> {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/v1/messages" => Some(Dialect::Anthropic),
        // Both APIs have this path for their models.
        "/v1/models" if request.header("anthropic-version").is_some() => Some(Dialect::Anthropic),
        "/v1/chat/completions" | "/v1/models" => Some(Dialect::OpenAi),
        _ => None,
    }
}

fn models() -> Value {
    let models: Vec<_> = MODELS.iter().map(|id| json!({"id": id})).collect();
    json!({"data": models, "has_more": false})
}

fn event(payload: &Value) -> String {
    let name = payload["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {payload}\n\n")
}

fn chunk(choices: &Value) -> String {
    data(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": MODELS[0],
        "choices": choices,
    }))
}

fn data(payload: &Value) -> String {
    format!("data: {payload}\n\n")
}

fn owned(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).to_owned()).collect()
}
