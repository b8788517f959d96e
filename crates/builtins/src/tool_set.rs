//! Adds the tools of one namespace to a service, with the data that their handlers work on.

use std::fmt;

use plexus_mcp_core::{Builder, Context, Json, LocalService, Tool, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The stored data that the tools of a namespace work on.
pub trait ToolData: Clone + Send + Sync + 'static {
    /// Why a tool fails.
    type Error: Into<ToolError> + Send;

    /// The same data, notifying the subscribers of `service` of changes.
    #[must_use]
    fn notifying(&self, service: &LocalService) -> Self;

    /// Updates the resources and prompts that `service` lists from the data.
    fn refresh_lists(&self, service: &LocalService) -> impl Future<Output = ()> + Send;
}

/// A builder to which the tools of a namespace are added. Each handler gets the data; changes that
/// it makes are notified to the subscribers of the service that was called.
pub struct ToolSet<'a, S> {
    /// The service that is being built.
    pub builder: Builder,
    /// The data that handlers get.
    pub data: &'a S,
}

impl<S> fmt::Debug for ToolSet<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSet").finish_non_exhaustive()
    }
}

impl<S: ToolData> ToolSet<'_, S> {
    /// Adds a tool.
    #[must_use]
    pub fn tool<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(S, Args) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<R, S::Error>> + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let data = self.data.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, context: Context| {
                let result = handler(data.notifying(context.service()), arguments);
                async move { result.await.map(Json).map_err(Into::into) }
            });
        Self { builder, ..self }
    }

    /// Adds a tool after which the lists of resources and prompts are refreshed.
    #[must_use]
    pub fn tool_with_refresh<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(S, Args) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<R, S::Error>> + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let data = self.data.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, context: Context| {
                let data = data.notifying(context.service());
                async move {
                    let result = handler(data.clone(), arguments).await.map_err(Into::into)?;
                    data.refresh_lists(context.service()).await;
                    Ok::<_, ToolError>(Json(result))
                }
            });
        Self { builder, ..self }
    }
}
