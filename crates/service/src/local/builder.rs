//! Putting a [`LocalService`] together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plexus_mcp::Fault;
use plexus_mcp::messages::{
    Completion, CompletionReference, Implementation, ListCapability, Prompt, Resource,
    ResourceTemplate, ResourcesCapability, ServerCapabilities, Tool,
};
use plexus_mcp::schema::{InvalidSchema, Validator};
use plexus_wire::Raw;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::LocalService;
use super::handler::{
    Completer, IntoContents, IntoPrompt, PromptSlot, Reader, ResourceSlot, TemplateSlot, ToolSlot,
};
use crate::call::Boxed;
use crate::catalogue::{CacheHints, Catalogue, Entry, InvalidDefinition, List, Section};
use crate::context::Context;
use crate::tool_result::IntoToolResult;
use crate::uri_template::{InvalidTemplate, UriTemplate, Variables};

/// Why a service cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool's input schema cannot be used.
    #[error("tool {name:?}: {source}")]
    Schema {
        /// Which tool.
        name: String,
        /// What is wrong with its schema.
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
        /// What is wrong with it.
        source: Arc<InvalidDefinition>,
    },
}

/// Entries by name, in the order in which they were added.
#[derive(Clone)]
pub(super) struct Registered<T> {
    order: Vec<String>,
    slots: HashMap<String, T>,
}

impl<T> Default for Registered<T> {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            slots: HashMap::new(),
        }
    }
}

impl<T> Registered<T> {
    /// Adding what is there already replaces it, in its old place.
    fn add(&mut self, name: String, slot: T) {
        if self.slots.insert(name.clone(), slot).is_none() {
            self.order.push(name);
        }
    }

    fn remove(&mut self, name: &str) {
        self.slots.remove(name);
        self.order.retain(|other| other != name);
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.slots.get(name)
    }

    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.order.iter().filter_map(|name| self.slots.get(name))
    }
}

/// Puts a [`LocalService`] together, and changes one.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    identity: Implementation,
    instructions: Option<String>,
    cache: CacheHints,
    announces_changes: bool,
    pub(super) tools: Registered<ToolSlot>,
    resources: Registered<ResourceSlot>,
    templates: Registered<TemplateSlot>,
    pub(super) prompts: Registered<PromptSlot>,
    completers: Vec<(CompletionReference, String, Completer)>,
    /// The first thing that went wrong; reported by `build`, so that calls can be chained.
    error: Option<BuildError>,
}

impl Builder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            identity: Implementation::new(name, version),
            instructions: None,
            cache: CacheHints::NONE,
            announces_changes: true,
            tools: Registered::default(),
            resources: Registered::default(),
            templates: Registered::default(),
            prompts: Registered::default(),
            completers: Vec::new(),
            error: None,
        }
    }

    /// Says more about who the service is than its name and version.
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = identity;
        self
    }

    /// Tells a model how to use the service.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
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
        let mut tool = tool.input_schema(schema_of(schemars::schema_for!(Args)));
        if let Some(schema) = R::output_schema() {
            tool = tool.output_schema(schema_of(schema));
        }
        let handler = Arc::new(handler);
        self.tool_with_schema(tool, move |arguments: Raw, context| {
            let handler = Arc::clone(&handler);
            async move {
                let arguments = arguments
                    .decode::<Args>()
                    .map_err(|error| Fault::InvalidArguments(error.to_string()))?;
                handler(arguments, context).await.into_tool_result()
            }
        })
    }

    /// Adds a tool that brings its own input schema, and gets its arguments as raw JSON.
    pub fn tool_with_schema<F, Fut, R>(mut self, tool: Tool, handler: F) -> Self
    where
        F: Fn(Raw, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let validator = match Validator::compile_tool_input(&tool.input_schema) {
            Ok(validator) => Arc::new(validator),
            Err(source) => {
                let source = Arc::new(source);
                return self.fail(BuildError::Schema {
                    name: tool.name,
                    source,
                });
            }
        };
        let handler = Arc::new(move |arguments, context| {
            let future = handler(arguments, context);
            Box::pin(async move { future.await.into_tool_result() }) as Boxed<_>
        });
        let definition = tool.to_raw();
        self.tools.add(
            tool.name,
            ToolSlot {
                definition,
                validator,
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

    /// Adds all resources of a template; `handler` is given the variables of the URI.
    pub fn template<F, Fut, R>(mut self, template: ResourceTemplate, handler: F) -> Self
    where
        F: Fn(Variables, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        let pattern = match UriTemplate::parse(&template.uri_template) {
            Ok(pattern) => pattern,
            Err(error) => return self.fail(error.into()),
        };
        let handler = Arc::new(move |variables, context| {
            let future = handler(variables, context);
            Box::pin(async move { future.await.into_contents() }) as Boxed<_>
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

    /// Adds a prompt; `handler` is given its arguments, of which the required ones are there.
    pub fn prompt<F, Fut, R>(mut self, prompt: Prompt, handler: F) -> Self
    where
        F: Fn(BTreeMap<String, String>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoPrompt,
    {
        let handler = Arc::new(move |arguments, context| {
            let future = handler(arguments, context);
            Box::pin(async move { future.await.into_prompt() }) as Boxed<_>
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

    /// Takes a prompt away.
    pub fn remove_prompt(mut self, name: &str) -> Self {
        self.prompts.remove(name);
        self
    }

    /// Proposes values for an argument of a prompt; `complete` is given what was typed so far and
    /// the arguments that are already known.
    pub fn complete_prompt<F, Fut, R>(
        self,
        prompt: impl Into<String>,
        argument: impl Into<String>,
        complete: F,
    ) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoIterator<Item = String>,
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
        R: IntoIterator<Item = String>,
    {
        let reference = CompletionReference::Resource {
            uri: uri_template.into(),
        };
        self.complete(reference, variable, complete)
    }

    /// The finished service.
    ///
    /// # Errors
    /// The first thing that was wrong with what was added.
    pub fn build(self) -> Result<LocalService, BuildError> {
        let catalogue = self.catalogue()?;
        Ok(LocalService::new(self, catalogue))
    }

    pub(super) fn catalogue(&self) -> Result<Catalogue, BuildError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let mut catalogue = Catalogue::new(self.identity.clone(), self.capabilities());
        catalogue.instructions.clone_from(&self.instructions);
        catalogue.cache = self.cache;
        let tools = self.tools.iter().map(|tool| &tool.definition);
        catalogue.set_list(Section::Tools, list(Section::Tools, tools)?);
        let resources = self.resources.iter().map(|resource| &resource.definition);
        catalogue.set_list(Section::Resources, list(Section::Resources, resources)?);
        let templates = self.templates.iter().map(|template| &template.definition);
        catalogue.set_list(Section::Templates, list(Section::Templates, templates)?);
        let prompts = self.prompts.iter().map(|prompt| &prompt.definition);
        catalogue.set_list(Section::Prompts, list(Section::Prompts, prompts)?);
        Ok(catalogue)
    }

    /// Whether `uri` is a resource, fits a template, or is a template.
    pub(super) fn knows(&self, uri: &str) -> bool {
        self.templates.contains_key(uri) || self.reader(uri).is_some()
    }

    pub(super) fn reader(&self, uri: &str) -> Option<Reader> {
        if let Some(resource) = self.resources.get(uri) {
            return Some(Reader::Resource(Arc::clone(&resource.handler)));
        }
        self.templates.iter().find_map(|template| {
            let variables = template.pattern.matches(uri)?;
            Some(Reader::Template(Arc::clone(&template.handler), variables))
        })
    }

    pub(super) fn completer(
        &self,
        reference: &CompletionReference,
        argument: &str,
    ) -> Option<Completer> {
        self.completers
            .iter()
            .find(|(of, name, _)| of == reference && name == argument)
            .map(|(_, _, completer)| Arc::clone(completer))
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
        R: IntoIterator<Item = String>,
    {
        let completer: Completer = Arc::new(move |value, known| {
            let future = complete(value, known);
            Box::pin(async move { Completion::new(future.await) })
        });
        self.completers
            .push((reference, argument.into(), completer));
        self
    }

    /// C43: exactly what is there is declared.
    fn capabilities(&self) -> ServerCapabilities {
        let list = ListCapability {
            list_changed: self.announces_changes,
        };
        let has_resources = !self.resources.is_empty() || !self.templates.is_empty();
        ServerCapabilities {
            tools: (!self.tools.is_empty()).then_some(list),
            resources: has_resources.then_some(ResourcesCapability {
                subscribe: true,
                list_changed: self.announces_changes,
            }),
            prompts: (!self.prompts.is_empty()).then_some(list),
            completions: !self.completers.is_empty(),
            logging: true,
            ..ServerCapabilities::default()
        }
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
            .field("tools", &self.tools.order)
            .field("resources", &self.resources.order)
            .field("templates", &self.templates.order)
            .field("prompts", &self.prompts.order)
            .finish_non_exhaustive()
    }
}

fn list<'a>(
    section: Section,
    definitions: impl Iterator<Item = &'a Raw>,
) -> Result<List, BuildError> {
    let invalid = |name: &str, source| BuildError::Definition {
        name: name.to_owned(),
        source: Arc::new(source),
    };
    let mut entries = Vec::new();
    for definition in definitions {
        let entry = Entry::new(section, definition.clone())
            .map_err(|source| invalid(definition.as_str(), source))?;
        entries.push(entry);
    }
    List::new(entries).map_err(|source| invalid(section.key(), source))
}

/// The schema of a Rust type, less what only costs a model's attention: `$schema`, which names the
/// default dialect, and the type's name.
fn schema_of(mut schema: schemars::Schema) -> Raw {
    schema.remove("$schema");
    schema.remove("title");
    // A schema is JSON by nature; should it ever fail to be, the validator refuses `null`.
    Raw::encode(&schema).unwrap_or_else(|_| Raw::null())
}
