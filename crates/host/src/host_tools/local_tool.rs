//! A tool of the host that is written as a function on its typed arguments.

use std::marker::PhantomData;

use plexus_mcp_core::Boxed;
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Workspace;
use crate::permission::{Risk, Subject};
use crate::schema::SetupError;
use crate::tool::{Tool, ToolContext, ToolOutput};

type Run<T> = Box<dyn Fn(ToolContext, T) -> Boxed<ToolOutput> + Send + Sync>;

/// A tool whose arguments are a `T`.
pub(super) struct LocalTool<T> {
    name: &'static str,
    description: &'static str,
    schema: Raw,
    risk: Risk,
    workspace: Workspace,
    run: Run<T>,
    arguments: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> LocalTool<T> {
    /// A tool that runs `run`.
    pub(super) fn new(
        name: &'static str,
        description: &'static str,
        risk: Risk,
        workspace: &Workspace,
        run: impl Fn(ToolContext, T) -> Boxed<ToolOutput> + Send + Sync + 'static,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            name,
            description,
            schema: crate::schema::of::<T>()?,
            risk,
            workspace: workspace.clone(),
            run: Box::new(run),
            arguments: PhantomData,
        })
    }

    /// A tool that runs `work` on a thread that may block. If the call is cancelled, `work` still
    /// runs to its end.
    pub(super) fn blocking(
        name: &'static str,
        description: &'static str,
        risk: Risk,
        workspace: &Workspace,
        work: impl Fn(T) -> Result<String, String> + Clone + Send + Sync + 'static,
    ) -> Result<Self, SetupError> {
        Self::new(name, description, risk, workspace, move |_, arguments| {
            let work = work.clone();
            Box::pin(async move {
                let worked = tokio::task::spawn_blocking(move || work(arguments)).await;
                match worked {
                    Ok(Ok(text)) => ToolOutput::text(text),
                    Ok(Err(reason)) => ToolOutput::error(reason),
                    Err(crashed) => ToolOutput::error(format!("the tool failed: {crashed}")),
                }
            })
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> Tool for LocalTool<T> {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn input_schema(&self) -> &Raw {
        &self.schema
    }

    fn requires_permission(&self, _input: &Raw) -> bool {
        true
    }

    fn subject(&self, input: &Raw) -> Subject {
        let risk = self.workspace.risk(self.risk, input);
        Subject::of_host(&self.definition(), risk)
    }

    fn runs_in_parallel(&self) -> bool {
        self.risk == Risk::Low
    }

    fn execute(&self, context: ToolContext, input: Raw) -> Boxed<ToolOutput> {
        match input.decode::<T>() {
            Ok(arguments) => (self.run)(context, arguments),
            Err(error) => {
                let wrong = format!("the arguments of {} are wrong: {error}", self.name);
                Box::pin(std::future::ready(ToolOutput::error(wrong)))
            }
        }
    }
}
