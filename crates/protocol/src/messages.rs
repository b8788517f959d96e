//! The messages Plexus itself writes and reads, in their newest form.
//!
//! One set of types serves every revision: they hold the superset, and [`convert`](crate::convert)
//! lowers the encoded message for a peer of an older revision. A gateway relays most messages
//! without decoding them. These types are for messages that Plexus originates, and for those that a
//! handler must decode. Members a type does not name are ignored when it is decoded.
//!
//! ```
//! use plexus_mcp_protocol::messages::{CallToolResult, ContentBlock, Tool};
//!
//! let tool = Tool::new("echo").title("Echo").description("Says it again");
//! assert!(tool.to_raw().as_str().contains(r#""title":"Echo""#));
//!
//! let result = CallToolResult::new([ContentBlock::text("hello")]);
//! assert!(!result.is_error);
//! ```

mod annotations;
mod call;
mod capabilities;
mod codec;
mod completion;
mod content;
mod discover;
mod elicitation;
mod flat;
mod input;
mod lifecycle;
mod list;
mod log;
mod progress;
mod prompt;
mod resource;
mod roots;
mod sampling;
mod subscribe;
mod tool;

pub(crate) use codec::to_raw;

pub use annotations::{Annotations, Role};
pub use call::{CallToolParams, CallToolResult};
pub use capabilities::{
    ClientCapabilities, ClientCapability, ElicitationCapability, InvalidCapabilities,
    ListCapability, ResourcesCapability, SamplingCapability, ServerCapabilities,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference,
};
pub use content::{ContentBlock, EmbeddedResource, MediaContent, ResourceContents, TextContent};
pub use discover::{CacheScope, DiscoverResult};
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
};
pub use flat::FlatContent;
pub use input::{InputRequest, InputRequiredResult};
pub use lifecycle::{CancelledParams, Implementation, InitializeParams, InitializeResult};
pub use list::{
    ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult,
};
pub use log::{LogLevel, LoggingMessageParams, SetLevelParams, UnknownLogLevel};
pub use progress::ProgressParams;
pub use prompt::{GetPromptParams, GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use resource::{ReadResourceResult, Resource, ResourceTemplate, ResourceUriParams};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode, ToolResultContent,
    ToolUseContent,
};
pub use subscribe::{ListenParams, SubscriptionFilter};
pub use tool::{Icon, Tool, ToolAnnotations};

#[cfg(test)]
mod tests;
