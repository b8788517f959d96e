//! A service made of handlers in this process.

mod builder;
mod handler;
mod registered;
mod strings;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use plexus_mcp_protocol::messages::{
    CallToolResult, CompleteParams, CompleteResult, Completion, CompletionReference, ContentBlock,
    GetPromptParams,
};
use plexus_mcp_protocol::{Fault, method};
use plexus_mcp_wire::{Object, ObjectError, Raw};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

pub use builder::{BuildError, Builder};
pub use handler::{IntoContents, IntoPrompt};

use crate::call::{Boxed, Call, Outcome, Service, Updates};
use crate::catalogue::Catalogue;
use crate::context::Context;
use crate::peer::Peer;
use crate::tool_result::ToolError;

/// A service whose tools, resources and prompts are functions. Cheap to clone: clones share one
/// service.
#[derive(Clone)]
pub struct LocalService {
    inner: Arc<Inner>,
}

struct Inner {
    registry: RwLock<Arc<Builder>>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    /// Versions of the resources that have subscribers.
    watched: Mutex<HashMap<String, watch::Sender<u64>>>,
    /// Fires when a subscription begins.
    watching: Notify,
}

impl LocalService {
    /// Starts a service called `name`, of this version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> Builder {
        Builder::new(name.into(), version.into())
    }

    pub(crate) fn new(registry: Builder, catalogue: Catalogue) -> Self {
        let inner = Inner {
            registry: RwLock::new(Arc::new(registry)),
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            watched: Mutex::default(),
            watching: Notify::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Edits the catalogue. Clients that listen for changes are notified of the lists that changed.
    ///
    /// # Errors
    /// The edit adds an invalid entry. Then nothing changes.
    pub fn edit(&self, edit: impl FnOnce(Builder) -> Builder) -> Result<(), BuildError> {
        let mut registry = self
            .inner
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let edited = edit(Builder::clone(&registry));
        let catalogue = edited.catalogue()?;
        *registry = Arc::new(edited);
        self.inner.catalogue.send_replace(Arc::new(catalogue));
        Ok(())
    }

    /// Tells the subscribers of `uri` that it changed.
    pub fn resource_updated(&self, uri: &str) {
        if let Some(versions) = self.watches().get(uri) {
            versions.send_modify(|version| *version += 1);
        }
    }

    /// The resources with subscribers whose URIs begin with `prefix`.
    pub fn watched(&self, prefix: &str) -> Vec<String> {
        let watched = self.watches();
        let uris = watched.keys().filter(|uri| uri.starts_with(prefix));
        uris.cloned().collect()
    }

    /// Waits until a resource whose URI begins with `prefix` has a subscriber, for services that
    /// have to poll for changes.
    ///
    /// Dropping the future does no harm.
    pub async fn someone_watches(&self, prefix: &str) {
        loop {
            let next = self.inner.watching.notified();
            let mut next = std::pin::pin!(next);
            next.as_mut().enable();
            if !self.watched(prefix).is_empty() {
                return;
            }
            next.await;
        }
    }

    /// Waits until a subscription begins.
    ///
    /// Dropping the future does no harm.
    pub async fn next_watch(&self) {
        self.inner.watching.notified().await;
    }

    fn registry(&self) -> Arc<Builder> {
        Arc::clone(
            &self
                .inner
                .registry
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn watches(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.inner
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Validates the arguments and starts the handler of a tool. The synchronous part runs here, so
    /// that its variables do not enlarge the returned future.
    fn call_tool(&self, call: Call) -> Result<Boxed<Outcome>, Fault> {
        let name = text(&call, "name")?;
        let registry = self.registry();
        let tool = registry.tools.get(&name);
        let tool = tool.ok_or_else(|| Fault::UnknownTool(name.into_owned()))?;
        let arguments = match call.params.get("arguments").map(Object::parse) {
            Some(Ok(arguments)) => arguments,
            None => Object::new(),
            Some(Err(ObjectError::NotAnObject)) => {
                let why = "arguments must be an object".to_owned();
                return Err(Fault::InvalidParams(why));
            }
            Some(Err(error)) => return Err(Fault::InvalidArguments(error.to_string())),
        };
        let validator = tool.input.validator();
        let unusable = |error| Fault::Internal(format!("the tool's input schema: {error}"));
        if let Err(violations) = validator.map_err(unusable)?.validate(&arguments.to_raw()) {
            return Err(Fault::InvalidArguments(violations.to_string()));
        }
        let context = Context::new(call, self.clone());
        let ending = context.ending();
        let handling = (tool.handler)(arguments, context.clone());
        Ok(Box::pin(async move {
            let _ending = ending;
            let result = match handling.await {
                Ok(result) => result,
                Err(ToolError::Failed(message)) => CallToolResult::error(message),
                Err(ToolError::Fault(fault)) => return Err(fault),
            };
            let result = aggregated(result, context.take_collected(), context.take_asides());
            Ok(result.to_raw())
        }))
    }

    async fn read_resource(self, call: Call) -> Outcome {
        let uri = text(&call, "uri")?.into_owned();
        let reader = self.registry().reader(&uri);
        let reader = reader.ok_or_else(|| Fault::ResourceNotFound(uri.clone()))?;
        let context = Context::new(call, self);
        let _ending = context.ending();
        encode(&reader.read(uri, context).await?)
    }

    async fn get_prompt(self, call: Call) -> Outcome {
        let GetPromptParams { name, arguments } = params(&call)?;
        let registry = self.registry();
        let prompt = registry
            .prompts
            .get(&name)
            .ok_or(Fault::UnknownPrompt(name))?;
        if let Some(missing) = prompt
            .required
            .iter()
            .find(|required| !arguments.contains_key(*required))
        {
            return Err(Fault::InvalidParams(format!(
                "missing prompt argument {missing:?}"
            )));
        }
        let context = Context::new(call, self);
        let _ending = context.ending();
        encode(&(prompt.handler)(arguments, context).await?)
    }

    async fn complete(self, call: Call) -> Outcome {
        if !self.inner.catalogue.borrow().capabilities.completions {
            return Err(Fault::MethodNotFound(call.method.into()));
        }
        let CompleteParams {
            reference,
            argument,
            context,
        } = params(&call)?;
        let registry = self.registry();
        match &reference {
            CompletionReference::Prompt { name } if !registry.prompts.contains_key(name) => {
                return Err(Fault::UnknownPrompt(name.clone()));
            }
            CompletionReference::Resource { uri } if !registry.knows(uri) => {
                return Err(Fault::InvalidParams(format!(
                    "unknown resource template: {uri}"
                )));
            }
            _ => {}
        }
        let completer = registry.completer(&reference, &argument.name);
        let completion = match completer {
            Some(completer) => completer(argument.value, context.arguments).await,
            None => Completion::default(),
        };
        encode(&CompleteResult::from(completion))
    }
}

impl Service for LocalService {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue.subscribe()
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        match &*call.method {
            method::TOOLS_CALL => match self.call_tool(call) {
                Ok(result) => result,
                Err(fault) => Box::pin(ready(Err(fault))),
            },
            method::RESOURCES_READ => Box::pin(self.clone().read_resource(call)),
            method::PROMPTS_GET => Box::pin(self.clone().get_prompt(call)),
            method::COMPLETE => Box::pin(self.clone().complete(call)),
            _ => Box::pin(ready(Err(Fault::MethodNotFound(call.method.into())))),
        }
    }

    fn subscribe(&self, _peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let updates = if self.registry().knows(uri) {
            let mut watched = self.watches();
            let versions = watched
                .entry(uri.to_owned())
                .or_insert_with(|| watch::Sender::new(0));
            let watching = Watching {
                service: Arc::downgrade(&self.inner),
                uri: uri.to_owned(),
            };
            let updates = Updates::guarded(versions.subscribe(), watching);
            drop(watched);
            self.inner.watching.notify_waiters();
            Ok(updates)
        } else {
            Err(Fault::ResourceNotFound(uri.to_owned()))
        };
        Box::pin(ready(updates))
    }
}

/// Removes a resource that has no subscribers any more.
struct Watching {
    service: Weak<Inner>,
    uri: String,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(inner) = self.service.upgrade() else {
            return;
        };
        let mut watched = inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let unwatched = |versions: &watch::Sender<u64>| versions.receiver_count() == 0;
        if watched.get(&self.uri).is_some_and(unwatched) {
            watched.remove(&self.uri);
        }
    }
}

impl std::fmt::Debug for LocalService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalService")
            .field("identity", &self.inner.catalogue.borrow().identity)
            .finish_non_exhaustive()
    }
}

/// Decodes the parameters of a call.
fn params<T: DeserializeOwned>(call: &Call) -> Result<T, Fault> {
    let decoded = call.params.to_raw().decode();
    decoded.map_err(|error| Fault::InvalidParams(format!("{}: {error}", call.method)))
}

/// The parameter `member`, which must be a string.
fn text<'a>(call: &'a Call, member: &str) -> Result<Cow<'a, str>, Fault> {
    let invalid = || format!("{}: {member} must be a string", call.method);
    let text = call.params.text(member);
    text.ok_or_else(|| Fault::InvalidParams(invalid()))
}

fn encode<T: serde::Serialize>(result: &T) -> Outcome {
    Raw::encode(result).map_err(|error| Fault::Internal(format!("the result is no JSON: {error}")))
}

/// C16: the streamed text is the first block; then come lines about tools and errors, then the
/// content that the handler returned. A result with only structured content gets it as text.
fn aggregated(
    mut result: CallToolResult,
    streamed: Option<String>,
    asides: Vec<String>,
) -> CallToolResult {
    if streamed.is_some() || !asides.is_empty() {
        let before = streamed.into_iter().chain(asides).map(ContentBlock::text);
        result.content.splice(0..0, before);
    }
    if let (true, Some(data)) = (result.content.is_empty(), &result.structured_content) {
        result.content.push(ContentBlock::text(pretty(data)));
    }
    result
}

fn pretty(data: &Raw) -> String {
    let value = data.decode::<serde_json::Value>();
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_never| data.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use plexus_mcp_protocol::Revision;
    use plexus_mcp_protocol::messages::{ClientCapabilities, Resource, ResourceContents};

    use super::*;
    use crate::peer::Principal;

    /// A resource without subscribers takes no memory.
    #[tokio::test]
    async fn dropped_updates_are_forgotten() {
        let mut builder = LocalService::builder("test", "1.0.0");
        for uri in ["test://a", "test://b", "test://c"] {
            let handler = async |uri: String, _: Context| ResourceContents::text(uri, "");
            builder = builder.resource(Resource::new(uri, uri), handler);
        }
        let service = builder.build().unwrap();
        let (revision, none) = (Revision::V2026_07_28, ClientCapabilities::none());
        let peer = Arc::new(Peer::new(revision, none, None, Principal::anonymous()));

        let dropped = service.subscribe(&peer, "test://a").await.unwrap();
        let _kept = service.subscribe(&peer, "test://b").await.unwrap();
        drop(dropped);
        let _new = service.subscribe(&peer, "test://c").await.unwrap();
        let mut watched: Vec<_> = service.watched("test://");
        watched.sort();
        assert_eq!(watched, ["test://b", "test://c"]);
    }
}
