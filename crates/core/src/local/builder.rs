//! Putting a [`LocalService`] together.

mod offer;

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::messages::{
    Completion, CompletionReference, Implementation, Prompt, Resource, ResourceTemplate, Tool,
};
use plexus_mcp_protocol::schema::InvalidSchema;
use plexus_mcp_wire::{Object, Raw};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::LocalService;
use super::handler::{
    Completer, InputCheck, IntoContents, IntoPrompt, PromptSlot, ResourceSlot, TemplateSlot,
    ToolHandler, ToolSlot,
};
use super::registered::Registered;
use super::strings::typed;
use crate::call::Boxed;
use crate::catalogue::{CacheHints, InvalidDefinition};
use crate::context::Context;
use crate::schema;
use crate::tool_result::IntoToolResult;
use crate::uri_template::{InvalidTemplate, UriTemplate};

/// Why a service cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool's input schema cannot be used.
    #[error("tool {name:?}: {source}")]
    Schema {
        /// Which tool.
        name: String,
        /// The error in its schema.
        source: Arc<InvalidSchema>,
    },
    /// A URI template cannot be used.
    #[error(transparent)]
    Template(#[from] InvalidTemplate),
    /// A definition cannot be offered.
    #[error("{name:?}: {source}")]
    Definition {
        /// Its name or URI.
        name: String,
        /// The error in it.
        source: Arc<InvalidDefinition>,
    },
    /// Values are proposed for a prompt or template that is not there.
    #[error("values are proposed for {0:?}, which is not offered")]
    Completion(String),
}

/// The input schema of a tool, and its output schema, if it has one.
type Schemas = (Raw, Option<Raw>);

/// The schemas of a tool with these arguments and results, generated from the types.
fn schemas<Args: JsonSchema, R: IntoToolResult>() -> Schemas {
    let input = schema::to_raw(schemars::schema_for!(Args));
    (input, R::output_schema().map(schema::to_raw))
}

/// Builds a [`LocalService`], or edits one.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option, independent of the others"
)]
pub struct Builder {
    identity: Implementation,
    instructions: Option<String>,
    cache: CacheHints,
    announces_changes: bool,
    logs: bool,
    pub(super) expects_prompts: bool,
    /// Whether definitions of tools are shortened.
    is_concise: bool,
    pub(super) tools: Registered<ToolSlot>,
    resources: Registered<ResourceSlot>,
    templates: Registered<TemplateSlot>,
    pub(super) prompts: Registered<PromptSlot>,
    completers: Vec<(CompletionReference, String, Completer)>,
    /// The first error. `build` returns it, so that calls can be chained.
    error: Option<BuildError>,
}

impl Builder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            identity: Implementation::new(name, version),
            instructions: None,
            cache: CacheHints::NONE,
            announces_changes: true,
            logs: true,
            expects_prompts: false,
            is_concise: false,
            tools: Registered::default(),
            resources: Registered::default(),
            templates: Registered::default(),
            prompts: Registered::default(),
            completers: Vec::new(),
            error: None,
        }
    }

    /// Sets the whole `serverInfo`: title, description, icons, besides name and version.
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the instructions to the model on how to use the service.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Removes the instructions to the model.
    pub fn without_instructions(mut self) -> Self {
        self.instructions = None;
        self
    }

    /// Says how long lists may be cached.
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }

    /// Promises that the lists never change, so that clients need not listen for changes.
    pub fn unchanging(mut self) -> Self {
        self.announces_changes = false;
        self
    }

    /// Promises no log messages: no handler sends any that a client would want to read.
    pub fn silent(mut self) -> Self {
        self.logs = false;
        self
    }

    /// Declares prompts even while there are none, because some will be added later: a client may
    /// read the capabilities only once, when it connects.
    pub fn expecting_prompts(mut self) -> Self {
        self.expects_prompts = true;
        self
    }

    /// Shortens the definitions of the tools that are added from now on: they have no output schema,
    /// and the values of an enumeration have no descriptions. Every definition takes room in the
    /// context of a model, which reads results without their schema.
    pub fn with_concise_tools(mut self) -> Self {
        self.is_concise = true;
        self
    }

    /// Adds a tool whose arguments are an `Args`: its schema becomes the input schema, and a
    /// [`Json`](crate::Json) result's schema the output schema. Arguments are validated before
    /// `handler` sees them.
    pub fn tool<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let handler = Arc::new(handler);
        let handler = Arc::new(move |arguments: Object, context| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let arguments = arguments
                    .decode::<Args>()
                    .map_err(|error| Fault::InvalidArguments(error.to_string()))?;
                handler(arguments, context).await.into_tool_result()
            }) as Boxed<_>
        });
        self.typed_tool(tool, schemas::<Args, R>(), handler)
    }

    /// The part of [`Self::tool`] that does not depend on type parameters.
    fn typed_tool(self, tool: Tool, schemas: Schemas, handler: ToolHandler) -> Self {
        let (input, output) = schemas;
        let check = InputCheck::new(input.clone());
        let mut tool = tool.input_schema(input);
        if let Some(schema) = output {
            tool = tool.output_schema(schema);
        }
        // A type whose schema is not a valid tool schema is a bug in the program. Debug builds
        // report it when the service is built.
        if cfg!(debug_assertions)
            && let Err(source) = check.validator()
        {
            let source = Arc::new(source.clone());
            return self.fail(BuildError::Schema {
                name: tool.name,
                source,
            });
        }
        self.add_tool(tool, check, handler)
    }

    /// Adds a tool that brings its own input schema, and gets its arguments as raw JSON.
    pub fn tool_with_schema<F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        F: Fn(Raw, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let check = InputCheck::new(tool.input_schema.clone());
        if let Err(source) = check.validator() {
            let source = Arc::new(source.clone());
            return self.fail(BuildError::Schema {
                name: tool.name,
                source,
            });
        }
        let handler = Arc::new(move |arguments: Object, context| {
            let future = handler(arguments.to_raw(), context);
            Box::pin(async move { future.await.into_tool_result() }) as Boxed<_>
        });
        self.add_tool(tool, check, handler)
    }

    fn add_tool(mut self, mut tool: Tool, check: InputCheck, handler: ToolHandler) -> Self {
        if self.is_concise {
            tool.output_schema = None;
            tool.input_schema = schema::concise(&tool.input_schema);
        }
        let definition = tool.to_raw();
        self.tools.add(
            tool.name,
            ToolSlot {
                definition,
                input: Arc::new(check),
                handler,
            },
        );
        self
    }

    /// Takes a tool away.
    pub fn remove_tool(mut self, name: &str) -> Self {
        self.tools.remove(name);
        self
    }

    /// Adds a resource; `handler` is given its URI.
    pub fn resource<F, Fut, R>(mut self, resource: Resource, handler: F) -> Self
    where
        F: Fn(String, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        let handler = Arc::new(move |uri, context| {
            let future = handler(uri, context);
            Box::pin(async move { future.await.into_contents() }) as Boxed<_>
        });
        let definition = resource.to_raw();
        self.resources.add(
            resource.uri,
            ResourceSlot {
                definition,
                handler,
            },
        );
        self
    }

    /// Takes a resource away.
    pub fn remove_resource(mut self, uri: &str) -> Self {
        self.resources.remove(uri);
        self
    }

    /// Adds all resources of a template; `handler` is given the URI and its variables, as
    /// [`Variables`](crate::Variables) or as a struct with a member for each: strings, numbers,
    /// booleans, enums without data. A URI whose variables do not fit is not found.
    pub fn template<Vars, F, Fut, R>(mut self, template: ResourceTemplate, handler: F) -> Self
    where
        Vars: DeserializeOwned + Send + 'static,
        F: Fn(String, Vars, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        let pattern = match UriTemplate::parse(&template.uri_template) {
            Ok(pattern) => pattern,
            Err(error) => return self.fail(error.into()),
        };
        let handler = Arc::new(move |uri: String, variables, context| {
            let read = match typed(&variables) {
                Ok(variables) => Ok(handler(uri, variables, context)),
                Err(_unfit) => Err(Fault::ResourceNotFound(uri)),
            };
            Box::pin(async move { read?.await.into_contents() }) as Boxed<_>
        });
        let definition = template.to_raw();
        self.templates.add(
            template.uri_template,
            TemplateSlot {
                definition,
                pattern,
                handler,
            },
        );
        self
    }

    /// Takes a template away, and what proposes values for it.
    pub fn remove_template(mut self, uri_template: &str) -> Self {
        self.templates.remove(uri_template);
        self.completers.retain(|(of, _, _)| {
            !matches!(of, CompletionReference::Resource { uri } if uri == uri_template)
        });
        self
    }

    /// Adds a prompt; `handler` is given its arguments, of which the required ones are there, as a
    /// map of strings or as a struct with a member for each: strings, numbers, booleans, enums
    /// without data, and options of these.
    pub fn prompt<Args, F, Fut, R>(mut self, prompt: Prompt, handler: F) -> Self
    where
        Args: DeserializeOwned + Send + 'static,
        F: Fn(Args, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoPrompt,
    {
        let handler = Arc::new(move |arguments, context| {
            let asked = typed(&arguments).map(|arguments| handler(arguments, context));
            Box::pin(async move {
                let messages = asked.map_err(|error| Fault::InvalidParams(error.to_string()))?;
                messages.await.into_prompt()
            }) as Boxed<_>
        });
        let required = prompt.arguments.iter().filter(|argument| argument.required);
        let required = required.map(|argument| argument.name.clone()).collect();
        let definition = prompt.to_raw();
        self.prompts.add(
            prompt.name,
            PromptSlot {
                definition,
                required,
                handler,
            },
        );
        self
    }

    /// Takes a prompt away, and what proposes values for it.
    pub fn remove_prompt(mut self, name: &str) -> Self {
        self.prompts.remove(name);
        self.completers.retain(
            |(of, _, _)| !matches!(of, CompletionReference::Prompt { name: of } if of == name),
        );
        self
    }

    /// Proposes values for an argument of a prompt. `complete` gets the text typed so far and the
    /// arguments that are already known.
    pub fn complete_prompt<F, Fut, R>(
        self,
        prompt: impl Into<String>,
        argument: impl Into<String>,
        complete: F,
    ) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoIterator<Item: Into<String>>,
    {
        self.complete(
            CompletionReference::Prompt {
                name: prompt.into(),
            },
            argument,
            complete,
        )
    }

    /// Proposes values for a variable of a resource template.
    pub fn complete_template<F, Fut, R>(
        self,
        uri_template: impl Into<String>,
        variable: impl Into<String>,
        complete: F,
    ) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoIterator<Item: Into<String>>,
    {
        let reference = CompletionReference::Resource {
            uri: uri_template.into(),
        };
        self.complete(reference, variable, complete)
    }

    /// The finished service.
    ///
    /// # Errors
    /// The first error in the entries that were added.
    pub fn build(self) -> Result<LocalService, BuildError> {
        let catalogue = self.catalogue()?;
        Ok(LocalService::new(self, catalogue))
    }

    fn complete<F, Fut, R>(
        mut self,
        reference: CompletionReference,
        argument: impl Into<String>,
        complete: F,
    ) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoIterator<Item: Into<String>>,
    {
        let completer: Completer = Arc::new(move |value, known| {
            let future = complete(value, known);
            Box::pin(async move { Completion::new(future.await) })
        });
        let argument = argument.into();
        self.completers
            .retain(|(of, name, _)| (of, name) != (&reference, &argument));
        self.completers.push((reference, argument, completer));
        self
    }

    fn fail(mut self, error: BuildError) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("identity", &self.identity)
            .field("tools", &self.tools.names())
            .field("resources", &self.resources.names())
            .field("templates", &self.templates.names())
            .field("prompts", &self.prompts.names())
            .finish_non_exhaustive()
    }
}
