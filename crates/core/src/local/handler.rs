//! Handlers, with their types erased.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::messages::{
    Completion, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents,
};
use plexus_mcp_protocol::schema::{InvalidSchema, Validator};
use plexus_mcp_wire::{Object, Raw};

use crate::call::Boxed;
use crate::context::Context;
use crate::tool_result::ToolResult;
use crate::uri_template::{UriTemplate, Variables};

pub(super) type ToolHandler = Arc<dyn Fn(Object, Context) -> Boxed<ToolResult> + Send + Sync>;
type ResourceHandler =
    Arc<dyn Fn(String, Context) -> Boxed<Result<ReadResourceResult, Fault>> + Send + Sync>;
type TemplateHandler = Arc<
    dyn Fn(String, Variables, Context) -> Boxed<Result<ReadResourceResult, Fault>> + Send + Sync,
>;
type PromptHandler = Arc<
    dyn Fn(BTreeMap<String, String>, Context) -> Boxed<Result<GetPromptResult, Fault>>
        + Send
        + Sync,
>;
pub(super) type Completer =
    Arc<dyn Fn(String, BTreeMap<String, String>) -> Boxed<Completion> + Send + Sync>;

#[derive(Clone)]
pub(super) struct ToolSlot {
    pub(super) definition: Raw,
    pub(super) input: Arc<InputCheck>,
    pub(super) handler: ToolHandler,
}

/// The input schema of a tool, compiled by the first call: most tools of a process are never called.
pub(super) struct InputCheck {
    schema: Raw,
    compiled: OnceLock<Result<Validator, InvalidSchema>>,
}

impl InputCheck {
    pub(super) fn new(schema: Raw) -> Self {
        let compiled = OnceLock::new();
        Self { schema, compiled }
    }

    /// The validator of arguments against the schema, compiled on first use.
    ///
    /// # Errors
    /// The schema cannot be used.
    pub(super) fn validator(&self) -> Result<&Validator, &InvalidSchema> {
        let compile = || Validator::compile_tool_input(&self.schema);
        self.compiled.get_or_init(compile).as_ref()
    }
}

#[derive(Clone)]
pub(super) struct ResourceSlot {
    pub(super) definition: Raw,
    pub(super) handler: ResourceHandler,
}

#[derive(Clone)]
pub(super) struct TemplateSlot {
    pub(super) definition: Raw,
    pub(super) pattern: UriTemplate,
    pub(super) handler: TemplateHandler,
}

#[derive(Clone)]
pub(super) struct PromptSlot {
    pub(super) definition: Raw,
    pub(super) required: Vec<String>,
    pub(super) handler: PromptHandler,
}

/// The handler that reads a given URI, of a resource or of a template.
pub(super) enum Reader {
    Resource(ResourceHandler),
    Template(TemplateHandler, Variables),
}

impl Reader {
    pub(super) fn read(
        self,
        uri: String,
        context: Context,
    ) -> Boxed<Result<ReadResourceResult, Fault>> {
        match self {
            Self::Resource(handler) => handler(uri, context),
            Self::Template(handler, variables) => handler(uri, variables, context),
        }
    }
}

/// Return types of resource handlers.
pub trait IntoContents {
    /// The contents that were read, or why there are none.
    ///
    /// # Errors
    /// The error that the handler returned.
    fn into_contents(self) -> Result<ReadResourceResult, Fault>;
}

impl IntoContents for ResourceContents {
    fn into_contents(self) -> Result<ReadResourceResult, Fault> {
        Ok(ReadResourceResult::new([self]))
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self) -> Result<ReadResourceResult, Fault> {
        Ok(ReadResourceResult::new(self))
    }
}

impl<T: IntoContents, E: Into<Fault>> IntoContents for Result<T, E> {
    fn into_contents(self) -> Result<ReadResourceResult, Fault> {
        self.map_err(Into::into).and_then(T::into_contents)
    }
}

/// Return types of prompt handlers.
pub trait IntoPrompt {
    /// The messages, or why there are none.
    ///
    /// # Errors
    /// The error that the handler returned.
    fn into_prompt(self) -> Result<GetPromptResult, Fault>;
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> Result<GetPromptResult, Fault> {
        vec![self].into_prompt()
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<GetPromptResult, Fault> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> Result<GetPromptResult, Fault> {
        Ok(self)
    }
}

impl<T: IntoPrompt, E: Into<Fault>> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<GetPromptResult, Fault> {
        self.map_err(Into::into).and_then(T::into_prompt)
    }
}
