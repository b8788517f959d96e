//! A typed client of any service: one upstream server, a hub of many, or one in this process.

mod handler;
mod request;

use std::sync::Arc;

use plexus_mcp_protocol::messages::{
    CallToolResult, ClientCapabilities, CompleteParams, CompleteResult, CompletionArgument,
    CompletionContext, CompletionReference, GetPromptResult, Implementation, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use plexus_mcp_protocol::{Fault, Revision, method};
use plexus_mcp_wire::{Object, Raw};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use handler::QuestionHandler;
use handler::RefuseQuestions;
pub use request::{CallStream, Request};

use crate::call::{Service, Updates};
use crate::catalogue::{Catalogue, Section};
use crate::peer::{Peer, Presence, Principal};

/// A client of a [`Service`], with the operations of MCP as typed methods. Cheap to clone.
///
/// The answers do not depend on the revision and the transport of the server. A tool that
/// fails is a [`CallToolResult`] with `is_error`; a [`Fault`] means that the request itself failed.
///
/// ```
/// use plexus_mcp_core::{Client, Context, LocalService, Tool};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     name: String,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let service = LocalService::builder("greeter", "1.0.0")
///     .tool(Tool::new("greet"), async |Greet { name }: Greet, _: Context| {
///         format!("Hello, {name}!")
///     })
///     .build()?;
/// let client = Client::new(service);
/// assert_eq!(client.list_tools().await?.len(), 1);
/// let result = client.call_tool("greet", json!({"name": "Ada"})).await?;
/// assert_eq!(result.joined_text(), "Hello, Ada!");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client {
    service: Arc<dyn Service>,
    peer: Arc<Peer>,
    handler: Arc<dyn QuestionHandler>,
}

impl Client {
    /// A client of `service` that cannot be asked anything.
    pub fn new(service: impl Service) -> Self {
        Self::of(Arc::new(service))
    }

    /// The same for a service that is shared.
    pub fn of(service: Arc<dyn Service>) -> Self {
        let peer = Peer::new(
            Revision::NEWEST_STATELESS,
            ClientCapabilities::none(),
            None,
            Principal::anonymous(),
        );
        Self {
            service,
            peer: Arc::new(peer),
            handler: Arc::new(RefuseQuestions),
        }
    }

    /// The same client, with a handler for the questions that servers ask during a call. The client
    /// then declares the capabilities of [`QuestionHandler::capabilities`] to servers.
    #[must_use]
    pub fn with_handler(mut self, handler: impl QuestionHandler) -> Self {
        let peer = Arc::make_mut(&mut self.peer);
        peer.capabilities = handler.capabilities();
        self.handler = Arc::new(handler);
        self
    }

    /// The same client, which gives itself this name and version.
    #[must_use]
    pub fn with_info(mut self, info: &Implementation) -> Self {
        Arc::make_mut(&mut self.peer).client_info = Raw::encode(info).ok();
        self
    }

    /// Gives the client a presence, so that state which its calls set up, such as subscriptions,
    /// lasts as long as the presence.
    #[must_use]
    pub fn present(mut self, presence: Presence) -> Self {
        Arc::make_mut(&mut self.peer).presence = Some(presence);
        self
    }

    /// The tools, with all pages of the list. Waits for servers that are starting, within their
    /// startup time.
    ///
    /// # Errors
    /// A definition cannot be decoded.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Fault> {
        self.list(Section::Tools).await
    }

    /// The resources, as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// A definition cannot be decoded.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Fault> {
        self.list(Section::Resources).await
    }

    /// The resource templates, as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// A definition cannot be decoded.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Fault> {
        self.list(Section::Templates).await
    }

    /// The prompts, as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// A definition cannot be decoded.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Fault> {
        self.list(Section::Prompts).await
    }

    /// Calls a tool. `arguments` is a JSON object: a `json!` value, a map, a struct, or `()` for
    /// none.
    ///
    /// Await the [`Request`] for the result, or [`stream`](Request::stream) it to see progress.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Request<CallToolResult> {
        let params = named(name, &arguments);
        self.request(method::TOOLS_CALL, params)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Request<ReadResourceResult> {
        let mut params = Object::new();
        params.set("uri", Raw::string(uri));
        self.request(method::RESOURCES_READ, Ok(params))
    }

    /// Gets a prompt. `arguments` is a JSON object of strings, or `()` for none.
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Request<GetPromptResult> {
        let params = named(name, &arguments);
        self.request(method::PROMPTS_GET, params)
    }

    /// Proposes values for an argument of a prompt or a resource template, of which `value` has
    /// been typed so far.
    ///
    /// [`Request::context`] adds the arguments that are already known:
    ///
    /// ```
    /// use plexus_mcp_core::{
    ///     Client, CompletionContext, CompletionReference, Context, LocalService, NoArguments,
    ///     Prompt, PromptMessage, Variables,
    /// };
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let service = LocalService::builder("travel", "1.0.0")
    ///     .prompt(Prompt::new("trip"), async |_: NoArguments, _: Context| {
    ///         PromptMessage::user("Plan a trip.")
    ///     })
    ///     .complete_prompt("trip", "city", async |_: String, known: Variables| {
    ///         match known.get("country").map(|country| &**country) {
    ///             Some("Italy") => vec!["Milan", "Rome"],
    ///             _ => Vec::new(),
    ///         }
    ///     })
    ///     .build()?;
    /// let client = Client::new(service);
    /// let trip = CompletionReference::Prompt { name: "trip".to_owned() };
    /// let known = CompletionContext {
    ///     arguments: [("country".to_owned(), "Italy".to_owned())].into(),
    /// };
    /// let proposed = client.complete(trip, "city", "").context(&known).await?;
    /// assert_eq!(proposed.completion.values, ["Milan", "Rome"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn complete(
        &self,
        reference: CompletionReference,
        argument: &str,
        value: &str,
    ) -> Request<CompleteResult> {
        let params = CompleteParams {
            reference,
            argument: CompletionArgument {
                name: argument.to_owned(),
                value: value.to_owned(),
            },
            context: CompletionContext::default(),
        };
        self.request(method::COMPLETE, object(&params))
    }

    /// Subscribes to a resource. The subscription ends when the returned [`Updates`] is dropped.
    ///
    /// # Errors
    /// The server has no such resource, or no subscriptions.
    pub async fn subscribe(&self, uri: &str) -> Result<Updates, Fault> {
        self.service.subscribe(&self.peer, uri).await
    }

    /// Sends any request. The result is the JSON object as the server gave it.
    pub fn request_raw(&self, method: &'static str, params: Object) -> Request<Raw> {
        Request::new(self.clone(), method, Ok(params), |raw| Ok(raw.clone()))
    }

    fn request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Result<Object, Fault>,
    ) -> Request<T> {
        Request::new(self.clone(), method, params, |raw| {
            let malformed = |error| Fault::Internal(format!("the result is malformed: {error}"));
            raw.decode().map_err(malformed)
        })
    }

    async fn list<T: DeserializeOwned>(&self, section: Section) -> Result<Vec<T>, Fault> {
        if let Some(settling) = self.service.settling() {
            settling.await;
        }
        let catalogue = self.catalogue();
        let entries = catalogue.list(section).entries();
        let malformed = |key: &str, error| {
            Fault::Internal(format!("the definition of {key:?} is malformed: {error}"))
        };
        let decoded = entries.iter().map(|entry| {
            let definition = entry.definition.decode();
            definition.map_err(|error| malformed(&entry.key, error))
        });
        decoded.collect()
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        let shown = self.service.catalogue_for(&self.peer);
        let shown = shown.unwrap_or_else(|| self.service.catalogue());
        Arc::clone(&shown.borrow())
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// The parameters of a request for something that has a name and arguments.
fn named(name: &str, arguments: &impl Serialize) -> Result<Object, Fault> {
    let mut params = Object::new();
    params.set("name", Raw::string(name));
    let arguments = Raw::encode(arguments).map_err(|error| unencodable(&error))?;
    if arguments.as_str() != "null" {
        params.set("arguments", object_of(&arguments)?.to_raw());
    }
    Ok(params)
}

fn object(value: &impl Serialize) -> Result<Object, Fault> {
    object_of(&Raw::encode(value).map_err(|error| unencodable(&error))?)
}

fn object_of(raw: &Raw) -> Result<Object, Fault> {
    let no_object = |error| Fault::InvalidParams(format!("arguments must be an object: {error}"));
    Object::parse(raw).map_err(no_object)
}

fn unencodable(error: &serde_json::Error) -> Fault {
    Fault::InvalidParams(format!("the arguments cannot be encoded as JSON: {error}"))
}
