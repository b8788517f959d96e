//! The era-neutral core of Plexus: everything that answers MCP calls is a [`Service`].
//!
//! A service offers a [`Catalogue`] and carries out [`Call`]s. A call yields [`Event`]s (progress, log
//! messages, pieces of the answer, questions to the caller), and ends with one [`Outcome`]. Only the
//! edges depend on revisions and transports: a handler is written once, for all eras.
//!
//! Most services are written with [`LocalService`]:
//!
//! ```
//! use plexus_mcp_core::{Context, LocalService, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! let service = LocalService::builder("greeter", "1.0.0")
//!     .tool(
//!         Tool::new("greet").description("Greets a person"),
//!         async |Greet { name }: Greet, ctx: Context| {
//!             ctx.progress(1.0, Some(2.0), "thinking of a greeting").await;
//!             format!("Hello, {name}!")
//!         },
//!     )
//!     .build()?;
//! # Ok::<(), plexus_mcp_core::BuildError>(())
//! ```
//!
//! # Handlers
//!
//! A handler is an async function of its arguments and a [`Context`]. Its return value becomes the
//! result: a text, content blocks, a whole [`CallToolResult`], or a [`ToolResult`] of any of these.
//! Arguments are validated against their schema before the handler sees them; [`NoArguments`] is
//! for tools that have none.
//!
//! An async closure will do as long as it captures nothing. State is captured by an ordinary closure
//! that clones it for every call. Longer handlers are `async fn`s:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use plexus_mcp_core::{Context, LocalService, NoArguments, Tool, ToolError, ToolResult};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Division {
//!     dividend: i64,
//!     divisor: i64,
//! }
//!
//! async fn divide(Division { dividend, divisor }: Division, _: Context) -> ToolResult<String> {
//!     match dividend.checked_div(divisor) {
//!         Some(quotient) => Ok(quotient.to_string()),
//!         // The model reads this as the result of the call, and may try again.
//!         None => Err(ToolError::failed("there is no such number")),
//!     }
//! }
//!
//! let visits = Arc::new(AtomicU64::new(0));
//! let service = LocalService::builder("calculator", "1.0.0")
//!     .tool(Tool::new("divide"), divide)
//!     .tool(Tool::new("visit"), move |_: NoArguments, _: Context| {
//!         let visits = Arc::clone(&visits);
//!         async move { format!("visit {}", visits.fetch_add(1, Ordering::Relaxed) + 1) }
//!     })
//!     .build()?;
//! # Ok::<(), plexus_mcp_core::BuildError>(())
//! ```
//!
//! A [`Json`] result is structured, and declares its schema. Whatever its revision, the caller can be
//! asked for more input during a call, if it declared the capability: the user with
//! [`Context::fill_in`] and [`Context::elicit`], the model with [`Context::sample`].
//!
//! ```
//! use plexus_mcp_core::{
//!     Context, ElicitAction, ElicitParams, Json, LocalService, NoArguments, Tool, ToolError,
//!     ToolResult,
//! };
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Room {
//!     /// For how many nights.
//!     #[schemars(range(min = 1, max = 30))]
//!     nights: u32,
//!     breakfast: Option<bool>,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Booking {
//!     number: u32,
//!     /// In euros.
//!     price: u32,
//! }
//!
//! async fn book(_: NoArguments, ctx: Context) -> ToolResult<Json<Booking>> {
//!     let Some(room) = ctx.fill_in::<Room>("Which room would you like?").await? else {
//!         return Err(ToolError::failed("the user does not want a room"));
//!     };
//!     let terms = ElicitParams::url("Please read our terms.", "https://example.com/terms");
//!     if ctx.elicit(terms).await?.action != ElicitAction::Accept {
//!         return Err(ToolError::failed("the user did not accept the terms"));
//!     }
//!     let breakfast = if room.breakfast.unwrap_or(false) { 12 } else { 0 };
//!     let price = room.nights * (80 + breakfast);
//!     Ok(Json(Booking { number: 7, price }))
//! }
//!
//! let service = LocalService::builder("hotel", "1.0.0")
//!     .tool(Tool::new("book").description("Books a room"), book)
//!     .build()?;
//! # Ok::<(), plexus_mcp_core::BuildError>(())
//! ```
//!
//! # Resources and prompts
//!
//! Resources are read by URI. A template covers many of them, and passes its handler the URI and
//! the values of the variables in it. A completer proposes values for arguments of prompts and
//! variables of templates while a user types.
//!
//! ```
//! use plexus_mcp_core::{
//!     Context, Fault, LocalService, Prompt, PromptArgument, PromptMessage, Resource,
//!     ResourceContents, ResourceTemplate,
//! };
//!
//! const LANGUAGES: [&str; 3] = ["german", "greek", "latin"];
//!
//! #[derive(serde::Deserialize)]
//! struct Page {
//!     number: u32,
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Translation {
//!     text: String,
//!     language: Option<String>,
//! }
//!
//! let service = LocalService::builder("library", "1.0.0")
//!     .resource(
//!         Resource::new("book://cover", "cover").mime_type("text/plain"),
//!         async |uri: String, _: Context| ResourceContents::text(uri, "De rerum natura"),
//!     )
//!     .template(
//!         ResourceTemplate::new("book://pages/{number}", "page"),
//!         async |uri: String, Page { number }: Page, _: Context| match number {
//!             1 => Ok(ResourceContents::text(uri, "Aeneadum genetrix")),
//!             _ => Err(Fault::ResourceNotFound(uri)),
//!         },
//!     )
//!     .prompt(
//!         Prompt::new("translate")
//!             .argument(PromptArgument::new("text").required())
//!             .argument(PromptArgument::new("language")),
//!         async |Translation { text, language }: Translation, _: Context| {
//!             let language = language.unwrap_or_else(|| "english".to_owned());
//!             PromptMessage::user(format!("Translate this to {language}: {text}"))
//!         },
//!     )
//!     .complete_prompt("translate", "language", async |typed: String, _| {
//!         LANGUAGES.into_iter().filter(move |language| language.starts_with(&typed))
//!     })
//!     .build()?;
//! # Ok::<(), plexus_mcp_core::BuildError>(())
//! ```
//!
//! # Elsewhere
//!
//! Sockets, sessions, JSON-RPC ids and protocol versions are deliberately absent from this crate.
//!
//! Dropping the future of [`Service::call`] abandons the call and drops its handler. Work that the
//! handler started in other tasks can wait for [`Context::cancelled`].

pub mod bm25;
mod call;
mod call_span;
mod catalogue;
mod client;
mod context;
mod credential;
mod event;
mod excerpt;
mod form;
mod layer;
mod local;
mod peer;
mod schema;
mod secret_name;
mod tool_result;
mod uri_template;
pub mod wire_log;

pub use call::{Boxed, Call, Outcome, Service, Updates};
pub use call_span::{CallSpan, TraceCalls, record_server_revision};
pub use catalogue::{CacheHints, Catalogue, Changes, Entry, InvalidDefinition, List, Section};
pub use client::{CallStream, Client, QuestionHandler, Request};
pub use context::Context;
pub use credential::{Credential, Credentials};
pub use event::{
    Ask, AskError, Event, EventReceiver, EventSender, Log, Progress, Question, ToolUse,
};
pub use excerpt::Excerpt;
pub use layer::{Layer, Layered};
pub use local::{BuildError, Builder, IntoContents, IntoPrompt, LocalService};
pub use peer::{Peer, Presence, Principal, Scopes};
pub use schema::NoArguments;
pub use secret_name::is_secret_name;
pub use tool_result::{IntoToolResult, Json, ToolError, ToolResult};
pub use uri_template::{InvalidTemplate, UriTemplate, Variables};

pub use plexus_mcp_protocol::Fault;
pub use plexus_mcp_protocol::messages::{
    Annotations, CallToolResult, ClientCapability, CompletionContext, CompletionReference,
    ContentBlock, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams,
    ElicitResult, Icon, Implementation, LogLevel, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceContents, ResourceTemplate, Role, Root, SamplingContent, SamplingMessage, Tool,
    ToolAnnotations,
};
pub use plexus_mcp_wire::{Limits, Object, Raw, RpcError};
