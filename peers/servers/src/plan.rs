//! The plan of a visit: the server, and the call to make.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use http::{HeaderName, HeaderValue};
use plexus_mcp_client::{Definition, HttpTarget, Program, Target};
use plexus_mcp_protocol::Era;
use plexus_mcp_protocol::messages::{CallToolParams, ClientCapabilities};
use serde::Deserialize;

/// One visit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    target: PlannedTarget,
    /// The era to use; by default it is detected.
    era: Option<String>,
    /// The client capabilities to declare.
    #[serde(default = "ClientCapabilities::none")]
    pub(crate) capabilities: ClientCapabilities,
    /// The call to make.
    pub(crate) call: Option<CallToolParams>,
    /// Stay connected until interrupted.
    #[serde(default)]
    pub(crate) stay: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PlannedTarget {
    Stdio(PlannedProgram),
    Http(PlannedAddress),
    Sse(PlannedAddress),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedProgram {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedAddress {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Plan {
    /// The plan's server, as a definition for the client edge.
    pub(crate) fn definition(&self) -> anyhow::Result<Definition> {
        let target = match &self.target {
            PlannedTarget::Stdio(program) => Target::Stdio(program.program()),
            PlannedTarget::Http(address) => Target::Http(address.target()?),
            PlannedTarget::Sse(address) => Target::Sse(address.target()?),
        };
        let mut definition = Definition::new(target);
        definition.era = self.era.as_deref().map(Era::from_str).transpose()?;
        definition.capabilities = self.capabilities.clone();
        Ok(definition)
    }
}

impl PlannedProgram {
    fn program(&self) -> Program {
        let mut program = Program::new(&self.command).args(&self.args);
        for (name, value) in &self.env {
            program = program.env(name, value);
        }
        match &self.cwd {
            Some(cwd) => program.cwd(cwd),
            None => program,
        }
    }
}

impl PlannedAddress {
    fn target(&self) -> anyhow::Result<HttpTarget> {
        let mut target = HttpTarget::new(self.url.parse().context("the plan's url")?);
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().context("the plan's headers")?;
            let value: HeaderValue = value.parse().context("the plan's headers")?;
            target.headers.insert(name, value);
        }
        Ok(target)
    }
}
