//! A scripted model: a server that speaks the APIs of language models and says what a test tells it
//! to, right or wrong.
//!
//! It understands Anthropic's `POST /v1/messages` and OpenAI's `POST /v1/chat/completions`, streamed,
//! and the lists of models of both. Which of the two is spoken is told by the request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use http::Method;
use serde_json::{Value, json};

use crate::server::{HttpServer, Received, Reply, Stream};

/// The models that the server says it has.
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
    /// Both.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// How a stream begins.
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

    /// A piece of what the model says.
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

    /// How a complete stream ends: seven tokens were read, and three written.
    pub fn closing(self) -> String {
        match self {
            Self::Anthropic => [
                event(&json!({"type": "content_block_stop", "index": 0})),
                event(&json!({
                    "type": "message_delta", "delta": {"stop_reason": "end_turn"},
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
                let stopped = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
                [chunk(&stopped), data(&usage), "data: [DONE]\n\n".to_owned()].concat()
            }
        }
    }

    /// A failure on the way.
    pub fn failure(self, message: &str) -> String {
        let error = json!({"type": "overloaded_error", "message": message});
        match self {
            Self::Anthropic => event(&json!({"type": "error", "error": error})),
            Self::OpenAi => data(&json!({"error": error})),
        }
    }

    /// A refusal, as the body of an answer.
    pub fn refusal(self, status: u16, message: &str) -> Reply {
        let error = json!({"type": "refusal", "message": message});
        let body = match self {
            Self::Anthropic => json!({"type": "error", "error": error}),
            Self::OpenAi => json!({"error": error}),
        };
        Reply::status(status).with_json(&body.to_string())
    }
}

/// What the model does when it is asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Turn {
    /// It says these pieces, and is done.
    Says(Vec<String>),
    /// It says these pieces, and the stream ends without an end.
    StopsAfter(Vec<String>),
    /// It refuses with this status and message.
    Refuses(u16, String),
    /// Its server fails after these pieces, with this message.
    FailsAfter(Vec<String>, String),
    /// It answers with exactly this.
    Answers(Reply),
}

impl Turn {
    /// It says these pieces, and is done.
    pub fn says(pieces: &[&str]) -> Self {
        Self::Says(owned(pieces))
    }

    /// It says these pieces, and the stream ends without an end.
    pub fn stops_after(pieces: &[&str]) -> Self {
        Self::StopsAfter(owned(pieces))
    }

    /// It answers with what the test goes on writing, in the dialect that the test expects.
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
            Self::StopsAfter(pieces) => streamed(pieces, ""),
            Self::FailsAfter(pieces, message) => streamed(pieces, &dialect.failure(&message)),
            Self::Refuses(status, message) => dialect.refusal(status, &message),
            Self::Answers(reply) => reply,
        }
    }
}

/// A model that answers each question as it is told. Ends when dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    server: HttpServer,
}

impl ScriptedModel {
    /// A model that takes these turns, one for each question. Whoever asks more often is refused.
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

    /// The base URL that a client of this dialect is given.
    pub fn base_url(&self, dialect: Dialect) -> String {
        let url = self.server.url();
        let origin = url.strip_suffix("/mcp").unwrap_or(&url);
        match dialect {
            Dialect::Anthropic => origin.to_owned(),
            Dialect::OpenAi => format!("{origin}/v1"),
        }
    }

    /// Every question so far.
    pub fn questions(&self) -> Vec<Received> {
        let mut requests = self.server.all();
        requests.retain(|request| request.method == Method::POST);
        requests
    }

    /// The next question, when it has come.
    pub async fn asked(&self) -> Received {
        self.server.requested(Method::POST).await
    }
}

fn dialect(request: &Received) -> Option<Dialect> {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/v1/messages" => Some(Dialect::Anthropic),
        // Both have their models there.
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
