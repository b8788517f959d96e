//! Built-in services that are not offered to all callers.

use clap::Args;
use plexus_mcp_agents::claudecode::Settings;
use plexus_mcp_agents::{BuiltinSelection, Extras};

use crate::process_env::environment;

/// The variable that names the agent.
pub(crate) const AGENT_VARIABLE: &str = "PLEXUS_CLAUDE";
/// The default agent.
pub(crate) const AGENT: &str = "claude";

/// The selection of built-in services.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BuiltinArgs {
    /// Offer these built-in services: names separated by commas, all, or none.
    ///
    /// There are health, echo, task, context, arbor, cone, bash, loopback and claudecode. Without
    /// this option, `builtin = ["task", …]` under `[hub]` in plexus.toml selects them; without that
    /// either, the first four are offered if no server is configured, and otherwise none.
    #[arg(
        long,
        value_name = "LIST",
        env = "PLEXUS_BUILTIN",
        hide_env_values = true
    )]
    builtin: Option<BuiltinSelection>,
}

impl BuiltinArgs {
    /// The selection, if there is one.
    pub(crate) fn choice(&self) -> Option<BuiltinSelection> {
        self.builtin.clone()
    }
}

/// All services, for a caller with the same rights on this machine; with this agent, or with the
/// one that the environment names.
pub(crate) fn all(agent: Option<&str>) -> Extras {
    let agent = agent.map(str::to_owned);
    let agent = agent.or_else(|| environment(AGENT_VARIABLE));
    let agent = agent.unwrap_or_else(|| AGENT.to_owned());
    let mut extras = Extras::default();
    extras.bash = true;
    extras.claudecode = Some(Settings::new(agent, std::env::var_os("PATH")));
    extras
}
