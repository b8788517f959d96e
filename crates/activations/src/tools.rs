//! How tools are given what they work on.

use plexus_service::{Builder, Context, Json, LocalService, Tool, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the tools of an activation work on.
pub(crate) trait Shown: Clone + Send + Sync + 'static {
    /// Why a tool fails.
    type Error: Into<ToolError> + Send;

    /// The same, telling the subscribers of `service` what changes.
    fn announcing_to(&self, service: &LocalService) -> Self;

    /// Brings what `service` lists of it, besides tools, up to date.
    fn offer(&self, service: &LocalService) -> impl Future<Output = ()> + Send;
}

/// A builder that is given the tools of an activation. Handlers are given what they work on, which
/// announces its changes to whoever watches the service that is called.
pub(crate) struct Tools<'a, S> {
    pub(crate) builder: Builder,
    pub(crate) of: &'a S,
}

impl<S: Shown> Tools<'_, S> {
    /// Adds a tool.
    pub(crate) fn tool<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(S, Args) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<R, S::Error>> + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let of = self.of.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, context: Context| {
                let done = handler(of.announcing_to(context.service()), arguments);
                async move { done.await.map(Json).map_err(Into::into) }
            });
        Self { builder, ..self }
    }

    /// Adds a tool that changes what is listed.
    pub(crate) fn listing<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(S, Args) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<R, S::Error>> + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let of = self.of.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, context: Context| {
                let of = of.announcing_to(context.service());
                async move {
                    let done = handler(of.clone(), arguments).await.map_err(Into::into)?;
                    of.offer(context.service()).await;
                    Ok::<_, ToolError>(Json(done))
                }
            });
        Self { builder, ..self }
    }
}
