//! The era-neutral core of Plexus: everything that answers MCP calls is a [`Service`].
//!
//! A service offers a [`Catalogue`] and carries out [`Call`]s. On its way a call yields
//! [`Event`]s (progress, log messages, pieces of the answer, questions to the caller), and ends with
//! one [`Outcome`]. Revisions and transports are the business of the edges: a handler is written
//! once, and never asks which era it is in.
//!
//! Most services are written with [`LocalService`]:
//!
//! ```
//! use plexus_service::{Context, LocalService, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! let service = LocalService::builder("greeter", "1.0.0")
//!     .tool(
//!         Tool::new("greet").description("Greets somebody"),
//!         async |Greet { name }: Greet, ctx: Context| {
//!             ctx.progress(1.0, Some(2.0), "thinking of a greeting").await;
//!             format!("Hello, {name}!")
//!         },
//!     )
//!     .build()?;
//! # Ok::<(), plexus_service::BuildError>(())
//! ```
//!
//! What is deliberately absent: sockets, sessions, JSON-RPC ids, protocol versions.
//!
//! Dropping the future of [`Service::call`] abandons the call; its [`Context`] then reports it as
//! cancelled to whatever the handler started.

mod call;
mod catalogue;
mod context;
mod event;
mod local;
mod peer;
mod tool_result;
mod uri_template;

pub use call::{Boxed, Call, Outcome, Service, Updates};
pub use catalogue::{CacheHints, Catalogue, Changes, Entry, InvalidDefinition, List, Section};
pub use context::Context;
pub use event::{Ask, AskError, Event, EventReceiver, EventSender, Log, Progress, Question};
pub use local::{BuildError, Builder, IntoContents, IntoPrompt, LocalService};
pub use peer::{Peer, Principal};
pub use tool_result::{IntoToolResult, Json, ToolError};
pub use uri_template::{InvalidTemplate, UriTemplate, Variables};

pub use plexus_mcp::Fault;
pub use plexus_mcp::messages::{
    Annotations, CallToolResult, ClientCapability, ContentBlock, CreateMessageParams,
    CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, Icon, Implementation, LogLevel,
    Prompt, PromptArgument, PromptMessage, Resource, ResourceContents, ResourceTemplate, Role,
    Root, SamplingMessage, Tool, ToolAnnotations,
};
pub use plexus_wire::Raw;
