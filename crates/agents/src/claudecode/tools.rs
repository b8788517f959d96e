//! The tools `claudecode.*`.

mod arguments;

use std::time::Duration;

use plexus_mcp_core::{
    Builder, CallToolResult, Context, Json, Raw, Tool, ToolAnnotations, ToolError, ToolResult,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use self::arguments::{ChatArguments, CreateSession, Fork, NoArguments, Poll, SessionName};
use super::ClaudeCode;
use super::chat::Chat;
use super::event::{ChatEvent, Complete};
use super::sessions::Session;
use super::streams::{Polled, Summary};
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::support::to_json;
use plexus_mcp_builtins::support::{destructive, non_destructive, read_only};

/// Capacity of the queue between a chat and the relay of its events.
const EVENT_QUEUE_CAPACITY: usize = 64;
/// How long an agent may take to exit when its session is deleted.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Adds the tools of sessions.
pub fn claudecode(builder: Builder, names: Names, claude: &ClaudeCode) -> Builder {
    let tool = |method| names.tool("claudecode", method);
    let mut chat_tool = runs_agent(tool("chat")).title("Chat").description(
        "Chat with a Claude Code session: ask, and wait until it has answered. What it says and \
         does is streamed",
    );
    if let Ok(schema) = Raw::encode(&schemars::schema_for!(Complete)) {
        chat_tool = chat_tool.output_schema(schema);
    }
    builder
        .tool(
            non_destructive(tool("create"))
                .title("Create session")
                                .description("Create a session of Claude Code in a working directory"),
            with(claude, create),
        )
        .tool(chat_tool, with(claude, chat))
        .tool(
            runs_agent(tool("chat_async"))
                .title("Chat in the background")
                .description(
                    "Chat with a Claude Code session without waiting for the answer: poll the \
                     stream to see what happens",
                ),
            with(claude, chat_async),
        )
        .tool(
            read_only(tool("poll")).title("Poll a chat").description(
                                "Get the events of a chat in the background; waits until there are some",
            ),
            with(claude, poll),
        )
        .tool(
            read_only(tool("streams"))
                .title("List chats")
                                .description("List the chats in the background, including those that ended in the last hour"),
            with(claude, streams),
        )
        .tool(
            read_only(tool("get"))
                .title("Get session")
                                .description("Get a session"),
            with(claude, get),
        )
        .tool(
            read_only(tool("list"))
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
            non_destructive(tool("fork"))
                .title("Fork session")
                .description(
                                    "Create a session that continues the conversation of another, which stays unchanged",
                ),
            with(claude, fork),
        )
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SessionList {
    /// All sessions, in the order in which they were created
    sessions: Vec<Session>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Started {
    /// The stream's id, for `poll`
    stream_id: String,
    /// The name of the session
    session_name: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ChatList {
    /// The chats, the oldest first
    streams: Vec<Summary>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct DeletedSession {
    /// The name of the deleted session
    deleted: String,
}

async fn create(claude: ClaudeCode, new: CreateSession, _: Context) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.create(new.into()).await?))
}

async fn get(
    claude: ClaudeCode,
    SessionName { name }: SessionName,
    _: Context,
) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.get(&name).await?))
}

async fn list(claude: ClaudeCode, _: NoArguments, _: Context) -> ToolResult<Json<SessionList>> {
    let sessions = claude.sessions.list().await?;
    Ok(Json(SessionList { sessions }))
}

async fn delete(
    claude: ClaudeCode,
    SessionName { name }: SessionName,
    _: Context,
) -> ToolResult<Json<DeletedSession>> {
    let session = claude.sessions.get(&name).await?;
    let timeout = if claude.streams.cancel(&session.name) {
        EXIT_TIMEOUT
    } else {
        Duration::ZERO
    };
    let deleted = claude.sessions.delete(&name, timeout).await?.name;
    Ok(Json(DeletedSession { deleted }))
}

async fn fork(
    claude: ClaudeCode,
    Fork { name, new_name }: Fork,
    _: Context,
) -> ToolResult<Json<Session>> {
    Ok(Json(claude.sessions.fork(&name, new_name).await?))
}

/// C16, S003-42: the text of the agent, then a line for each tool call, then the failure, if any.
async fn chat(claude: ClaudeCode, arguments: ChatArguments, context: Context) -> ToolResult {
    let chat = Chat::begin(&claude, arguments.into()).await?;
    let (sender, mut events) = mpsc::channel(EVENT_QUEUE_CAPACITY);
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
        let failure = failure.unwrap_or_else(|| "the chat ended without a result".to_owned());
        return Err(ToolError::Failed(failure));
    };
    let mut result = CallToolResult::new(Vec::new());
    result.structured_content = Some(to_json(&complete)?);
    Ok(result)
}

async fn chat_async(
    claude: ClaudeCode,
    arguments: ChatArguments,
    _: Context,
) -> ToolResult<Json<Started>> {
    let chat = Chat::begin(&claude, arguments.into()).await?;
    let stream = claude.streams.open(chat.session_name())?;
    let started = Started {
        stream_id: stream.id.clone(),
        session_name: stream.session_name.clone(),
    };
    claude.tasks.spawn(async move {
        let (sender, mut events) = mpsc::channel(EVENT_QUEUE_CAPACITY);
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
    let timeout = Duration::from_millis(poll.wait_ms);
    Ok(Json(stream.poll(poll.from_seq, limit, timeout).await))
}

async fn streams(claude: ClaudeCode, _: NoArguments, _: Context) -> ToolResult<Json<ChatList>> {
    let streams = claude.streams.list();
    Ok(Json(ChatList { streams }))
}

/// Makes a handler that gets a [`ClaudeCode`].
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

/// Annotates a tool that runs an agent, which may do anything that is permitted.
fn runs_agent(tool: Tool) -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true);
    tool.annotations(hints.idempotent(false).open_world(true))
}
