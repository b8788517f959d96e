//! Sessions and chats as tools.

mod arguments;

use std::time::Duration;

use plexus_service::{
    Builder, CallToolResult, Context, Json, Raw, Tool, ToolAnnotations, ToolError, ToolResult,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use self::arguments::{Asked, Create, Fork, NoArguments, Of, Poll};
use super::ClaudeCode;
use super::chat::Chat;
use super::event::{ChatEvent, Complete};
use super::sessions::Session;
use super::streams::{Polled, Summary};
use crate::hints::{changing, destructive, reading};
use crate::json::encoded;
use crate::names::Names;

/// How many events may wait for whoever relays them.
const QUEUE: usize = 64;
/// How long an agent may take to end whose session is deleted.
const ENDING: Duration = Duration::from_secs(10);

/// Adds the tools of sessions.
pub fn claudecode(builder: Builder, names: Names, claude: &ClaudeCode) -> Builder {
    let tool = |method| names.tool("claudecode", method);
    let mut chatting = working(tool("chat")).title("Chat").description(
        "Chat with a Claude Code session: ask, and wait until it has answered. What it says and \
         does is streamed",
    );
    if let Ok(schema) = Raw::encode(&schemars::schema_for!(Complete)) {
        chatting = chatting.output_schema(schema);
    }
    builder
        .tool(
            changing(tool("create"))
                .title("Create session")
                .description("Create a session of Claude Code in a folder"),
            with(claude, create),
        )
        .tool(chatting, with(claude, chat))
        .tool(
            working(tool("chat_async"))
                .title("Chat in the background")
                .description(
                    "Chat with a Claude Code session without waiting for the answer: poll the \
                     stream to see what happens",
                ),
            with(claude, chat_async),
        )
        .tool(
            reading(tool("poll")).title("Poll a chat").description(
                "Get what happened in a chat in the background, or wait until something does",
            ),
            with(claude, poll),
        )
        .tool(
            reading(tool("streams"))
                .title("List chats")
                .description("List the chats in the background, those of the last hour included"),
            with(claude, streams),
        )
        .tool(
            reading(tool("get"))
                .title("Get session")
                .description("Get one session"),
            with(claude, get),
        )
        .tool(
            reading(tool("list"))
                .title("List sessions")
                .description("List all sessions"),
            with(claude, list),
        )
        .tool(
            destructive(tool("delete"))
                .title("Delete session")
                .description(
                    "Delete a session. A chat of it in the background is ended; another must have \
                     ended before",
                ),
            with(claude, delete),
        )
        .tool(
            changing(tool("fork")).title("Fork session").description(
                "Create a session that goes on from where another is, which stays as it is",
            ),
            with(claude, fork),
        )
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Sessions {
    /// All of them, in the order in which they were created
    sessions: Vec<Session>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Started {
    /// By which the chat is polled
    stream_id: String,
    /// The session that chats
    session_name: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Streams {
    /// The chats, the oldest first
    streams: Vec<Summary>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// The name of the session that is gone
    deleted: String,
}

async fn create(claude: ClaudeCode, new: Create, _: Context) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.create(new.into()).await?))
}

async fn get(claude: ClaudeCode, Of { name }: Of, _: Context) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.get(&name).await?))
}

async fn list(claude: ClaudeCode, _: NoArguments, _: Context) -> ToolResult<Json<Sessions>> {
    let sessions = claude.sessions.list().await?;
    Ok(Json(Sessions { sessions }))
}

async fn delete(claude: ClaudeCode, Of { name }: Of, _: Context) -> ToolResult<Json<Deleted>> {
    let session = claude.sessions.get(&name).await?;
    let patience = if claude.streams.cancel(&session.name) {
        ENDING
    } else {
        Duration::ZERO
    };
    let deleted = claude.sessions.delete(&name, patience).await?.name;
    Ok(Json(Deleted { deleted }))
}

async fn fork(
    claude: ClaudeCode,
    Fork { name, new_name }: Fork,
    _: Context,
) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.fork(&name, new_name).await?))
}

/// C16, S003-42: what the agent said, then a line for each tool that it used, then its failure.
async fn chat(claude: ClaudeCode, asked: Asked, context: Context) -> ToolResult {
    let chat = Chat::begin(&claude, asked.into()).await?;
    let (sender, mut events) = mpsc::channel(QUEUE);
    let mut complete = None;
    let mut failure = None;
    let relay = async {
        while let Some(event) = events.recv().await {
            match event {
                ChatEvent::Content { text } => context.stream(text).await,
                ChatEvent::ToolUse {
                    tool_name, input, ..
                } => {
                    context.tool_used(tool_name, input).await;
                }
                ChatEvent::Permission {
                    approval_id,
                    tool_name,
                } => {
                    let waiting = format!(
                        "\nWaiting for permission to use {tool_name}: answer {approval_id} with \
                         loopback respond\n"
                    );
                    context.stream_uncollected(waiting).await;
                }
                ChatEvent::Thinking { .. }
                | ChatEvent::Start { .. }
                | ChatEvent::ToolResult { .. } => {}
                ChatEvent::Error { message } => failure = Some(message),
                ChatEvent::Complete(end) => complete = Some(end),
            }
        }
    };
    tokio::join!(chat.run(Some(context.clone()), sender), relay);

    let Some(complete) = complete else {
        let failure = failure.unwrap_or_else(|| "the chat was broken off".to_owned());
        return Err(ToolError::Failed(failure));
    };
    let mut result = CallToolResult::new(Vec::new());
    result.structured_content = Some(encoded(&complete)?);
    Ok(result)
}

async fn chat_async(claude: ClaudeCode, asked: Asked, _: Context) -> ToolResult<Json<Started>> {
    let chat = Chat::begin(&claude, asked.into()).await?;
    let stream = claude.streams.open(chat.session_name())?;
    let started = Started {
        stream_id: stream.id.clone(),
        session_name: stream.session_name.clone(),
    };
    claude.tasks.spawn(async move {
        let (sender, mut events) = mpsc::channel(QUEUE);
        let record = async {
            while let Some(event) = events.recv().await {
                stream.push(&event);
            }
        };
        let ended = stream
            .cancel
            .run_until_cancelled(async { tokio::join!(chat.run(None, sender), record) });
        if ended.await.is_none() {
            let message = "the session was deleted".to_owned();
            stream.push(&ChatEvent::Error { message });
        }
    });
    Ok(Json(started))
}

async fn poll(claude: ClaudeCode, poll: Poll, _: Context) -> ToolResult<Json<Polled>> {
    let stream = claude.streams.get(&poll.stream_id)?;
    let limit = usize::try_from(poll.limit).unwrap_or(usize::MAX);
    let patience = Duration::from_millis(poll.wait_ms);
    Ok(Json(stream.poll(poll.from_seq, limit, patience).await))
}

async fn streams(claude: ClaudeCode, _: NoArguments, _: Context) -> ToolResult<Json<Streams>> {
    let streams = claude.streams.list();
    Ok(Json(Streams { streams }))
}

/// A handler that is given what chats need.
fn with<Args, Fut>(
    claude: &ClaudeCode,
    handler: fn(ClaudeCode, Args, Context) -> Fut,
) -> impl Fn(Args, Context) -> Fut + Send + Sync + 'static
where
    Args: 'static,
    Fut: 'static,
{
    let claude = claude.clone();
    move |arguments, context| handler(claude.clone(), arguments, context)
}

/// An agent can do anything that it is permitted to.
fn working(tool: Tool) -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true);
    tool.annotations(hints.idempotent(false).open_world(true))
}
